"""The wording of docstrings and comments: the words and habits that the glossary replaces, and the lines that still
contain them.

`python -m tests.support.plain_words PATH...` lists them, with file and line; without a path the uses in the documents.
"""

import ast
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

HABITS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "what, as a noun": r"\bwhat\b",
        "where, for if": r"\bwhere\b",
        "none, in place of no or None": r"(?<![\w`'\"=])none\b(?!\*)",
        "tell, for report or return": r"\b(tells?|told|telling)\b(?! apart)",
        "whoever, nobody, somebody": r"\b(whoever|who|nobody|somebody|someone|anybody|no one)\b",
        "those, that of": r"\b(those|that of)\b",
        "ask, for call": r"\b(ask|asks|asked|asking)\b(?! for)",
        "kept, for cached or stored": r"\bkept\b",
        "answer, for response": r"\banswers?\b",
        "piece, for chunk": r"\bpieces?\b",
        "member, for field": r"\bmembers?\b",
        "table, for configuration": r"\btables?\b(?!-driven)",
        "place, for slot": r"\bplaces?\b",
        "turn, for iteration": r"\bturns? of the (event )?loop\b|\bthis turn\b|\bat the next turn\b",
        "thinking, for reasoning": r"\b(thoughts?|thinking)\b(?!`)",
        "phrases of our own": r"\b(aside|under way|in force|as it came|passed over|left alone|on trial|as usual)\b"
        r"|\broll call\b|\b(desks?|wish(es|ed)?|(?<!in )flights?|ink|houses?|floors?|voices?|faces?)\b",
        "no more, any more": r"\b(no|any) more\b",
        "see, alone": r"^See [^.]+\.?$",
    }.items()
}
"""A stranger has to read a sentence with such a habit twice. Some of the words have good uses; their counts may stay
above zero, but may only fall."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One use of a habit, on a line of a file."""

    path: Path
    line: int
    habit: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}: {self.habit}: {self.text}"


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of docstrings, of texts below constants and of comments, with their numbers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number, line in enumerate(node.value.value.splitlines(), node.lineno):
                yield number, line.strip()
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def prose_of_document(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a Markdown document outside its blocks of code, with their numbers."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield number, line.strip()


def findings_in(path: Path) -> Iterator[Finding]:
    """Yield the habits of a Python file or a Markdown document, in the order of its lines."""
    text = path.read_text(encoding="utf-8")
    for number, line in sorted(prose_of(text) if path.suffix == ".py" else prose_of_document(text)):
        text = re.sub(r"``?[^`]*``?", "`code`", line)
        for habit, pattern in HABITS.items():
            for _ in pattern.finditer(text):
                yield Finding(path, number, habit, line)


def files_of(*places: str, suffix: str = ".py") -> list[Path]:
    """Return the files with this suffix under folders of the project, and the files that are named themselves."""
    roots = [ROOT / place for place in places]
    return [path for root in roots for path in ([root] if root.is_file() else sorted(root.rglob(f"*{suffix}")))]


def documents() -> list[Path]:
    """Return the Markdown documents of the project."""
    folders = ("docs", "config", "providers", "proxy", "deploy", "tests")
    return [*sorted(ROOT.glob("*.md")), *files_of(*folders, suffix=".md")]


def counts_in(paths: Iterable[Path]) -> Counter[str]:
    """Return the number of uses of each habit in files."""
    return Counter(finding.habit for path in paths for finding in findings_in(path))


if __name__ == "__main__":
    found = [each for path in (files_of(*sys.argv[1:]) if sys.argv[1:] else documents()) for each in findings_in(path)]
    print(*found, sep="\n")
    print(*(f"{count:6} {habit}" for habit, count in Counter(each.habit for each in found).most_common()), sep="\n")
