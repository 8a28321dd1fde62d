"""The failures that .ci/run attributes to the machine, and their names."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_ci_summary import BROKEN, FAILED, PASSED, SKIPPED, summary

FAILED_PASSES = '<testcase classname="tests.a" name="fails"/>'
BROKEN_PASSES = '<testcase classname="tests.a" name="breaks"/>'
UNSTEADY = Path(__file__).resolve().parent.parent / ".ci" / "unsteady.py"


def unsteady(tmp_path: Path, cases: str, again: str | None = None) -> tuple[int, str]:
    """Return the exit status for a report with these cases, and the cases of the report afterwards."""
    reports = [tmp_path / "report.xml", tmp_path / "again.xml"][: 1 if again is None else 2]
    for report, each in zip(reports, (cases, again), strict=False):
        report.write_text(f"<testsuites><testsuite>{each}</testsuite></testsuites>", encoding="utf-8")
    done = subprocess.run([sys.executable, str(UNSTEADY), *map(str, reports)], capture_output=True, check=False)
    assert done.stderr == b""
    text = reports[0].read_text(encoding="utf-8")
    return done.returncode, text.partition("<testsuite>")[2].partition("</testsuite>")[0]


@pytest.mark.parametrize(("failures", "status"), [(0, 1), (1, 0), (3, 0), (4, 1), (100, 1)])
def test_only_a_few_failures_are_asked_again(tmp_path: Path, failures: int, status: int) -> None:
    cases = "".join(FAILED.replace('"fails"', f'"fails[{number}]"') for number in range(failures))
    assert unsteady(tmp_path, PASSED + SKIPPED + cases)[0] == status


def test_a_test_whose_end_fails_as_well_is_one(tmp_path: Path) -> None:
    assert unsteady(tmp_path, (FAILED + FAILED.replace("failure", "error")) * 3)[0] == 0


def test_what_passes_alone_no_longer_fails_the_run_and_is_named(tmp_path: Path) -> None:
    status, cases = unsteady(tmp_path, PASSED + FAILED + BROKEN, FAILED_PASSES + BROKEN_PASSES)
    assert status == 0
    assert summary(tmp_path, cases) == (
        0,
        "ci: unsteady, passed alone: tests.a::fails: flakyFailure: no\n"
        "ci: unsteady, passed alone: tests.a::breaks: flakyFailure: no fixture\n"
        "ci: 3 passed, 0 failed, 0 skipped\n",
    )


@pytest.mark.parametrize(
    "again",
    [
        FAILED_PASSES,
        FAILED_PASSES + BROKEN,
        FAILED_PASSES + BROKEN_PASSES + BROKEN,
        FAILED_PASSES + SKIPPED.replace('"waits"', '"breaks"'),
        "",
    ],
    ids=["not asked", "fails alone too", "its end fails", "skipped", "nothing was asked"],
)
def test_what_did_not_pass_alone_fails_the_run(tmp_path: Path, again: str) -> None:
    status, cases = unsteady(tmp_path, PASSED + FAILED + BROKEN, again)
    assert status == 1
    code, told = summary(tmp_path, cases)
    assert (code, "tests.a::breaks: error: no fixture" in told) == (1, True)


def test_without_a_report_nothing_is_asked_again(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(UNSTEADY), str(tmp_path / "none.xml")], check=False)
    assert done.returncode == 1
