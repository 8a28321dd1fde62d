"""What limits cost a good request, in one run: `python -m tests.bench.team_limits`, with `--python` under another one.

Gateways on the same table but for the limits of the team are loaded with the same bytes in turns. None of the limits is
reached. The cheapest round of each counts.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import uvloop

from tests.bench.load import WholeCaller
from tests.bench.measure import separate
from tests.bench.overload import Amount, amount_of, readings
from tests.bench.programs.gateway import MODEL_SETTINGS, Build
from tests.bench.readings import Reading, cheapest
from tests.bench.upstream import running_upstream

_REQUESTS: Final = "requests_per_minute: 100M"
_ALL: Final = f"{_REQUESTS}, tokens_per_minute: 100000M, concurrent: 1000"

TEAMS: Final[Mapping[str, str]] = {
    "no limits": "",
    "requests": f"limits: {{{_REQUESTS}}}",
    "all limits": f"limits: {{{_ALL}}}, budget: {{usd: 1000000, per: month}}",
}
"""What is limited, none first."""

PRICED: Final = f"{MODEL_SETTINGS}, price: {{input: 1, output: 2}}"


def lines(taken: Mapping[str, Sequence[Reading]]) -> list[str]:
    """The figures: a request's CPU, and how much more than of one without limits."""
    costs = {name: cheapest(readings).microseconds for name, readings in taken.items()}
    first = next(iter(costs.values()))
    return [
        f"{name}: {cost:.1f} µs of CPU a request" + (f", {cost / first - 1:+.1%}" if cost is not first else "")
        for name, cost in costs.items()
    ]


async def bench(amount: Amount, python: str, folder: Path) -> None:
    """Run all and print the figures."""
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(running_upstream(folder))
        targets = []
        for number, (name, team) in enumerate(TEAMS.items()):
            place = folder / str(number)
            place.mkdir()
            build = Build(name, python=python, team=team, model=PRICED)
            targets.append(stack.enter_context(build.start(place, upstream)))
        separate([target.pid for target in targets], [os.getpid(), upstream.pid])
        taken = await readings([(target, WholeCaller) for target in targets], amount)
    for line in lines(dict(zip(TEAMS, taken, strict=True))):
        print(line)


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--python", default=sys.executable)
    chosen, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        uvloop.run(bench(amount_of(rest), chosen.python, Path(folder)))


if __name__ == "__main__":
    main()
