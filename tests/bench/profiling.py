"""Where the gateway's CPU goes under a load, as a table: `python -m tests.bench --profile request|chunk`.

A flame graph as numbers. The gateway samples itself (`sampler/sitecustomize.py`). Each function's own share says what
its lines and the C functions and system calls cost that it calls; its share with all below it, what is called from it.
Shares are of all samples; with the CPU that one request or chunk took they become microseconds.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.cases import CASES, REQUEST, STREAMS_300, Case
from tests.bench.cpu import usage
from tests.bench.measure import counted, separate
from tests.bench.probe import probe
from tests.bench.programs.gateway import Build
from tests.bench.steady import running_load
from tests.bench.tables import table
from tests.bench.upstream import running_upstream

NAMED: Mapping[str, str] = {"request": REQUEST, "chunk": STREAMS_300}
"""What `--profile` takes besides the name of a case."""

SAMPLER = Path(__file__).with_name("sampler")
SECONDS = 10.0
RAMP = 2.0
LEAST, MOST = 0.004, 0.995
"""Shares that are shown: those of the event loop and what started it say nothing."""

PATIENCE = 10.0
"""Seconds within which the sampler writes."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Samples by stack, outermost function first; CPU microseconds of one request or chunk in the same window."""

    stacks: Mapping[tuple[str, ...], int]
    microseconds: float

    @property
    def samples(self) -> int:
        return sum(self.stacks.values())

    def own(self) -> Counter[str]:
        """Samples in each function itself."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            found[stack[-1]] += count
        return found

    def below(self) -> Counter[str]:
        """Samples in each function or in anything called from it; recursion counts once."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            for name in set(stack):
                found[name] += count
        return found

    def rooms(self) -> Counter[str]:
        """Samples by the folder that the running function is in, or its file if that is in none."""
        found: Counter[str] = Counter()
        for name, count in self.own().items():
            path = name.partition(":")[0].split("/")
            found["/".join(path[:-1][:2]) or path[0]] += count
        return found


def read_stacks(text: str) -> dict[tuple[str, ...], int]:
    """The sampler's file."""
    lines = (line.rpartition(" ") for line in text.splitlines())
    return {tuple(stack.split(";")): int(count) for stack, _, count in lines}


def shares(profile: Profile, counts: Counter[str], head: str) -> list[str]:
    """The largest of the counts as a table."""
    rows = []
    for name, count in counts.most_common():
        share = count / profile.samples
        if share < LEAST or share > MOST:
            continue
        rows.append([name, f"{share:.1%}", f"{share * profile.microseconds:.1f}"])
    return table([head, "share", "µs"], rows)


def profile_text(profile: Profile, case: Case) -> str:
    """The whole report."""
    head = f"{case.name}: {profile.microseconds:.1f} µs of CPU a {case.unit}, {profile.samples} samples"
    parts: Iterable[tuple[str, Counter[str]]] = (
        ("by folder", profile.rooms()),
        ("in the function itself", profile.own()),
        ("in it and what it calls", profile.below()),
    )
    return "\n\n".join([head, *("\n".join(shares(profile, counts, name)) for name, counts in parts)])


def profiled_case(word: str) -> Case:
    """The case of a word. Raises ValueError for one that names none."""
    name = NAMED.get(word, word)
    for case in CASES:
        if case.name == name:
            return case
    raise ValueError(f"{word!r} is neither {' nor '.join(NAMED)} nor the name of a case")


async def profiled(case: Case, build: Build, folder: Path, seconds: float = SECONDS) -> Profile:
    """Sample the gateway for a while under a case. Raises WrongAnswer when it gives a wrong one."""
    samples = folder / "samples"
    path = os.pathsep.join([str(SAMPLER), str(build.checkout)])
    sampled = Build(
        build.name, build.checkout, build.python, variables={"PYTHONPATH": path, "BENCH_SAMPLES": str(samples)}
    )
    with running_upstream(folder) as upstream, sampled.start(folder, upstream) as target:
        separate([target.pid], [os.getpid(), upstream.pid])
        request = target.request(case)
        assert request is not None
        expected = await probe(target.port_of(case), request, target.wire(case), case.ask)
        async with running_load(target.port_of(case), [request] * case.connections, expected, case.spread) as load:
            await asyncio.sleep(min(RAMP, seconds))
            os.kill(target.pid, signal.SIGRTMIN + 5)
            cpu, before = usage([target.pid]), load.tally.copy()
            await asyncio.sleep(seconds)
            spent, after = usage([target.pid]) - cpu, load.tally.copy()
            os.kill(target.pid, signal.SIGRTMIN + 5)
            load.check()
            await asyncio.to_thread(wait_for, samples)
    count = counted(case, expected, before, after)
    return Profile(read_stacks(samples.read_text(encoding="utf-8")), spent.total / max(count, 1.0) * 1e6)


def wait_for(path: Path) -> None:
    """Wait until a file is there. Raises TimeoutError when it does not come."""
    last = time.monotonic() + PATIENCE
    while not path.exists():
        if time.monotonic() > last:
            raise TimeoutError(f"{path} was not written")
        time.sleep(0.01)
