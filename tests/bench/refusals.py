"""The cost of a refusal, in one run: `python -m tests.bench.refusals [PROCESSES LIMIT OFFERED SECONDS]`.

Processes that share a limit in a real Redis (Debian's) get half as many requests again as the limit allows. The bench
reports how long a refusal waits, over all processes together, and the CPU of one refusal, in this process, with its
error and headers.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Final

from proxy.limits.limit import Limits, Period, Rate, Unit
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.limit_views import Exceeded
from proxy.limits.reservation import Reservation
from proxy.teams.limit_errors import limit_exceeded
from tests.proxy.limits.kit.fleet import figures, run_fleet
from tests.support.redis import real_redis

SCOPES: Final = ("team t", "key t/k", "team t model m")
TURNS: Final = 50
TURN: Final = 200
"""Turns, of which the cheapest counts, and refusals in each turn."""


def refusing() -> Callable[[], None]:
    """Return a function that refuses one request of three scopes with two rates each. The first rate is used up."""
    rates = tuple(Rate(unit, 600, Period.MINUTE, 600) for unit in (Unit.REQUESTS, Unit.TOKENS))
    registry = LimitRegistry(time.monotonic, time.time)
    registry.use(dict.fromkeys(SCOPES, Limits(rates, (), 64)), {}, UTC, time.monotonic())
    while isinstance(outcome := registry.admit(SCOPES, 1, 0, time.monotonic(), time.time()), Reservation):
        outcome.settle(1, 0)

    def refuse() -> None:
        now, wall = time.monotonic(), time.time()
        refused = registry.begin(SCOPES, 100, 0, now, wall)
        if not isinstance(refused, Exceeded):
            raise RuntimeError("a request passed that was to be refused")
        limit_exceeded(refused, registry.facts(SCOPES, now, wall), UTC, lambda: 0.5)

    return refuse


def cpu_of(refuse: Callable[[], None]) -> float:
    """Return the microseconds of CPU of one refusal."""
    cheapest = float("inf")
    for _ in range(TURNS):
        begin = time.process_time_ns()
        for _ in range(TURN):
            refuse()
        cheapest = min(cheapest, (time.process_time_ns() - begin) / TURN)
    return cheapest / 1000


def main() -> None:
    """Measure as the command line orders."""
    count, most, asked, span = (int(word) for word in sys.argv[1:] or ("8", "1000", "1500", "15"))
    print(f"a refusal by three scopes: {cpu_of(refusing()):.1f} µs of CPU")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, real_redis(Path(folder)) as redis:
        print(f"{count} processes: {figures(run_fleet(redis.url, count, most, asked, span), most, span)}")


if __name__ == "__main__":
    main()
