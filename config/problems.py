"""What can be wrong with a table, and where: positions, problems, nearest names. Never how a table is checked."""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

Path = tuple[str | int, ...]
"""Where a value sits in the table: keys and list indices from the root, as in `("vendors", "openai", "api_key")`."""

_LONGEST_NAME = 120

_SECRET: Final = re.compile(
    r"(?<![A-Za-z0-9])(sk[-_]|nvapi-|AIza|eyJ)[A-Za-z0-9_-]+|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}"
)
"""What credentials look like: the vendors' prefixes, and long runs of letters and digits, which no name is made of."""

_SHOWN_OF_SECRET: Final = 3
"""Characters, which tell the operator which key it is: no more than a prefix."""


class Position(NamedTuple):
    """A place in a file. Lines and columns count from 1, columns in characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{one_line(self.file)}:{self.line}:{self.column}"


COMMAND_LINE: Final = Position("the command line", 0, 0)
"""Where a word stands that beats the table's; it has no line."""

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
        position = Position(self.file, self.line, self.column)
        place = f"{position.file}," if position == COMMAND_LINE else str(position)
        return f"{place} {self.path}: {self.message}" if self.path else f"{place} {self.message}"


class ConfigError(Exception):
    """A table that cannot be used; carries every problem found, in file order. Safe to print and to log."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def dotted(path: Path) -> str:
    """`("models", "a/b", "weight")` as `models.a/b.weight`; of a key that holds its value too, the key alone."""
    return ".".join(
        shown(str(step) if (glued := glued_key(path[: index + 1])) is None else glued)
        for index, step in enumerate(path)
    )


def glued_key(path: Path) -> str | None:
    """What stands before the colon of the path's last key: it is one that YAML took for part of the key because no
    space follows it, and a value comes after it. Only models and routes have names with colons."""
    may_hold_colons = path[:-1] in (("models",), ("routes",)) or (path[:1] == ("teams",) and path[2:-1] == ("routes",))
    key, colon, _ = str(path[-1]).partition(":")
    return key if colon and not may_hold_colons else None


def shown(name: str) -> str:
    """A name the operator wrote, cut to a length that fits a line; of what looks like a secret, its beginning."""
    text = one_line(_SECRET.sub(lambda found: f"{found[0][:_SHOWN_OF_SECRET]}…", name))
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def one_line(text: str) -> str:
    """The text with line breaks and control characters escaped: one problem is one line, whatever its names hold."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def did_you_mean(name: str, known: Iterable[str], below: str = "") -> str:
    """A clause that names the nearest known names, or nothing when none is near; each with `/` and `below` behind it
    where that is what the name stood before. Upper and lower case count as the same."""
    written: dict[str, list[str]] = {}
    for each in known:
        written.setdefault(each.casefold(), []).append(each)
    folded = name.casefold()
    keys = [folded] if folded in written else difflib.get_close_matches(folded, written, n=3)
    near = [each for key in keys for each in written[key]][:3]
    meant = " or ".join(shown(f"{each}/{below}" if below else each) for each in near)
    return f"; did you mean {meant}?" if meant else ""
