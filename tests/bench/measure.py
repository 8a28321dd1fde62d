"""Turns: every program gets the same load for a moment, one after the other, and again; the cheapest turn counts.

What is counted in a window is what came back in it: requests answered, chunks of streams. The CPU of the program is
read at both ends of the window, and that of the load and the upstream, which share the other core: where they are busy
all of the time, how many came back is no result of the program.
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
"""The share of its core from which on a process is taken to be busy all of the time."""

LONGEST = 20.0
"""Seconds to which a window is made longer, by whole windows, while nothing comes in it."""

UNDISTURBED = 0.1
"""The share of a window for which a program may wait for its core."""

KEPT_PACE = 0.95
"""The share of the chunks of its pace below which a program fell behind."""


@dataclass(frozen=True, slots=True)
class Times:
    """How to measure: turns, seconds before a window, and seconds of a window; seconds of requests that come by the
    clock, seconds before memory is read, how many streams wait together then, and starts."""

    turns: int = 3
    ramp: float = 0.5
    window: float = 2.0
    clocked: float = 4.0
    settle: float = 1.0
    idle: int = 300
    starts: int = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """One window: the CPU of the program, of load and upstream together; seconds; how many requests or chunks came
    back; and the seconds for which the program waited for its core, because something else had it."""

    cpu: Usage
    load: Usage
    wall: float
    count: float
    queued: float = 0.0

    @property
    def microseconds(self) -> float:
        """CPU for each."""
        return self.cpu.total / self.count * 1e6

    @property
    def rate(self) -> float:
        return self.count / self.wall

    @property
    def busy(self) -> float:
        """The share of one core that the program used."""
        return self.cpu.total / self.wall

    @property
    def disturbed(self) -> bool:
        """Whether other programs had its core for long. What then comes late comes in bunches, which cost less each."""
        return self.queued / self.wall > UNDISTURBED

    @property
    def load_busy(self) -> float:
        """The share of one core that load and upstream used."""
        return self.load.total / self.wall


@dataclass(frozen=True, slots=True)
class Outcome:
    """The turns of one program under one case. In `failed` more an answer was wrong, the last of which began with
    `failure`."""

    case: Case
    turns: Sequence[Turn]
    failed: int = 0
    failure: str = ""

    @property
    def best(self) -> Turn:
        """The turn with the least CPU each of those that nothing disturbed, if there are any: what else ran on the
        machine made caches cold."""
        return min(self.turns, key=lambda turn: (turn.disturbed, turn.microseconds))

    @property
    def total(self) -> float:
        """CPU for each, in microseconds."""
        return self.best.microseconds

    @property
    def user(self) -> float:
        """User time for each: the sampled share of all turns together."""
        return self.total * sum((turn.cpu for turn in self.turns), Usage()).user_share

    @property
    def system(self) -> float:
        return self.total - self.user

    @property
    def behind(self) -> bool:
        """Whether it could not keep the pace of the streams in any turn."""
        wanted = self.case.events_a_second
        return bool(wanted) and max(turn.rate for turn in self.turns) < KEPT_PACE * wanted

    @property
    def load_bound(self) -> bool:
        """Whether load and upstream were busy while the program was not, so that its rate is theirs."""
        return self.fastest.load_busy >= BUSY > self.fastest.busy

    @property
    def fastest(self) -> Turn:
        return max(self.turns, key=lambda turn: turn.rate)


def separate(targets: Sequence[int], others: Sequence[int]) -> None:
    """Give what is measured one core and all the rest another, so that neither is in the other's way."""
    cores = sorted(os.sched_getaffinity(0))
    for pid in others:
        pin_pids([pid], [cores[-1]])
    for pid in targets:
        pin_pids(family_pids(pid), [cores[0]])


def counted(case: Case, expected: Expected, before: Tally, after: Tally) -> float:
    """How many requests or chunks came between two looks. Chunks by their bytes: one is counted when it comes, not with
    the end of its stream."""
    if case.ask.chunks:
        return (after.bytes - before.bytes) / expected.sent * case.ask.chunks
    return float(after.answers - before.answers)


async def take_turn(target: Target, case: Case, expected: Expected, load_pids: Sequence[int], times: Times) -> Turn:
    """One window of a case at one program. Raises WrongAnswer for any answer that is not as expected, or for none."""
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
    """The turns of one program under one case as they are taken."""

    target: Target
    case: Case
    request: bytes
    expected: Expected | None = None
    turns: list[Turn] = field(default_factory=list)
    failed: int = 0
    failure: str = ""

    async def turn(self, load_pids: Sequence[int], times: Times) -> None:
        """Take one more, after looking at one answer in full before the first."""
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
    """Every program's turns of a case, by the program's name; those that do not have it are left out."""
    taken = [Series(target, case, request) for target in targets if (request := target.request(case)) is not None]
    for _ in range(times.turns):
        for series in taken:
            await series.turn(load_pids, times)
    return {series.target.name: series.outcome() for series in taken}
