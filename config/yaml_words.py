"""What makes a text no YAML, in words of its lines: indentation, colons, quotes, brackets. Never how a text is parsed.

PyYAML has two parsers, with wordings of their own; a sentence here stands for what both say of one mistake. No message
repeats the text, which may hold a secret.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import yaml

LINE_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")

_CONFLICT: Final = re.compile(r"(<<<<<<<|>>>>>>>)( |$)|=======$")
"""What version control leaves in a file that it could not merge."""

_HANDLE: Final = re.compile(r" '![^']*'")
"""The one thing of the text that a message of PyYAML's quotes whole."""


class Mark(Protocol):
    """A place as either of PyYAML's parsers gives it; both count from 0."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Slip:
    """Where a parser gave up, and the lines up to there. `opened` is where what it was in begins, counted from 1."""

    lines: Sequence[str]
    line: int
    column: int
    opened: tuple[int, int] | None

    @property
    def before(self) -> str:
        """The line up to the place, and one character more."""
        return self.lines[self.line - 1][: self.column] if self.line <= len(self.lines) else ""

    @property
    def own(self) -> str:
        return self.lines[self.line - 1] if self.line <= len(self.lines) else ""

    @property
    def since(self) -> str:
        return f" that starts at {self.opened[0]}:{self.opened[1]}" if self.opened else ""

    def above(self) -> Iterator[tuple[int, str]]:
        """The lines that say something above this one, from the nearest on, each with its number."""
        for number in range(min(self.line - 1, len(self.lines)), 0, -1):
            content = self.lines[number - 1].strip()
            if content and not content.startswith("#"):
                yield number, self.lines[number - 1]


def syntax_fault(error: yaml.MarkedYAMLError, at: tuple[int, int], text: str) -> tuple[tuple[int, int], str]:
    """Where the text stops being YAML, and why; `at` is the place that the parser names. Lines and columns from 1."""
    opened = error.context_mark
    begun = (opened.line + 1, opened.column + 1) if opened else None
    slip = _Slip(LINE_BREAK.split(text), *at, begun)
    said = f"{error.problem or ''} {error.context or ''}"
    place, why = at, _whatever_it_is(slip)
    if why is None and begun is not None and _NEVER_CLOSED.search(said):
        place, why = _never_closed(slip.lines[begun[0] - 1], begun)
    return place, f"not YAML: {why or _by_wording(said, slip) or _as_said(error, slip)}"


def _as_said(error: yaml.MarkedYAMLError, slip: _Slip) -> str:
    problem = _HANDLE.sub("", error.problem or "cannot be read")
    return f"{problem} {error.context}{slip.since}" if error.context and slip.opened else problem


def _by_wording(said: str, slip: _Slip) -> str | None:
    found = (explain(slip) for wording, explain in _EXPLAINED if re.search(wording, said))
    return next(found, None)


# Slips that either parser meets in many ways ------------------------------------------------------------------------


def _whatever_it_is(slip: _Slip) -> str | None:
    for number, line in enumerate(slip.lines, 1):
        if _CONFLICT.match(line):
            return f"a merge conflict was left in the file, at line {number}"
    if "\t" in slip.before[: _indent(slip.before) + 1]:
        return "YAML is indented with spaces, never tabs"
    if slip.before.endswith("${"):
        return 'inside { } and [ ] a reference needs quotes: "${VAR}"'
    return None


# What the parsers say, and what it comes from -----------------------------------------------------------------------


def _second_colon(slip: _Slip) -> str:
    """A colon where no key can be: a value with one in it, a line too far to the right, or none on the one above."""
    number, above = next(slip.above(), (0, ""))
    if re.search(r":\s", slip.before[:-1]):
        return "a second colon on this line: put the value in quotes if it holds one"
    if not above:
        return "a colon where no key can be"
    content = above.strip().removeprefix("- ")
    if re.fullmatch(r"[^\s\"']+:[^\s/].*", content) and not re.search(r":\s", content):
        return f"line {number} lacks the space after its colon: key: value"
    if ":" not in content:
        return f"line {number} has no colon: a key is followed by one, as in key: value"
    if _indent(slip.own) > _indent(above):
        return _too_deep(slip, number, above)
    return "a colon where no key can be: is the value above it quoted and closed?"


def _no_key(slip: _Slip) -> str:
    """A mapping goes on with something else than a key, mostly at an indentation that nothing above it has."""
    indent = _indent(slip.own)
    if slip.column - 1 != indent:
        return "something follows a value that has ended: put the whole value in quotes, or begin another line"
    if slip.opened is not None and slip.column == slip.opened[1]:
        return f"a list element (-) among the keys of the mapping{slip.since}: indent the list below a key of its own"
    number, above = next(slip.above(), (0, ""))
    return _too_deep(slip, number, above) if indent > _indent(above) else _fits_nothing(slip, indent)


def _too_deep(slip: _Slip, number: int, above: str) -> str:
    return (
        f"this line is indented by {_spaces(_indent(slip.own))}, but line {number}, indented by {_indent(above)}, has "
        "a value already: give both the same indentation"
    )


def _fits_nothing(slip: _Slip, indent: int) -> str:
    fitting: dict[int, int] = {}
    least: int | None = None
    for number, line in slip.above():
        if least is None or _indent(line) < least:
            least = _indent(line)
            fitting[least] = number
    places = ", ".join(f"line {number} has {each}" for each, number in list(fitting.items())[:3])
    return f"this line is indented by {_spaces(indent)}, which fits no line above it: {places}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _spaces(count: int) -> str:
    return "1 space" if count == 1 else f"{count} spaces"


def _not_closed(slip: _Slip) -> str:
    return f"the bracket or brace{slip.since} is not closed before here, or a comma is missing in it"


def _no_colon(slip: _Slip) -> str:
    line = slip.opened[0] if slip.opened else slip.line
    return f"line {line} has no colon: a key is followed by one, as in key: value"


_NEVER_CLOSED: Final = re.compile("end of stream.* quoted scalar")
_QUOTED_OR_GLUED: Final = re.compile(
    r"""(?P<space>(?:^|[\s,\[{])["'])  # a quotation mark where one may begin: what it quotes follows
        (?:(?<=")[^"]*"|(?<=')[^']*')
      | [A-Za-z0-9_-](?P<colon>:)["']   # a key, a colon and a value without a space between them
      | (?:^|[{,])\s*[A-Za-z0-9_-]+(?P<gap>\ *)["']   # a key and a value without a colon
    """,
    re.VERBOSE,
)

_LACKING: Final = {
    "colon": "a space is missing after this colon",
    "gap": "a colon is missing here, between the key and its value",
}


def _never_closed(line: str, begun: tuple[int, int]) -> tuple[tuple[int, int], str]:
    """Of a mark that is never closed: it often should close a quotation whose own mark YAML took for part of a key."""
    for found in _QUOTED_OR_GLUED.finditer(line, 0, begun[1]):
        for part, words in _LACKING.items():
            if found[part] is not None and found.end() < begun[1]:
                return (begun[0], found.start(part) + 1), words
    return begun, "the quotation mark that starts here is never closed"


_EXPLAINED: Final[tuple[tuple[str, Callable[[_Slip], str]], ...]] = (
    ("mapping values are not allowed", _second_colon),
    ("(did not find expected key|expected <block end>).* block mapping", _no_key),
    (
        "block collection",
        lambda slip: f"a line of the list{slip.since} has no - before it: write one, or indent it below an element",
    ),
    ("expected ',' or", _not_closed),
    ("could not find expected ':'", _no_colon),
    ("scanning an alias", lambda slip: 'a word that begins with * needs quotes: "*"'),
    ("scanning an anchor", lambda slip: "a word that begins with & needs quotes"),
    ("cannot start any token", lambda slip: "a value cannot begin with this character: put it in quotes"),
    ("sequence entries are not allowed", lambda slip: "a list with - begins on a line of its own, below its key"),
    ("unknown escape character", lambda slip: "in \"...\" a backslash begins an escape: write two, or use '...'"),
    ("node content", lambda slip: "a value is missing here, or a bracket or brace is closed that was never opened"),
    ("<document start>", lambda slip: "the outermost keys all begin at the same column: the lines above are indented"),
)
"""By a pattern over the problem and its context in the words of both parsers, the first that fits."""
