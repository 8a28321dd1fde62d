"""The cost of limits and of the ledger for a good request: `python -m tests.bench.limits_by_turns`, on Linux.

As in `tests.bench.tracing`, one gateway in this process gets a steady load. After each turn of some dozen requests, it
is configured anew: whether it counts limits, and whether it writes the ledger. So the same code and the same memory
serve all four combinations. Separate processes would not give this (`tests.bench.team_limits`). The CPU is measured on
the loop's thread. The cheapest turns of each combination count, since other programs can only add to a turn.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from proxy.gateway.handle_request import Gateway
from proxy.process.assemble_app import Addresses, running
from proxy.process.load_table import Source
from proxy.process.request_observer import RequestObserver
from proxy.process.set_up_process import tune_garbage_collector
from proxy.request_record import RequestRecord
from proxy.teams.team_limiter import TeamLimiter
from tests.bench.measure import separate
from tests.bench.programs.gateway import gateway_table
from tests.bench.team_limits import PRICED, TEAMS
from tests.bench.tracing import TURN, UNCOUNTED, Switched, Turns, cheap, loaded
from tests.bench.upstream import running_upstream

MOST: Final = 0.03
"""The most that limits may add to the cost of a request without any."""

NEITHER, LEDGER, LIMITS, BOTH = "neither", "the ledger", "all limits", "both"

USES: Final[Mapping[str, tuple[bool, bool]]] = {
    NEITHER: (False, False),
    LEDGER: (False, True),
    LIMITS: (True, False),
    BOTH: (True, True),
}
"""Whether limits are counted, and whether the ledger is written, in a turn."""


@dataclass(frozen=True, slots=True)
class Switches:
    """The parts of a gateway to switch on and off."""

    gateway: Gateway
    limiter: TeamLimiter
    free: TeamLimiter
    observer: RequestObserver

    @classmethod
    def of(cls, gateway: Gateway) -> "Switches":
        """Return the parts of a gateway that has both."""
        generation, observer = gateway.generation, gateway._emit.__self__  # type: ignore[attr-defined]
        limiter = generation._limits
        return cls(gateway, limiter, TeamLimiter(limiter.registry, limiter.now, limiter.wall, limiter._draw), observer)

    def uses(self) -> Mapping[str, Callable[[], None]]:
        """Return the hooks of each turn: the turn's parts are on, all others off."""
        every = self.observer._observers
        others = tuple(each for each in every if each.name != "ledger")
        if len(others) == len(every):
            raise RuntimeError("a gateway without a ledger")

        def use(limits: bool, writes: bool) -> None:
            self.gateway.generation._limits = self.limiter if limits else self.free
            self.observer._observers = every if writes else others

        return {name: lambda on=on: use(*on) for name, on in USES.items()}  # type: ignore[misc]  # bound here


async def measure(turns: Turns, uses: Mapping[str, Callable[[], None]], rounds: int) -> Mapping[str, Sequence[float]]:
    """Take turns for `rounds` rounds, and return the cost of a request in each."""
    found: dict[str, list[float]] = {name: [] for name in uses}
    names = list(uses)
    for number in range(rounds):
        at = number % len(names)
        for name in (*names[at:], *names[:at]):
            uses[name]()
            before = await turns.after(UNCOUNTED)
            found[name].append((await turns.after(TURN) - before) / TURN * 1e6)
    return found


def lines(found: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the lines of figures."""
    costs = {name: cheap(readings) for name, readings in found.items()}
    plain, written = costs[NEITHER], costs[LEDGER]
    more = costs[BOTH] / written - 1
    return [
        f"a request with neither: {plain:.1f} µs of CPU",
        f"with the ledger: {written - plain:+.1f} µs, {written / plain - 1:+.1%}",
        f"with all limits: {costs[LIMITS] - plain:+.1f} µs, {costs[LIMITS] / plain - 1:+.1%}",
        f"with all limits beside the ledger: {costs[BOTH] - written:+.1f} µs, {more:+.1%} "
        f"(at most {MOST:.0%}: {'holds' if more <= MOST else 'MISSED'})",
    ]


async def bench(rounds: int, folder: Path, team: str) -> list[str]:
    """Run a gateway under load, and return the figures."""
    with running_upstream(folder) as upstream:
        server = "server: {port: 0, watch: false, admin: {port: 0}}"
        path = folder / "gateway.yaml"
        path.write_text(gateway_table(upstream, server, team, PRICED), encoding="utf-8")
        source, anywhere = Source(path, {}), Addresses("127.0.0.1", 0, "127.0.0.1", 0)
        async with running(source, source.load(), anywhere, BytesIO()) as app:
            gateway = app.front.gateway
            turns = Turns(Switched(gateway).use)  # counts requests that are not traced
            uses, emit = Switches.of(gateway).uses(), gateway._emit

            def counted(record: RequestRecord) -> None:
                emit(record)
                turns.ended()

            gateway._emit = counted
            tune_garbage_collector()
            with loaded(int(app.url.rpartition(":")[2])) as load:
                separate([os.getpid()], [load, upstream.pid])
                await asyncio.sleep(3)
                return lines(await measure(turns, uses, rounds))


def main() -> None:
    """Measure as the command line orders."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.limits_by_turns", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000, help="rounds of a turn of each (%(default)s)")
    parser.add_argument("--team", default=TEAMS["all limits"], help="the team's settings (%(default)s)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for line in asyncio.run(bench(chosen.rounds, Path(folder), chosen.team)):
            print(line)


if __name__ == "__main__":
    main()
