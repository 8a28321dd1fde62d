"""The scoreboard: `python -m tests.trust` measures the figures of a tier and prints a row for each: number, tier,
figure, target, verdict, seconds and value.

A figure that was not measured has the verdict `not run`, with the reason. Exit status: 0 if every selected figure is
good, 1 if one is bad, 3 if none is bad and one could not be run.
"""

import argparse
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final, Literal

from tests.trust.figure_types import Case, Figure, Measure, NotHeld, Result, Tests
from tests.trust.figures import FIGURES, UNHELD
from tests.trust.figures_load import LOAD_FIGURES
from tests.trust.pytest_results import cases_of, run, selected


def every_figure() -> Iterator[Figure]:
    """Yield all measured figures. Then yield each figure of `UNHELD` whose number no measured figure has, so that the
    board shows the gap."""
    found = (*FIGURES, *LOAD_FIGURES)
    yield from found
    numbers = {figure.number for figure in found}
    yield from (figure for figure in UNHELD if figure.number not in numbers)


ALL: Final = tuple(sorted(every_figure(), key=lambda figure: (figure.number, "CNW".index(figure.tier))))
"""Every figure, by number. A figure with two kinds of measurement has two lines."""

COMMANDS: Final = {"C": "make trust", "N": "make trust-full", "W": "make trust-full ARGS=--release"}
WIDTHS: Final = (3, 1, 32, 40, 7, 7, 60)
"""The widths of the columns. Longer text continues on the next line."""

HEADER: Final = ("", "", "figure", "target", "verdict", "seconds", "what came out")


def row(cells: Sequence[str]) -> str:
    """Return one row of the table, of as many lines as its longest cell needs."""
    wrapped = [textwrap.wrap(cell, width) for cell, width in zip(cells, WIDTHS, strict=True)]
    return "\n".join(
        "  ".join(part.ljust(width) for part, width in zip(parts, WIDTHS, strict=True)).rstrip()
        for parts in zip_longest(*wrapped, fillvalue="")
    )


def names_of(figure: Figure) -> set[str]:
    """Return a figure's names on the command line: `R15` is every line of that number, `R15/C` one of its lines."""
    return {figure.number, f"{figure.number}/{figure.tier}"}


def verdicts(output: str) -> Iterator[tuple[str, str]]:
    """Yield the verdict of each line of a printed board, by names like `R15/C`."""
    start = sum(width + 2 for width in WIDTHS[:4])
    for line in output.splitlines():
        if re.match(r"R\d\d  [CNW]  ", line):
            yield f"{line[:3]}/{line[5]}", line[start : start + WIDTHS[4]].strip()


@dataclass(frozen=True, slots=True)
class Plan:
    """The parsed command line. `options` are passed to pytest."""

    tiers: str
    only: frozenset[str] = frozenset()
    report: Path | None = None
    options: tuple[str, ...] = ()

    def wants(self, figure: Figure) -> bool:
        """Return whether a figure is selected, by its tier or by its name."""
        if self.only:
            return bool(self.only & names_of(figure))
        return figure.tier in self.tiers


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the board. `failures` are its failed tests. `due` is true if this run should have measured the
    figure."""

    figure: Figure
    verdict: Literal["good", "BAD", "not run"]
    value: str
    seconds: float = 0.0
    failures: tuple[Case, ...] = ()
    due: bool = True

    def text(self) -> str:
        figure, seconds = self.figure, f"{self.seconds:.1f}" if self.seconds else ""
        return row(
            (
                figure.number,
                figure.tier,
                figure.title,
                figure.target,
                self.verdict,
                seconds.rjust(WIDTHS[5]),
                self.value,
            )
        )


def by_tests(figure: Figure, tests: Tests, cases: Sequence[Case]) -> Line:
    """Return the line of a figure that is measured by tests. If none failed, each part of the selection must have run,
    and no test may have been skipped."""
    found = dict.fromkeys(case for node in tests.selection for case in selected(cases, node))
    absent = [node for node in tests.selection if next(selected(cases, node), None) is None]
    seconds = sum(case.seconds for case in found)
    failures = tuple(case for case in found if case.state == "failed")
    skipped = [case for case in found if case.state == "skipped"]
    if failures:
        judged = tests.judge(list(found))
        return Line(figure, "BAD", judged.value, seconds, failures)
    if absent:
        return Line(figure, "not run", f"no test ran of {', '.join(absent)}", seconds)
    if skipped:
        return Line(figure, "not run", f"{len(skipped)} tests skipped: {skipped[0].trouble}", seconds)
    return judged_line(figure, tests.judge(list(found)), seconds)


def by_measure(figure: Figure, measure: Measure) -> Line:
    """Return the line of a measured figure. An exception during the measurement makes the figure bad and does not end
    the board."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=f"trust-{figure.number}-") as folder:
        try:
            result = measure(Path(folder))
        except Exception as error:
            result = Result(f"{type(error).__name__}: {error}".partition("\n")[0], False)
    return judged_line(figure, result, time.perf_counter() - started)


