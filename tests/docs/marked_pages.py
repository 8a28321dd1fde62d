"""Pages of which a part is generated: the text between two marks, each an HTML comment."""

from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"


def in_cell(code: str) -> str:
    """Return a code span for a cell of a Markdown row; a `|` in backticks would end the cell, or keep its backslash."""
    return f"<code>{escape(code).replace('|', '&#124;')}</code>" if "|" in code else f"`{code}`"


def replaced(page: str, begin: str, text: str, end: str) -> str:
    """Return the page with `text` between its marks. Raises ValueError if a mark is missing."""
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"the page has lost the mark {begin if not found_begin else end}")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"
