"""How many small faults in a package's source its tests catch: `python -m tests.support.mutants proxy/limits`.

The sample depends only on the source and the seed, so two versions of the tests can be compared mutant by mutant. The
program works in a copy of the tree, whose tests must pass before anything is changed.
"""

import argparse
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.support.copied_tree import copy_tree
from tests.support.mutated_source import Mutant, mutants_of, sample

LONGEST_RUN: Final = 300.0
"""Seconds that the tests of a mutant may take."""

LONGEST_TEST: Final = 30
"""Seconds that one test may take, because a mutant may wait for ever."""

FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
"""The line of pytest's summary that names a test."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run of tests, and the test that failed. A run that exceeds its time limit counts as caught."""

    verdict: Literal["caught", "survived", "timeout"]
    test: str = ""


def ordered_tests(tree: Path, file: str, without: Sequence[str]) -> list[str]:
    """Return the test files of a source file's package: its own mirror first, then the files named after it, the
    others, and the suites over all packages of its kind."""
    room, _, name = file.rpartition("/")
    mirror = f"test_{name.removesuffix('.py')}"
    folder = tree / "tests" / room
    found = sorted(folder.rglob("test_*.py"), key=lambda path: (path.stem != mirror, not path.stem.startswith(mirror)))
    if room.startswith("providers/dialects/"):
        found += sorted(folder.parent.glob("test_*.py"))
    names = (path.relative_to(tree).as_posix() for path in found)
    return [name for name in names if name not in without]


def run_tests(tree: Path, files: Sequence[str], longest: float = LONGEST_RUN) -> Outcome:
    """Run tests of a tree until the first one fails. Every run uses the same examples."""
    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *files, *options, "--hypothesis-seed=0", f"--timeout={LONGEST_TEST}"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    # Without bytecode files each run would compile all files that it imports.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # Hypothesis would try the example that failed with another mutant first.
    shutil.rmtree(tree / ".hypothesis", ignore_errors=True)
    # The output is a file, because a process that a test left behind would hold a pipe open.
    with tempfile.TemporaryFile() as output:
        run = subprocess.Popen(
            command, cwd=tree, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            run.wait(longest)
        except subprocess.TimeoutExpired:
            return Outcome("timeout")
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
        if run.returncode == 0:
            return Outcome("survived")
        output.seek(0)
        failed = FAILED.search(output.read().decode(errors="replace"))
        return Outcome("caught", failed[1] if failed else f"pytest ended with {run.returncode}")


@contextmanager
def mutated(tree: Path, mutant: Mutant) -> Iterator[None]:
    """Write a mutant into a tree for the duration of the block. Delete its bytecode: Python recognizes a source by its
    size and its time in whole seconds."""
    path = tree / mutant.file
    source = path.read_bytes()
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        path.write_bytes(mutant.applied(source))
        compiled.unlink(missing_ok=True)
        yield
    finally:
        path.write_bytes(source)
        compiled.unlink(missing_ok=True)


def mutants_in(tree: Path, room: str) -> list[Mutant]:
    """Return the mutants of all files of a package."""
    files = {path.relative_to(tree).as_posix(): path.read_bytes() for path in sorted((tree / room).glob("*.py"))}
    return [mutant for file, source in files.items() for mutant in mutants_of(file, source)]


def run(tree: Path, room: str, chosen: Sequence[Mutant], without: Sequence[str]) -> int:
    """Try mutants one after the other and print a line for each. Return 1 if the tests fail without any."""
    sound = run_tests(tree, ordered_tests(tree, f"{room}/__init__.py", without))
    if sound.verdict != "survived":
        print(f"{room} without a mutant: {sound.verdict} {sound.test}")
        return 1
    survived = 0
    for mutant in chosen:
        with mutated(tree, mutant):
            outcome = run_tests(tree, ordered_tests(tree, mutant.file, without))
        survived += outcome.verdict == "survived"
        print(mutant.name(), outcome.verdict, outcome.test, sep="  ", flush=True)
    print(f"{room}: {len(chosen) - survived} of {len(chosen)} mutants caught", flush=True)
    return 0


def main() -> int:
    """Try a sample of a package's mutants."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.mutants", description=__doc__)
    parser.add_argument("room", help="a folder of sources: proxy/limits")
    parser.add_argument("--sample", type=int, default=40, help="how many mutants (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which mutants (%(default)s)")
    parser.add_argument("--without", action="append", default=[], metavar="FILE", help="a file of tests to leave out")
    asked = parser.parse_args()
    room = asked.room.strip("/")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        chosen = sample(mutants_in(tree, room), asked.sample, asked.seed)
        if not chosen:
            parser.error(f"{room} has no mutants")
        return run(tree, room, chosen, asked.without)


if __name__ == "__main__":
    sys.exit(main())
