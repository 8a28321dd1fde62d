"""Problems of a configuration: positions, messages and similar names."""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

Path = tuple[str | int, ...]
"""The path of a value: keys and list indices from the root, as in `("vendors", "openai", "api_key")`."""

_MOST_NAME_CHARACTERS = 120

_SECRET: Final = re.compile(
    r"(?<![A-Za-z0-9])(sk[-_]|nvapi-|AIza|eyJ)[A-Za-z0-9_-]+|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}"
)
"""Text that looks like a credential: a vendor's prefix, or a run of 20 or more letters and digits."""

_SHOWN_SECRET_CHARACTERS: Final = 3
"""The characters of a secret that messages show. The operator can recognise the key by them, and they hold only its
prefix."""


class Position(NamedTuple):
    """A position in a file. Lines and columns count from 1, columns in characters. `line` is 0 if the position has no
    line. Then messages show only `file`."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        file_name = one_line(self.file)
        return f"{file_name}:{self.line}:{self.column}" if self.line else file_name


COMMAND_LINE: Final = Position("the command line", 0, 0)
"""The position of a command line option that overrides the configuration; the position has no line."""

Locate = Callable[[Path], Position]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake of the operator. It holds no secret, and no text of the file except names of keys."""

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
        shown_position = f"{position.file}," if position == COMMAND_LINE else str(position)
        return f"{shown_position} {self.path}: {self.message}" if self.path else f"{shown_position} {self.message}"


class ConfigError(Exception):
    """A configuration that cannot be used, with every problem in file order. Safe to print and to log."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def dotted(path: Path) -> str:
    """Return `models.a/b.weight` for `("models", "a/b", "weight")`. If YAML read `key:value` as one key, only the part
    before the colon is shown."""
    return ".".join(
        shown(str(step) if (glued := glued_key(path[: index + 1])) is None else glued)
        for index, step in enumerate(path)
    )


def glued_key(path: Path) -> str | None:
    """Return the part before the colon of the path's last key if YAML read `key:value` as one key, since no space
    follows the colon; else `None`. Only names of models and routes may hold colons."""
    of_team = path[2:-1] if path[:1] == ("teams",) else ()
    may_hold_colons = path[:-1] in (("models",), ("routes",)) or of_team in (("routes",), ("limits", "models"))
    key, colon, _ = str(path[-1]).partition(":")
    return key if colon and not may_hold_colons else None


def shown(name: str) -> str:
    """Return a name as messages show it: cut to fit a line, and masked if it looks like a secret."""
    text = one_line(_SECRET.sub(lambda found: f"{found[0][:_SHOWN_SECRET_CHARACTERS]}…", name))
    return text if len(text) <= _MOST_NAME_CHARACTERS else text[: _MOST_NAME_CHARACTERS - 1] + "…"


def one_line(text: str) -> str:
    """Return the text with line breaks and control characters escaped, so that one problem is one line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def did_you_mean(name: str, known: Iterable[str], below: str = "") -> str:
    """Return a clause with the three most similar known names, ignoring case. Each is followed by `/` and `below` if
    `below` is given. Return empty text if no name is similar."""
    written: dict[str, list[str]] = {}
    for each in known:
        written.setdefault(each.casefold(), []).append(each)
    folded = name.casefold()
    keys = [folded] if folded in written else difflib.get_close_matches(folded, written, n=3)
    near = [each for key in keys for each in written[key]][:3]
    meant = " or ".join(shown(f"{each}/{below}" if below else each) for each in near)
    return f"; did you mean {meant}?" if meant else ""
