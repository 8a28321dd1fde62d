"""Sabotages the gateway once for each figure and expects a bad figure: `python -m tests.trust.mutations`.

It works in a copy of the tree, whose figures must be good before anything is changed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.support.copied_tree import copy_tree
from tests.trust.board import ALL, Plan, verdicts
from tests.trust.figure_types import Figure, NotHeld, Sabotage


@dataclass(frozen=True, slots=True)
class Mutation:
    """A figure's state under its sabotage; only `red` is right."""

    figure: Figure
    verdict: Literal["red", "GREEN", "BROKEN"]
    told: str
    seconds: float

    def text(self) -> str:
        """Return the line as it is printed."""
        return f"{name_of(self.figure)}  {self.verdict:<6}  {self.seconds:>6.1f}  {self.told}"


def name_of(figure: Figure) -> str:
    """Return the name of one line of the board."""
    return f"{figure.number}/{figure.tier}"


def occurrences(sabotage: Sabotage, root: Path) -> int:
    """Return how often the sabotage's old text occurs."""
    return (root / sabotage.file).read_text(encoding="utf-8").count(sabotage.old)


def board(tree: Path, only: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run some figures of a tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "tests.trust", "--only", only, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def mutate(figure: Figure, sabotage: Sabotage, tree: Path) -> Mutation:
    """Run one figure in a tree with its sabotage."""
    started = time.perf_counter()
    if occurrences(sabotage, tree) != 1:
        return Mutation(figure, "BROKEN", f"{sabotage.file} does not hold the text once: {sabotage.old}", 0.0)
    path = tree / sabotage.file
    path.write_text(path.read_text(encoding="utf-8").replace(sabotage.old, sabotage.new), encoding="utf-8")
    done = board(tree, f"{figure.number}/{figure.tier}", "--exitfirst")
    seconds = time.perf_counter() - started
    match dict(verdicts(done.stdout)).get(name_of(figure)):
        case "BAD":
            return Mutation(figure, "red", last_word(done.stdout), seconds)
        case "good":
            return Mutation(figure, "GREEN", f"{sabotage.file}: {sabotage.old}", seconds)
        case _:
            # A figure that could not be run, or a board that failed, proves nothing.
            return Mutation(figure, "BROKEN", last_word(done.stdout + done.stderr), seconds)


def last_word(output: str) -> str:
    """Return the first failure that the board names, or else the figure's line, or else the last line of the output."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()] or ["nothing was said"]
    named = (line for sign in ("::", "BAD") for line in lines if sign in line)
    return next(named, lines[-1])


def sound(figures: Sequence[Figure], tree: Path) -> set[str]:
    """Return the figures that are good in the unchanged tree. For others, a bad figure under a sabotage would prove
    nothing."""
    done = board(tree, ",".join(map(name_of, figures)))
    return {name for name, verdict in verdicts(done.stdout) if verdict == "good"}


def mutations(figures: Sequence[Figure], folder: Path) -> Iterator[Mutation]:
    """Run the sabotages one after the other, each in its own copy of the tree as it was at the start."""
    untouched, changed = folder / "untouched", folder / "changed"
    copy_tree(untouched)
    good = sound(figures, untouched)
    for figure in figures:
        if name_of(figure) not in good:
            yield Mutation(figure, "BROKEN", "it is not good to begin with", 0.0)
        elif figure.sabotage is None:
            yield Mutation(figure, "BROKEN", "no sabotage is known", 0.0)
        else:
            shutil.copytree(untouched, changed, ignore=shutil.ignore_patterns(".hypothesis"))
            yield mutate(figure, figure.sabotage, changed)
            shutil.rmtree(changed)


def main() -> int:
    """Run all sabotages and print a line each. Return 1 if a figure is not red."""
    parser = argparse.ArgumentParser(prog="python -m tests.trust.mutations", description=__doc__)
    parser.add_argument("--full", action="store_const", dest="tiers", const="CN", help="those of the night too")
    parser.add_argument("--only", default="", help="these, whatever their tier: R04,R15/C")
    parser.set_defaults(tiers="C")
    asked = parser.parse_args()
    plan = Plan(asked.tiers, frozenset(filter(None, asked.only.split(","))))
    chosen = [figure for figure in ALL if plan.wants(figure) and not isinstance(figure.how, NotHeld)]
    kept = 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        for mutation in mutations(chosen, Path(folder)):
            kept += mutation.verdict != "red"
            print(mutation.text(), flush=True)
    print(f"{len(chosen) - kept} of {len(chosen)} figures turned red")
    return 1 if kept or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