def judged_line(figure: Figure, result: Result, seconds: float) -> Line:
    """Return the line of a result."""
    return Line(figure, "good" if result.good else "BAD", result.value, seconds)


def lines(figures: Sequence[Figure], plan: Plan, folder: Path) -> Iterator[Line]:
    """Measure the selected figures, and yield the lines in order. All tests run first, in a single run of pytest."""
    held = [figure.how for figure in figures if plan.wants(figure) and isinstance(figure.how, Tests)]
    report = plan.report or folder / "tests.xml"
    if held and plan.report is None:
        run(held, report, plan.options)
    cases = cases_of(report)
    for figure in figures:
        how = figure.how
        if plan.only and not plan.wants(figure):
            continue
        if isinstance(how, NotHeld):
            yield Line(figure, "not run", how.reason, due=bool(plan.only))
        elif not plan.wants(figure):
            yield Line(figure, "not run", f"by `{COMMANDS[figure.tier]}`", due=False)
        elif isinstance(how, Tests):
            yield by_tests(figure, how, cases)
        else:
            yield by_measure(figure, how)


def told(found: Sequence[Line], seconds: float) -> str:
    """Return the text that is printed below the board."""
    counts = {verdict: sum(line.verdict == verdict for line in found) for verdict in ("good", "BAD", "not run")}
    blamed: dict[Case, list[str]] = {}
    for line in found:
        for case in line.failures:
            blamed.setdefault(case, []).append(line.figure.number)
    failures = [
        f"  {', '.join(numbers)} {case.module}::{case.name}: {case.trouble[:200]}" for case, numbers in blamed.items()
    ]
    total = f"{counts['good']} good, {counts['BAD']} bad, {counts['not run']} not run; {seconds:.0f} s"
    return "\n".join([*failures, total])


def status(found: Sequence[Line]) -> int:
    if any(line.verdict == "BAD" for line in found):
        return 1
    return 3 if any(line.verdict == "not run" and line.due for line in found) else 0


def plan_from(arguments: Sequence[str]) -> Plan:
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__)
    parser.add_argument("--full", action="store_const", dest="tiers", const="CN", help="those of the night too")
    parser.add_argument("--release", action="store_const", dest="tiers", const="CNW", help="all there are")
    parser.add_argument("--only", default="", help="these, whatever their tier: R04,R15/C")
    parser.add_argument("--report", type=Path, help="take tests from this JUnit report and run none")
    parser.add_argument(
        "--exitfirst",
        action="store_const",
        const=("--exitfirst",),
        default=(),
        help="run no further test after one failed",
    )
    parser.set_defaults(tiers="C")
    asked = parser.parse_args(arguments)
    only = frozenset(number for number in asked.only.split(",") if number)
    if unknown := only.difference(*map(names_of, ALL)):
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    if asked.report is not None and not asked.report.exists():
        parser.error(f"no such report: {asked.report}")
    return Plan(asked.tiers, only, asked.report, asked.exitfirst)


def main() -> int:
    plan = plan_from(sys.argv[1:])
    started = time.perf_counter()
    found: list[Line] = []
    print(row(HEADER), flush=True)
    with tempfile.TemporaryDirectory(prefix="trust-") as folder:
        for line in lines(ALL, plan, Path(folder)):
            found.append(line)
            print(line.text(), flush=True)
    print(told(found, time.perf_counter() - started))
    return status(found)
