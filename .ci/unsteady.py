"""Notes in pytest's XML report which of its failed tests pass when asked once more, alone. Never runs a test.

A test that drives real sockets and programs can fail because the machine was busy; one that fails alone too is broken.
Such a failure becomes a `flakyFailure`, as in Maven Surefire's reports, and summary.py names it: it is to be mended.

Usage: unsteady.py REPORT.xml            0 where failed tests may be asked again: from 1 to MOST of them
       unsteady.py REPORT.xml AGAIN.xml  rewrites REPORT.xml; 0 where each of its failed tests passed in AGAIN.xml
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

MOST = 3
"""Failed tests that are asked again; more of them are no accident."""

OUTCOMES = ("failure", "error")


def tests(report: ElementTree.Element, failed: bool) -> dict[tuple[str, str], list[ElementTree.Element]]:
    """The tests that failed, or those that passed, by class and name. One may be there twice: its end can fail too."""
    found: dict[tuple[str, str], list[ElementTree.Element]] = {}
    for case in report.iter("testcase"):
        if any(case.find(outcome) is not None for outcome in OUTCOMES) == failed and case.find("skipped") is None:
            found.setdefault((case.get("classname", ""), case.get("name", "")), []).append(case)
    return found


def note(report: ElementTree.Element, again: ElementTree.Element) -> bool:
    """Rename the failures of tests that passed again. Returns whether that is all of them."""
    passed = tests(again, failed=False).keys() - tests(again, failed=True).keys()
    failed = tests(report, failed=True)
    for name in passed & failed.keys():
        for case in failed[name]:
            for outcome in OUTCOMES:
                for found in case.findall(outcome):
                    found.tag = "flakyFailure"
    return failed.keys() <= passed


def main(arguments: list[str]) -> int:
    """See the module."""
    path = Path(arguments[0])
    if not path.exists():
        return 1
    report = ElementTree.parse(path)  # noqa: S314 - pytest wrote it a moment ago
    root = report.getroot()
    if len(arguments) == 1:
        return 0 if 1 <= len(tests(root, failed=True)) <= MOST else 1
    again = ElementTree.parse(Path(arguments[1])).getroot()  # noqa: S314
    steady = note(root, again)
    report.write(path, encoding="utf-8", xml_declaration=True)
    return 0 if steady else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
