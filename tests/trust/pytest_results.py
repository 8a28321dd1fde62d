"""Reads pytest's XML report, or runs pytest, to get the tests of each figure."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests.support.gateway import ROOT
from tests.trust.figure_types import Case, Tests

PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal")


def cases_of(report: Path) -> list[Case]:
    """Return every test of a report. Return an empty list if there is no report."""
    if not report.exists():
        return []
    root = ElementTree.parse(report).getroot()  # noqa: S314 - pytest wrote it
    return [_case(element) for element in root.iter("testcase")]


def _case(element: ElementTree.Element) -> Case:
    module, name = element.get("classname", ""), element.get("name", "")
    seconds = float(element.get("time", "0"))
    failed = next(chain(element.iter("failure"), element.iter("error")), None)
    if failed is not None:
        return Case(module, name, "failed", seconds, failed.get("message", "").partition("\n")[0])
    skipped = element.find("skipped")
    if skipped is not None:
        return Case(module, name, "skipped", seconds, skipped.get("message", ""))
    return Case(module, name, "passed", seconds)


def selected(cases: Iterable[Case], node: str) -> Iterator[Case]:
    """Yield the tests that pytest would have run for a path or a node id, which may omit the parameters."""
    path, _, name = node.partition("::")
    module = path.removesuffix(".py").strip("/").replace("/", ".")
    for case in cases:
        if case.module != module and not case.module.startswith(f"{module}."):
            continue
        if not name or case.name == name or case.name.startswith(f"{name}["):
            yield case


def run(tests: Sequence[Tests], report: Path, options: Sequence[str]) -> None:
    """Run the tests of all these figures once, with these options of pytest, and write the report.

    Missing files and collection errors do not prevent the others from running. Print to stderr if pytest ended without
    a report.
    """
    nodes = dict.fromkeys(node for each in tests for node in each.selection)
    there = [node for node in nodes if (ROOT / node.partition("::")[0]).exists()]
    command = [*PYTEST, "--continue-on-collection-errors", f"--junitxml={report}", *options, *there]
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if not report.exists():
        print(f"pytest ended with {done.returncode}: {done.stderr}", file=sys.stderr)
