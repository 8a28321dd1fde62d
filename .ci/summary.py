"""Reads pytest's XML report: names failures and the slowest files, refuses skips without an agreed reason, prints the
count. Never runs a test.

What failed in the crowd and passed alone (see unsteady.py) is named and does not fail the run.

Usage: summary.py REPORT.xml [ALLOWED SKIP REASON]...
"""

import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from xml.etree import ElementTree

FAILED_OUTCOMES = ("failure", "error")
MOST_NAMED = 60
"""The most failures that are named. A log that is cut keeps its end."""
SLOWEST = 10
"""The number of files that are named as the slowest."""
MOST_OF_A_MESSAGE = 500
"""The most characters of a failure's message that are shown."""


def failures(report: ElementTree.Element, outcomes: Collection[str] = FAILED_OUTCOMES) -> list[str]:
    """Tests with these outcomes, as `test: outcome: message` on one line each."""
    return [
        f"{case.get('classname')}::{case.get('name')}: {outcome}: "
        + " ".join((found.get("message") or "").split())[:MOST_OF_A_MESSAGE]
        for case in report.iter("testcase")
        for outcome in outcomes
        for found in case.iter(outcome)
    ]


def slowest_files(report: ElementTree.Element, most: int = SLOWEST) -> list[str]:
    """The files whose tests took longest, as `seconds s  tests.of.a.file (tests)` on one line each."""
    seconds: dict[str, float] = {}
    tests: Counter[str] = Counter()
    for case in report.iter("testcase"):
        name = case.get("classname", "")
        seconds[name] = seconds.get(name, 0.0) + float(case.get("time", "0"))
        tests[name] += 1
    longest = sorted(seconds, key=seconds.__getitem__, reverse=True)[:most]
    return [f"{seconds[name]:6.1f} s  {name} ({tests[name]})" for name in longest]


def refused_skips(report: ElementTree.Element, allowed: Collection[str]) -> list[str]:
    """Skipped tests, as `test: reason`, whose reason holds no allowed text; expected failures are no skips."""
    skips = (
        (f"{case.get('classname')}::{case.get('name')}", skip.get("message") or "no reason given")
        for case in report.iter("testcase")
        for skip in case.iter("skipped")
        if skip.get("type") != "pytest.xfail"
    )
    return [f"{test}: {reason}" for test, reason in skips if not any(text in reason for text in allowed)]


def main(arguments: list[str]) -> int:
    """0 when every test passed, was expected to fail, or was skipped for an allowed reason; otherwise 1."""
    path, *allowed = arguments
    report = ElementTree.parse(Path(path)).getroot()  # noqa: S314 - pytest wrote this file a moment ago
    cases = list(report.iter("testcase"))
    failed = sum(any(case.find(outcome) is not None for outcome in FAILED_OUTCOMES) for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    refused = refused_skips(report, allowed)
    for line in slowest_files(report):
        print(f"ci: slowest: {line}")
    for line in failures(report)[:MOST_NAMED]:
        print(f"ci: {line}")
    for line in failures(report, ("flakyFailure",)):
        print(f"ci: unsteady, passed alone: {line}")
    for line in refused:
        print(f"ci: skipped without an agreed reason: {line}")
    print(f"ci: {len(cases) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or refused or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
