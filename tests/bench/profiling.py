"""The gateway's CPU under a load by function, as a table: `python -m tests.bench --profile request|chunk`.

It is a flame graph as numbers. The gateway samples itself (`sampler/sitecustomize.py`). A function's own share includes
its lines and the C functions and system calls that it calls. Its total share also includes its Python callees. Shares
are of all samples. Multiplied by the CPU of one request or chunk, they become microseconds.
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
"""The words that `--profile` accepts besides the name of a case."""

SAMPLER = Path(__file__).with_name("sampler")
SECONDS = 10.0
RAMP = 2.0
LEAST, MOST = 0.004, 0.995
"""Shares that are shown. Shares of the event loop and of its callers carry no information."""

PATIENCE = 10.0
"""Seconds within which the sampler must write its file."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Samples by stack, outermost function first, and the CPU microseconds of one request or chunk in the same
    window."""

    stacks: Mapping[tuple[str, ...], int]
    microseconds: float

    @property
    def samples(self) -> int:
        return sum(self.stacks.values())

    def own(self) -> Counter[str]:
        """Return the samples in each function itself."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            found[stack[-1]] += count
        return found

    def below(self) -> Counter[str]:
        """Return the samples in each function or its callees. Recursion counts once."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            for name in set(stack):
                found[name] += count
        return found

    def rooms(self) -> Counter[str]:
        """Return the samples by the folder of the running function, or by its file if that is in no folder."""
        found: Counter[str] = Counter()
        for name, count in self.own().items():
            path = name.partition(":")[0].split("/")
            found["/".join(path[:-1][:2]) or path[0]] += count
        return found


def read_stacks(text: str) -> dict[tuple[str, ...], int]:
    """Read the sampler's file."""
    lines = (line.rpartition(" ") for line in text.splitlines())
    return {tuple(stack.split(";")): int(count) for stack, _, count in lines}


def shares(profile: Profile, counts: Counter[str], head: str) -> list[str]:
    """Return the largest of the counts as a table."""
    rows = []
    for name, count in counts.most_common():
        share = count / profile.samples
        if share < LEAST or share > MOST:
            continue
        rows.append([name, f"{share:.1%}", f"{share * profile.microseconds:.1f}"])
    return table([head, "share", "µs"], rows)


def profile_text(profile: Profile, case: Case) -> str:
    """Return the complete report."""
    head = f"{case.name}: {profile.microseconds:.1f} µs of CPU a {case.unit}, {profile.samples} samples"
    parts: Iterable[tuple[str, Counter[str]]] = (
        ("by folder", profile.rooms()),
        ("in the function itself", profile.own()),
        ("in it and what it calls", profile.below()),
    )
    return "\n\n".join([head, *("\n".join(shares(profile, counts, name)) for name, counts in parts)])


def profiled_case(word: str) -> Case:
    """Return the case that a word names. Raise ValueError if there is none."""
    name = NAMED.get(word, word)
    for case in CASES:
        if case.name == name:
            return case
    raise ValueError(f"{word!r} is neither {' nor '.join(NAMED)} nor the name of a case")


async def profiled(case: Case, build: Build, folder: Path, seconds: float = SECONDS) -> Profile:
    """Sample the gateway under a case for `seconds` seconds. Raise WrongAnswer if it returns a wrong response."""
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
    """Wait until a file exists. Raise TimeoutError if it does not appear."""
    last = time.monotonic() + PATIENCE
    while not path.exists():
        if time.monotonic() > last:
            raise TimeoutError(f"{path} was not written")
        time.sleep(0.01)
