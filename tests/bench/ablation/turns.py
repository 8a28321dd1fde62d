"""Measures the gateway without each mechanism beside the unchanged gateway, in alternate turns of one run.

A mechanism saves the share by which the CPU rises without it, as the median over the turns. Each turn is compared with
the turn of the unchanged gateway in the same round, so that other activity of the machine affects both.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.bench.ablation.mechanisms import MECHANISMS, Mechanism
from tests.bench.agents.bodies import SMALL
from tests.bench.agents.measure import checked, cpu_each
from tests.bench.agents.rows import Row
from tests.bench.cases import CASES, REQUEST, STREAMS_300, Case
from tests.bench.load import WrongAnswer
from tests.bench.measure import Times, separate, take_turn
from tests.bench.probe import probe
from tests.bench.programs.gateway import Build
from tests.bench.programs.program import Target
from tests.bench.steady import Expected
from tests.bench.tables import table
from tests.bench.upstream import RunningUpstream

KEPT_FROM = 0.10
"""The least share of the CPU of a request or a chunk that a fast path must save to stay."""

AT_ONCE = 5
"""The number of mechanisms that are measured beside one unchanged gateway."""

AGENT = Row("chat", "openai", SMALL, spaced=False)
AGENT_REQUESTS = 15
MEASURED = ("request", "chunk", "agent")
"""The measured units: a request of 2 KB, a paced chunk, and a request of 300 KB."""


@dataclass(slots=True)
class Turns:
    """The CPU in seconds of each turn, by measured unit. `failure` is why a turn has none."""

    taken: dict[str, list[float]] = field(default_factory=lambda: {each: [] for each in MEASURED})
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Worth:
    """The savings of a mechanism, by measured unit: the share of the CPU without the mechanism that it saves."""

    mechanism: Mechanism
    saved: Mapping[str, float]
    failure: str = ""

    @property
    def most(self) -> float:
        return max(self.saved.values(), default=0.0)

    @property
    def verdict(self) -> str:
        mechanism = self.mechanism
        if mechanism.reason:
            return f"not measured: {mechanism.reason}"
        if self.failure:
            return f"no result: {self.failure}"
        if mechanism.stays:
            return f"keep: {mechanism.stays}"
        return "keep" if self.most >= KEPT_FROM else "remove"


def case_of(name: str, *, tls: bool) -> Case:
    """Return the case of a request or of a chunk."""
    wanted = {"request": REQUEST, "chunk": STREAMS_300}[name] + (", TLS" if tls else "")
    return next(case for case in CASES if case.name == wanted)


@dataclass(slots=True)
class Series:
    """One gateway and its turns."""

    target: Target
    turns: Turns
    expected: dict[str, Expected] = field(default_factory=dict)

    async def take(self, name: str, load_pids: Sequence[int], times: Times, *, tls: bool) -> None:
        """Take one turn of a measurement, or record why there is no result."""
        try:
            cost = await self._cost(name, load_pids, times, tls=tls)
        except (WrongAnswer, OSError, TimeoutError) as error:
            self.turns.failure = str(error).splitlines()[0][:80] if str(error) else type(error).__name__
            cost = math.nan
        self.turns.taken[name].append(cost)

    async def _cost(self, name: str, load_pids: Sequence[int], times: Times, *, tls: bool) -> float:
        if name == "agent":
            request = AGENT.request(self.target)
            assert request is not None
            await checked(self.target.port, request)  # also warms the caches
            return await cpu_each(self.target, request, AGENT_REQUESTS)
        case = case_of(name, tls=tls)
        if name not in self.expected:
            asked = self.target.request(case)
            assert asked is not None
            self.expected[name] = await probe(self.target.port, asked, self.target.wire(case), case.ask)
        turn = await take_turn(self.target, case, self.expected[name], load_pids, times)
        return turn.cpu.total / turn.count


def worth_of(mechanism: Mechanism, without: Turns, whole: Turns) -> Worth:
    """Compare each turn without a mechanism with the turn of the unchanged gateway."""
    saved = {}
    for name in MEASURED:
        pairs = zip(without.taken[name], whole.taken[name], strict=True)
        good = [1 - own / lacking for lacking, own in pairs if not math.isnan(own + lacking)]
        if good:
            saved[name] = median(good)
    return Worth(mechanism, saved, "" if saved else without.failure or whole.failure)


def groups(found: Sequence[Mechanism]) -> Iterator[Sequence[Mechanism]]:
    """Yield the mechanisms that are measured together: few at once, and the mechanisms over TLS by themselves."""
    for tls in (False, True):
        alike = [each for each in found if each.patches and each.tls is tls]
        for start in range(0, len(alike), AT_ONCE):
            yield alike[start : start + AT_ONCE]


def builds(group: Sequence[Mechanism], python: str) -> list[Build]:
    """Return the builds: the unchanged gateway, and the gateway without each mechanism of a group."""
    without = [Build(each.name, python=python, module=("tests.bench.ablation.gateway", each.name)) for each in group]
    return [Build("whole", python=python), *without]


async def measured_group(
    group: Sequence[Mechanism], targets: Sequence[Target], load_pids: Sequence[int], times: Times
) -> list[Worth]:
    """Return the savings of each mechanism of a group. The first target is the unchanged gateway. Each other target
    lacks one mechanism."""
    series = [Series(target, Turns()) for target in targets]
    tls = group[0].tls
    for number in range(times.turns):
        # The first target of a round finds the caches cold.
        place = number % len(series)
        for name in MEASURED:
            for each in (*series[place:], *series[:place]):
                await each.take(name, load_pids, times, tls=tls)
    return [worth_of(each, one.turns, series[0].turns) for each, one in zip(group, series[1:], strict=True)]


def chosen(words: Sequence[str]) -> list[Mechanism]:
    """Return the mechanisms in the source whose name is one of the words. Without words, return all."""
    return [each for each in MECHANISMS if each.stands and (not words or each.name in words)]


async def measured_worths(
    words: Sequence[str], python: str, folder: Path, upstream: RunningUpstream, times: Times
) -> list[Worth]:
    """Measure the savings of each mechanism and report each at once. The mechanisms that cannot be switched off come
    last."""
    found, load_pids, worths = chosen(words), [os.getpid(), upstream.pid], []
    for group in groups(found):
        with ExitStack() as stack:
            targets = []
            for build in builds(group, python):
                place = folder / build.name
                place.mkdir(exist_ok=True)
                targets.append(stack.enter_context(build.start(place, upstream)))
            separate([target.pid for target in targets], load_pids)
            for worth in await measured_group(group, targets, load_pids, times):
                print(" ".join(cells(worth)), flush=True)
                worths.append(worth)
    return [*worths, *(Worth(each, {}) for each in found if not each.patches)]


HEAD = ("mechanism", "lines", "private names", "% of a request", "% of a chunk", "% of 300 KB", "verdict")


def cells(worth: Worth) -> list[str]:
    """Return one row of the table."""
    shares = [f"{worth.saved[name]:.1%}" if name in worth.saved else "–" for name in MEASURED]
    mechanism = worth.mechanism
    numbers = [str(mechanism.lines), str(len(mechanism.private))]
    return [mechanism.title + (", over TLS" if mechanism.tls else ""), *numbers, *shares, worth.verdict]


def ablation_table(worths: Sequence[Worth]) -> list[str]:
    """Return the table of a run."""
    return table(HEAD, [cells(worth) for worth in worths])
