"""Runs every parser of external bytes on broken inputs for a limited time: `python -m tests.trust.fuzz --seconds N`.

An input that breaks a parser is written to the folder and printed; the exit code is then 1. The same seed gives the
same inputs.
"""

import argparse
import hashlib
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path
from random import Random

from tests.trust.figure_types import Result
from tests.trust.fuzz_mutate import Mutator
from tests.trust.fuzz_targets import TARGETS, Target

SLOW = 1.0
"""Seconds. An input of at most 64 KiB that takes longer counts as a failure of the parser."""

MOST_FOUND = 5
"""The number of failing inputs after which the fuzzing of a parser ends: further failures probably have the same
cause."""


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """The result of one parser: runs, seconds, and a line for each input that broke it."""

    name: str
    runs: int
    seconds: float
    found: tuple[str, ...]

    @property
    def line(self) -> str:
        rate = self.runs / self.seconds if self.seconds else 0.0
        return f"{self.name}: {self.runs} runs, {rate:.0f} a second, {len(self.found)} failures"


def fuzz(target: Target, seed: int, folder: Path, more: Callable[[int, float], bool]) -> Fuzzed:
    """Run a parser while `more` returns true for the runs and the seconds so far."""
    mutator = Mutator(Random(f"{seed} {target.name}"), target.seeds, target.tokens)
    found: list[str] = []
    started = time.perf_counter()
    runs, now = 0, started
    while more(runs, now - started) and len(found) < MOST_FOUND:
        data = mutator.input()
        before = time.thread_time()
        try:
            target.run(data)
        except Exception as error:  # any exception of a parser is a finding
            found.append(kept(target, data, folder, "".join(traceback.format_exception(error))))
        now, took = time.perf_counter(), time.thread_time() - before
        if took > SLOW:
            found.append(kept(target, data, folder, f"took {took:.1f} s"))
        runs += 1
    return Fuzzed(target.name, runs, now - started, tuple(found))


def kept(target: Target, data: bytes, folder: Path, reason: str) -> str:
    """Write an input to the folder, and return a line with its failure and its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return f"{target.name} {path}: {reason.strip()}"


def for_seconds(name: str, seed: int, folder: Path, seconds: float) -> Fuzzed:
    """Fuzz the parser with that name for `seconds` seconds."""
    return fuzz(named(name), seed, folder, lambda _, passed: passed < seconds)


def for_runs(name: str, seed: int, folder: Path, runs: int) -> Fuzzed:
    """Fuzz the parser with that name `runs` times."""
    return fuzz(named(name), seed, folder, lambda made, _: made < runs)


def named(name: str) -> Target:
    """Return the parser with that name."""
    return next(target for target in TARGETS if target.name == name)


def all_of(runs: int, seed: int, folder: Path) -> list[Fuzzed]:
    """Fuzz every parser `runs` times, on every core that this process may use."""
    # The processes are not forked, because the calling process may have threads.
    with ProcessPoolExecutor(len(sched_getaffinity(0)), get_context("spawn")) as pool:
        waiting = [pool.submit(for_runs, target.name, seed, folder, int(runs * target.share)) for target in TARGETS]
        return [each.result() for each in waiting]


def parsers(folder: Path, runs: int) -> Result:
    """Return the figure."""
    done = all_of(runs, 0, folder)
    found = [line for fuzzed in done for line in fuzzed.found]
    rates = ", ".join(f"{fuzzed.name} {fuzzed.runs / fuzzed.seconds:.0f}" for fuzzed in done)
    first = f": {found[0].partition(':')[0]}: {found[0].splitlines()[-1]}" if found else ""
    made = sum(fuzzed.runs for fuzzed in done)
    value = f"{len(found)} unexpected exceptions in {made} runs of {len(done)} parsers (runs/s: {rates}){first}"
    return Result(value, not found)


def r23(folder: Path) -> Result:
    """Return the figure for the number of runs that fit into a night."""
    return parsers(folder, 200_000)


def main(arguments: Sequence[str]) -> int:
    names = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser(prog="python -m tests.trust.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; all when none is given")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="for what breaks (%(default)s)")
    given = parser.parse_args(arguments)
    chosen = given.names or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no such parser: {', '.join(sorted(unknown))}")
    broken = 0
    for name in chosen:
        fuzzed = for_seconds(name, given.seed, given.folder, given.seconds / len(chosen))
        print(fuzzed.line, *fuzzed.found, sep="\n", flush=True)
        broken += len(fuzzed.found)
    print(f"stopped after {given.seconds:g} s, seed {given.seed}: {broken} failures")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
