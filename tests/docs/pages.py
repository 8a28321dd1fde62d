"""The pages that people write, and their parts: blocks of examples, links, sections, rows."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Final

from tests.docs.marked_pages import DOCS, ROOT

GENERATED: Final = frozenset({"reference/cli.md", "reference/log.md", "reference/metrics.md"})
"""Pages below `docs` that are generated as a whole, beside the pages of the profiles."""

GUIDES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(
        path
        for path in DOCS.rglob("*.md")
        if path.relative_to(DOCS).as_posix() not in GENERATED
        and (path.parent.name != "vendors" or path.name == "index.md")
    ),
)

READMES: Final = (
    *(ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"),
    *sorted(ROOT.glob("*/README.md")),
    *sorted(ROOT.glob("proxy/*/README.md")),
    *sorted(ROOT.glob("tests/*/README.md")),
)

WRITTEN: Final = (*GUIDES, *READMES)

_BLOCK: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_FENCED: Final = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2$", re.MULTILINE | re.DOTALL)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    """Return the path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of one language, in order and without the indentation of a list."""
    return [dedent(content) for _, name, content in _BLOCK.findall(text) if name == language]


def without_blocks(text: str) -> str:
    return _FENCED.sub("", text)


def links(text: str) -> list[str]:
    """Return the targets of the links to other files or to headings."""
    found = re.findall(r"\]\(([^()\s]+)\)", without_blocks(text))
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as the site and the repository's host make them."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def section(text: str, title: str) -> str:
    """Return the text below a heading of the second level."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def quoted(text: str) -> list[str]:
    """Return everything in backticks."""
    return re.findall(r"`([^`]+)`", text)


def rows(text: str) -> list[list[str]]:
    """Return the cells of each row below a header."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for index, row in enumerate(cells) if f"{lines[index]}\n|---" not in text]
