"""Made-up results for the tests of tables."""

from collections.abc import Mapping
from dataclasses import replace

from tests.bench.cases import CASES, REQUEST, STREAMS_60, STREAMS_300, TLS_60, UNPACED
from tests.bench.cpu import Usage
from tests.bench.latency import Added, Spent
from tests.bench.machine import Interpreter, Machine
from tests.bench.measure import Outcome, Turn
from tests.bench.memory import Held
from tests.bench.results import KB, MB, Kept, Results, Workers

MACHINE = Machine("a processor", 2, "6.1", 0.1, "2026-11-23 06:00 UTC")
PYTHON = Interpreter("3.11.2", "'--enable-optimizations' '--with-lto'", "OpenSSL 3", {"aiohttp": "3.14"})
COSTS: Mapping[str, tuple[float, float]] = {
    REQUEST: (120.0, 20.0),
    STREAMS_60: (40.0, 20.0),
    STREAMS_300: (36.0, 15.0),
    TLS_60: (60.0, 20.0),
    UNPACED: (4.0, 1.0),
    "anthropic chunk, 300 streams": (40.0, 15.0),
    "bedrock chunk, 300 streams": (45.0, 15.0),
}
"""Microseconds of the gateway and of nginx. Three quarters are user time."""


def outcome(name: str, microseconds: float, wall: float = 1.0) -> Outcome:
    """Return an outcome with one turn of a thousand requests or chunks."""
    case = next(case for case in CASES if case.name == name)
    total = microseconds * 1000 / 1e6
    return Outcome(case, [Turn(Usage(total, total * 0.75, total * 0.25), Usage(0.1), wall, 1000)])


def results() -> Results:
    """Return a run in which everything was measured."""
    outcomes = {
        name: {"gateway": outcome(name, ours), "nginx": outcome(name, theirs)} for name, (ours, theirs) in COSTS.items()
    }
    quick, slow = Spent([0.001] * 98 + [0.002] * 2, 0.2), Spent([0.002] * 98 + [0.0035] * 2, 0.2)
    held = Held(60 * MB, 50 * MB)
    return Results(
        MACHINE,
        PYTHON,
        {"gateway": "abc", "nginx": "1.22.1"},
        "python -m tests.bench --full",
        outcomes,
        {"gateway": Added(1000, [quick], [slow])},
        {"gateway": Kept(held, 18 * KB, replace(held, resident=70 * MB))},
        Workers(Held(200 * MB, 90 * MB), outcome(REQUEST, 126.0), outcome(REQUEST, 120.0)),
        start=0.4,
    )
