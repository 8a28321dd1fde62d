"""Joins pytest's XML reports into one. A report that is missing is left out: its run is a failed step of its own.

Usage: join_reports.py JOINED.xml REPORT.xml...
"""

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(arguments: list[str]) -> int:
    """Write the joined report. 1 if no report is there."""
    joined, *paths = map(Path, arguments)
    root = ElementTree.Element("testsuites")
    for path in paths:
        if path.exists():
            root.extend(ElementTree.parse(path).getroot())  # noqa: S314 - pytest wrote it a moment ago
    ElementTree.ElementTree(root).write(joined, encoding="utf-8", xml_declaration=True)
    return 0 if len(root) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
