"""The board's lines for tests and measurements. A figure that was not run is never good."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.looped import looped
from tests.trust.board import (
    ALL,
    HEADER,
    Line,
    Plan,
    by_measure,
    by_tests,
    lines,
    plan_from,
    row,
    status,
    told,
    verdicts,
)
from tests.trust.figure_types import Case, Figure, NotHeld, Result, Tests

FIGURE = Figure("R98", "a figure", "a target", "C", Tests(("tests/a/test_b.py::test_c", "tests/d")))
PASSED = Case("tests.a.test_b", "test_c[1]", "passed", 0.5)
ALSO = Case("tests.d.test_e", "test_f", "passed", 0.25)
FAILED = replace(ALSO, state="failed", trouble="assert 1 == 2")
SKIPPED = replace(ALSO, state="skipped", trouble="no moon")


def held(*cases: Case) -> Line:
    assert isinstance(FIGURE.how, Tests)
    return by_tests(FIGURE, FIGURE.how, cases)


def test_tests_that_all_passed_are_good() -> None:
    line = held(PASSED, ALSO, Case("tests.z", "test_other", "failed", 9.0))
    assert (line.verdict, line.value, line.seconds) == ("good", "2 of 2 tests passed", 0.75)


def test_one_that_failed_is_bad_whatever_else_was_run() -> None:
    assert held(PASSED, FAILED).failures == (FAILED,)
    assert [held(PASSED, FAILED).verdict, held(FAILED).verdict] == ["BAD", "BAD"]
    assert "R98 tests.d.test_e::test_f: assert 1 == 2" in told([held(PASSED, FAILED)], 1.0)


@looped(
    ("cases", "reason"),
    [
        ((), "no test ran of tests/a/test_b.py::test_c, tests/d"),
        ((PASSED,), "no test ran of tests/d"),
        ((PASSED, SKIPPED), "1 tests skipped: no moon"),
        ((replace(PASSED, name="test_cat"), ALSO), "no test ran of tests/a/test_b.py::test_c"),
    ],
)
def test_what_was_not_run_or_skipped_is_not_good(cases: tuple[Case, ...], reason: str) -> None:
    line = held(*cases)
    assert (line.verdict, line.value) == ("not run", reason)
    assert status([line]) == 3


def test_a_measurement_that_breaks_is_bad_and_says_how() -> None:
    def breaks(folder: Path) -> Result:
        raise RuntimeError(f"no {folder.is_dir()}\nmore")

    line = by_measure(FIGURE, breaks)
    assert (line.verdict, line.value) == ("BAD", "RuntimeError: no True")
    assert by_measure(FIGURE, lambda folder: Result("7", True)).verdict == "good"


def test_a_figure_of_another_tier_is_not_run_and_says_by_what_it_is() -> None:
    night = Figure("R97", "a", "b", "N", lambda folder: Result("7", True))
    none = Figure("R96", "a", "b", "C", NotHeld("by hand"))
    found = list(lines((night, none), Plan("C"), Path()))
    assert [(line.verdict, line.value) for line in found] == [
        ("not run", "by `make trust-full`"),
        ("not run", "by hand"),
    ]
    assert status(found) == 0
    assert [line.verdict for line in lines((night,), Plan("C", frozenset({"R97/N"})), Path())] == ["good"]


def test_the_exit_status_is_that_of_the_worst() -> None:
    good, bad = Line(FIGURE, "good", ""), Line(FIGURE, "BAD", "")
    assert [status([good]), status([good, held()]), status([held(), bad, good])] == [0, 3, 1]


def test_a_report_of_the_whole_suite_is_taken_without_running_anything(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_b" name="test_c[x]" time="1.5"/>'
        '<testcase classname="tests.d" name="test_e"><failure message="no&#10;more">text</failure></testcase>'
        "</testsuite></testsuites>",
        "utf-8",
    )
    (line,) = lines((FIGURE,), Plan("C", report=report), tmp_path)
    assert (line.verdict, line.value, line.seconds) == ("BAD", "1 of 2 tests passed", 1.5)
    assert line.failures[0].trouble == "no"


def test_the_printed_verdicts_can_be_read_again() -> None:
    long = replace(FIGURE, title="a title that is far too long for its column, good or BAD", target="t " * 60)
    text = "\n".join([row(HEADER), Line(long, "not run", "v " * 90).text(), Line(FIGURE, "BAD", "x", 12.3).text()])
    assert list(verdicts(text)) == [("R98/C", "not run"), ("R98/C", "BAD")]


def test_the_command_line_chooses_tiers_and_figures() -> None:
    chosen = {
        words: {figure.tier for figure in ALL if plan_from(words.split()).wants(figure)}
        for words in ("", "--full", "--release")
    }
    assert chosen == {"": {"C"}, "--full": {"C", "N"}, "--release": {"C", "N", "W"}}
    assert {figure.number for figure in ALL if plan_from(["--only", "R04,R15/C"]).wants(figure)} == {"R04", "R15"}
    for wrong in (["--only", "R99"], ["--report", "/nowhere/tests.xml"]):
        with pytest.raises(SystemExit):
            plan_from(wrong)
