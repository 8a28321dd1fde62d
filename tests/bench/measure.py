"""Turns: every program gets the same load for a moment, one after the other, and again. The cheapest turn counts.

A window counts the units that came back in it: responses to requests, and chunks of streams. The CPU is read at both
ends of the window, for the program and for the load and the upstream, which share the other core. If those two are busy
all of the time, the rate is not a result of the program.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.bench.cases import Case
from tests.bench.cpu import Usage, family_pids, pin_pids, queued, usage
from tests.bench.load import WrongAnswer
from tests.bench.probe import probe
from tests.bench.programs.program import Target
from tests.bench.steady import Expected, Tally, running_load

BUSY = 0.9
"""The share of its core from which on a process counts as busy all of the time."""

LONGEST = 20.0
"""Seconds to which a window is extended, by complete windows, while nothing arrives in it."""

UNDISTURBED = 0.1
"""The share of a window for which a program may wait for its core."""

KEPT_PACE = 0.95
"""A program falls behind if it delivers less than this share of the chunks of its pace."""


@dataclass(frozen=True, slots=True)
class Times:
    """How to measure: the number of turns, seconds before a window, seconds of a window, seconds of requests that come
    by the clock, seconds before memory is read, the number of idle streams for it, and the number of starts."""

    turns: int = 3
    ramp: float = 0.5
    window: float = 2.0
    clocked: float = 4.0
    settle: float = 1.0
    idle: int = 300
    starts: int = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """One window: the CPU of the program, and of load and upstream together; seconds; the number of requests or chunks
    that came back; and the seconds for which the program waited for its core because another process had it."""

    cpu: Usage
    load: Usage
    wall: float
    count: float
    queued: float = 0.0

    @property
    def microseconds(self) -> float:
        """Return the microseconds of CPU for each unit."""
        return self.cpu.total / self.count * 1e6

    @property
    def rate(self) -> float:
        return self.count / self.wall

    @property
    def busy(self) -> float:
        """Return the share of one core that the program used."""
        return self.cpu.total / self.wall

    @property
    def disturbed(self) -> bool:
        """Return whether other programs had its core for long. Chunks that are late then come in bunches, and each
        costs less."""
        return self.queued / self.wall > UNDISTURBED

    @property
    def load_busy(self) -> float:
        """Return the share of one core that load and upstream used."""
        return self.load.total / self.wall


@dataclass(frozen=True, slots=True)
class Outcome:
    """The turns of one program under one case. In `failed` further turns a response was wrong; `failure` is the start
    of the last of these."""

    case: Case
    turns: Sequence[Turn]
    failed: int = 0
    failure: str = ""

    @property
    def best(self) -> Turn:
        """Return the turn with the least CPU for each unit. Undisturbed turns take precedence, because other programs
        empty the caches."""
        return min(self.turns, key=lambda turn: (turn.disturbed, turn.microseconds))

    @property
    def total(self) -> float:
        """Return the CPU for each unit, in microseconds."""
        return self.best.microseconds

    @property
    def user(self) -> float:
        """Return the user time for each unit: the sampled share of all turns together."""
        return self.total * sum((turn.cpu for turn in self.turns), Usage()).user_share

    @property
    def system(self) -> float:
        return self.total - self.user

    @property
    def behind(self) -> bool:
        """Return whether it failed to keep the pace of the streams in any turn."""
        wanted = self.case.events_a_second
        return bool(wanted) and max(turn.rate for turn in self.turns) < KEPT_PACE * wanted

    @property
    def load_bound(self) -> bool:
        """Return whether load and upstream were busy while the program was not, so that they limited its rate."""
        return self.fastest.load_busy >= BUSY > self.fastest.busy

    @property
    def fastest(self) -> Turn:
        return max(self.turns, key=lambda turn: turn.rate)


def separate(targets: Sequence[int], others: Sequence[int]) -> None:
    """Pin the targets to one core and all other processes to another, so that neither disturbs the other."""
    cores = sorted(os.sched_getaffinity(0))
    for pid in others:
        pin_pids([pid], [cores[-1]])
    for pid in targets:
        pin_pids(family_pids(pid), [cores[0]])


def counted(case: Case, expected: Expected, before: Tally, after: Tally) -> float:
    """Return the number of requests or chunks between two readings. Chunks are counted by their bytes: a chunk counts
    when it arrives, not with the end of its stream."""
    if case.ask.chunks:
        return (after.bytes - before.bytes) / expected.sent * case.ask.chunks
    return float(after.answers - before.answers)


async def take_turn(target: Target, case: Case, expected: Expected, load_pids: Sequence[int], times: Times) -> Turn:
    """Measure one window of a case in one program. Raise WrongAnswer for any unexpected response, or if there is
    none."""
    request = target.request(case)
    assert request is not None
    pids, clock = family_pids(target.pid), asyncio.get_running_loop().time
    async with running_load(target.port_of(case), [request] * case.connections, expected, case.spread) as load:
        await asyncio.sleep(times.ramp)
        cpu, own, waited = usage(pids), usage(load_pids), queued(pids)
        before, began = load.tally.copy(), clock()
        while True:
            await asyncio.sleep(times.window)
            load.check()
            after, used, own_used, wall = load.tally.copy(), usage(pids), usage(load_pids), clock() - began
            if count := counted(case, expected, before, after):
                return Turn(used - cpu, own_used - own, wall, count, queued(pids) - waited)
            if wall > LONGEST:
                raise WrongAnswer(f"nothing came in {wall:.0f} seconds")


@dataclass(slots=True)
class Series:
    """The turns of one program under one case, collected one after the other."""

    target: Target
    case: Case
    request: bytes
    expected: Expected | None = None
    turns: list[Turn] = field(default_factory=list)
    failed: int = 0
    failure: str = ""

    async def turn(self, load_pids: Sequence[int], times: Times) -> None:
        """Take one more turn. Check one response in full before the first."""
        target, case = self.target, self.case
        try:
            if self.expected is None:
                self.expected = await probe(target.port_of(case), self.request, target.wire(case), case.ask)
            self.turns.append(await take_turn(target, case, self.expected, load_pids, times))
        except (WrongAnswer, OSError, TimeoutError) as error:
            self.failed += 1
            self.failure = str(error).partition(" ... ")[0] or type(error).__name__

    def outcome(self) -> Outcome:
        return Outcome(self.case, self.turns, self.failed, self.failure)


async def measure_case(
    targets: Sequence[Target], case: Case, load_pids: Sequence[int], times: Times
) -> dict[str, Outcome]:
    """Return every program's turns of a case, by the program's name. Programs without the case are left out."""
    taken = [Series(target, case, request) for target in targets if (request := target.request(case)) is not None]
    for _ in range(times.turns):
        for series in taken:
            await series.turn(load_pids, times)
    return {series.target.name: series.outcome() for series in taken}
