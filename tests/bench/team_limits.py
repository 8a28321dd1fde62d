"""The cost of limits for a good request, in one run: `python -m tests.bench.team_limits`, with `--python` for another
interpreter.

Gateways whose configurations differ only in the team's limits get the same bytes in many short turns. No limit is
reached. A gateway sheds requests if another program has its core for long. Shed requests are sent again, and the turn
does not count. The cheapest counted turn is the result.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import uvloop
from typing_extensions import override

from tests.bench.load import Load, WholeCaller
from tests.bench.measure import separate
from tests.bench.overload import REQUEST, Amount, amount_of, measure
from tests.bench.programs.gateway import MODEL_SETTINGS, Build
from tests.bench.programs.program import Target
from tests.bench.readings import Reading, cheapest
from tests.bench.upstream import running_upstream

_REQUESTS: Final = "requests_per_minute: 100M"
_ALL: Final = f"{_REQUESTS}, tokens_per_minute: 100000M, concurrent: 1000"

TEAMS: Final[Mapping[str, str]] = {
    "no limits": "",
    "requests": f"limits: {{{_REQUESTS}}}",
    "all limits": f"limits: {{{_ALL}}}, budget: {{usd: 1000000, per: month}}",
}
"""The limits of the team. The first entry has none."""

SHORT: Final = ("--requests", "1000", "--connections", "8", "--rounds", "20")
"""The amount to measure, unless the command line sets it."""

PRICED: Final = f"{MODEL_SETTINGS}, price: {{input: 1, output: 2}}"


SHED: Final = b"HTTP/1.1 503 "
PAUSE: Final = 0.05
"""Seconds until a shed request is sent again."""


class PatientCaller(WholeCaller):
    """A caller that repeats a request that the gateway sheds, and records it."""

    def __init__(self, request: bytes, tickets: Iterator[int], shed: list[None]) -> None:
        super().__init__(request, tickets)
        self._shed = shed

    @override
    def data_received(self, data: bytes) -> None:
        if not self._data and data.startswith(SHED):
            self._shed.append(None)
            asyncio.get_running_loop().call_later(PAUSE, self._transport.write, self._request)
        else:
            super().data_received(data)


async def turns(targets: Sequence[Target], amount: Amount) -> list[list[Reading]]:
    """Return the readings of each target, taken in alternate turns, without turns with shed requests. Raise
    RuntimeError if a target has no other turns."""
    load = Load(REQUEST, amount.requests, amount.connections)
    taken: list[list[Reading]] = [[] for _ in targets]
    for turn in range(amount.rounds + 1):
        for target, of_target in zip(targets, taken, strict=True):
            shed: list[None] = []
            reading = await measure(target, load, partial(PatientCaller, shed=shed))
            if turn and not shed:  # the first one warms up
                of_target.append(reading)
    if not all(taken):
        raise RuntimeError("requests were shed in every turn of a gateway: run it under `chrt -r 5`, or fewer at once")
    return taken


def lines(taken: Mapping[str, Sequence[Reading]]) -> list[str]:
    """Return the figures: a request's CPU, and its difference to a request without limits."""
    costs = {name: cheapest(readings).microseconds for name, readings in taken.items()}
    first = next(iter(costs.values()))
    return [
        f"{name}: {cost:.1f} µs of CPU a request" + (f", {cost / first - 1:+.1%}" if cost is not first else "")
        for name, cost in costs.items()
    ]


async def bench(amount: Amount, python: str, folder: Path) -> None:
    """Run all cases and print the figures."""
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(running_upstream(folder))
        targets: list[Target] = []
        for number, (name, team) in enumerate(TEAMS.items()):
            place = folder / str(number)
            place.mkdir()
            build = Build(name, python=python, team=team, model=PRICED)
            targets.append(stack.enter_context(build.start(place, upstream)))
        separate([target.pid for target in targets], [os.getpid(), upstream.pid])
        taken = await turns(targets, amount)
    for line in lines(dict(zip(TEAMS, taken, strict=True))):
        print(line)


def main() -> None:
    """Measure as the command line orders."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--python", default=sys.executable)
    chosen, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        uvloop.run(bench(amount_of([*SHORT, *rest]), chosen.python, Path(folder)))


if __name__ == "__main__":
    main()
