"""The test reports that the last step of .ci/run accepts and refuses."""

import subprocess
import sys
from pathlib import Path

CI = Path(__file__).resolve().parent.parent / ".ci"
SUMMARY = CI / "summary.py"
PASSED = '<testcase classname="tests.a" name="passes"/>'
FAILED = '<testcase classname="tests.a" name="fails"><failure message="no"/></testcase>'
BROKEN = '<testcase classname="tests.a" name="breaks"><error message="no fixture"/></testcase>'
SKIPPED = '<testcase classname="tests.a" name="waits"><skipped type="pytest.skip" message="no moon"/></testcase>'
XFAILED = '<testcase classname="tests.a" name="known"><skipped type="pytest.xfail" message="bug"/></testcase>'


def summary(tmp_path: Path, cases: str, *allowed: str) -> tuple[int, str]:
    """Return the exit status and the output for a report with these cases."""
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(SUMMARY), str(report), *allowed], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines(keepends=True)
    return done.returncode, "".join(line for line in lines if not line.startswith("ci: slowest:"))


def test_the_ten_slowest_files_are_named_first(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    cases = [f'<testcase classname="tests.f{number}" name="a" time="{number}.5"/>' * 2 for number in range(12)]
    report.write_text(f"<testsuites>{''.join(cases)}</testsuites>", encoding="utf-8")
    lines = subprocess.run(
        [sys.executable, str(SUMMARY), str(report)], capture_output=True, text=True, check=True
    ).stdout
    assert lines.splitlines()[0] == "ci: slowest:   23.0 s  tests.f11 (2)"
    assert lines.count("slowest") == 10


def test_reports_are_joined_and_a_missing_one_is_left_out(tmp_path: Path) -> None:
    for name in ("a", "b"):
        case = f'<testcase classname="tests.{name}" name="passes"/>'
        (tmp_path / f"{name}.xml").write_text(
            f"<testsuites><testsuite>{case}</testsuite></testsuites>", encoding="utf-8"
        )
    joined = tmp_path / "joined.xml"
    reports = [str(tmp_path / name) for name in ("a.xml", "missing.xml", "b.xml")]
    subprocess.run([sys.executable, str(CI / "join_reports.py"), str(joined), *reports], check=True)
    done = subprocess.run([sys.executable, str(SUMMARY), str(joined)], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("ci: 2 passed, 0 failed, 0 skipped\n")


def test_a_clean_report_passes_and_is_counted(tmp_path: Path) -> None:
    assert summary(tmp_path, PASSED * 3 + XFAILED) == (0, "ci: 3 passed, 0 failed, 1 skipped\n")


def test_failures_and_errors_are_counted_and_fail(tmp_path: Path) -> None:
    code, output = summary(tmp_path, PASSED + FAILED + BROKEN)
    assert code == 1
    assert output.endswith("ci: 1 passed, 2 failed, 0 skipped\n")


def test_what_failed_is_named_with_its_message_on_a_line_each(tmp_path: Path) -> None:
    many = FAILED.replace('"no"', '"first&#10;second"') * 100
    _, output = summary(tmp_path, BROKEN + many)
    lines = output.splitlines()
    assert lines[:2] == ["ci: tests.a::breaks: error: no fixture", "ci: tests.a::fails: failure: first second"]
    assert len(lines) == 61


def test_a_skip_nobody_agreed_to_fails_with_its_reason(tmp_path: Path) -> None:
    code, output = summary(tmp_path, PASSED + SKIPPED)
    assert code == 1
    assert "tests.a::waits: no moon" in output
    assert summary(tmp_path, PASSED + SKIPPED, "no sun")[0] == 1


def test_an_agreed_skip_passes(tmp_path: Path) -> None:
    assert summary(tmp_path, PASSED + SKIPPED, "no sun", "no moon") == (0, "ci: 1 passed, 0 failed, 1 skipped\n")


def test_a_report_without_tests_fails(tmp_path: Path) -> None:
    assert summary(tmp_path, "") == (1, "ci: 0 passed, 0 failed, 0 skipped\n")
