"""What can be wrong with a table, and where: positions, problems, nearest names. Never how a table is checked."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Where a value sits in the table: keys and list indices from the root, as in `("vendors", "openai", "api_key")`."""

_LONGEST_NAME = 120


class Position(NamedTuple):
    """A place in a file. Lines and columns count from 1, columns in characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{one_line(self.file)}:{self.line}:{self.column}"


Locate = Callable[[Path], Position]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing the operator has to change; holds no secret and no text of the file beyond key names."""

    file: str
    line: int
    column: int
    path: str
    message: str

    @classmethod
    def at(cls, position: Position, path: Path, message: str) -> "Problem":
        return cls(position.file, position.line, position.column, dotted(path), one_line(message))

    def __str__(self) -> str:
        place = f"{one_line(self.file)}:{self.line}:{self.column}"
        return f"{place} {self.path}: {self.message}" if self.path else f"{place} {self.message}"


class ConfigError(Exception):
    """A table that cannot be used; carries every problem found, in file order. Safe to print and to log."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def dotted(path: Path) -> str:
    """`("models", "a/b", "weight")` as `models.a/b.weight`."""
    return ".".join(shown(str(step)) for step in path)


def shown(name: str) -> str:
    """A name the operator wrote, cut to a length that fits a line."""
    text = one_line(name)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def one_line(text: str) -> str:
    """The text with line breaks and control characters escaped: one problem is one line, whatever its names hold."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A clause that names the nearest known names, or nothing when none is near."""
    near = difflib.get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(shown(each) for each in near)}?" if near else ""
