"""Explain YAML syntax errors by the lines of the file: indentation, colons, quotes, brackets.

PyYAML has two parsers that word the same mistake differently. One message here replaces both wordings. No message
repeats the text, which may hold a secret.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import yaml

LINE_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")

_CONFLICT: Final = re.compile(r"(<<<<<<<|>>>>>>>)( |$)|=======$")
"""The markers of an unresolved merge conflict."""

_KEY_AND_BRACKET: Final = re.compile(r"\s*(?:- +)?[A-Za-z0-9_./*-]+ *[\[{]")
"""A line whose first word would be a key with a value if a colon followed the word."""

_HANDLE: Final = re.compile(r" '![^']*'")
"""The only part of the text that PyYAML's messages quote in full."""


class Mark(Protocol):
    """A position as both of PyYAML's parsers report it. Line and column count from 0."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _SyntaxError:
    """The position at which a parser stopped, counted from 1, the lines of the text, and the position at which the
    enclosing construct was `opened`."""

    lines: Sequence[str]
    line: int
    column: int
    opened: tuple[int, int] | None

    @property
    def before(self) -> str:
        """The line up to and including the character at the position."""
        return self.current[: self.column]

    @property
    def current(self) -> str:
        return self.lines[self.line - 1] if self.line <= len(self.lines) else ""

    @property
    def since(self) -> str:
        return f" that starts at {self.opened[0]}:{self.opened[1]}" if self.opened else ""

    def above(self) -> Iterator[tuple[int, str]]:
        """Yield the number and text of the lines above that hold more than a comment, nearest first."""
        for number in range(min(self.line - 1, len(self.lines)), 0, -1):
            content = self.lines[number - 1].strip()
            if content and not content.startswith("#"):
                yield number, self.lines[number - 1]


def syntax_fault(error: yaml.MarkedYAMLError, at: tuple[int, int], text: str) -> tuple[tuple[int, int], str]:
    """Return the position at which the text stops being YAML (counted from 1), and the message. `at` is the position
    that the parser reported."""
    opened = error.context_mark
    begin = (opened.line + 1, opened.column + 1) if opened else None
    fault = _SyntaxError(LINE_BREAK.split(text), *at, begin)
    wording = f"{error.problem or ''} {error.context or ''}"
    position, why = at, _by_text(fault)
    if why is None and begin is not None and _NEVER_CLOSED.search(wording):
        position, why = _never_closed(fault.lines[begin[0] - 1], begin)
    return position, f"not YAML: {why or _by_wording(wording, fault) or _in_parser_words(error, fault)}"


def _in_parser_words(error: yaml.MarkedYAMLError, fault: _SyntaxError) -> str:
    problem = _HANDLE.sub("", error.problem or "cannot be read")
    return f"{problem} {error.context}{fault.since}" if error.context and fault.opened else problem


def _by_wording(wording: str, fault: _SyntaxError) -> str | None:
    found = (explain(fault) for pattern, explain in _EXPLAINED if re.search(pattern, wording))
    return next(found, None)


# Mistakes that the parsers report in many ways ----------------------------------------------------------------------


def _by_text(fault: _SyntaxError) -> str | None:
    for number, line in enumerate(fault.lines, 1):
        if _CONFLICT.match(line):
            return f"a merge conflict was left in the file, at line {number}"
    if "\t" in fault.before[: _indent(fault.before) + 1]:
        return "YAML is indented with spaces, never tabs"
    if fault.before.endswith("${"):
        return 'inside { } and [ ] a reference needs quotes: "${VAR}"'
    return None


# Mistakes by the parsers' wording -----------------------------------------------------------------------------------


def _second_colon(fault: _SyntaxError) -> str:
    """Explain a colon in a wrong position: inside a value, on a line that is indented too far, or below a line that
    lacks its own colon."""
    number, above = next(fault.above(), (0, ""))
    if re.search(r":\s", fault.before[:-1]):
        return "a second colon on this line: put the value in quotes if it holds one"
    if not above:
        return "a colon where no key can be"
    content = above.strip().removeprefix("- ")
    if re.fullmatch(r"[^\s\"']+:[^\s/].*", content) and not re.search(r":\s", content):
        return f"line {number} lacks the space after its colon: key: value"
    if ":" not in content:
        return f"line {number} has no colon: a key is followed by one, as in key: value"
    if _indent(fault.current) > _indent(above):
        return _too_deep(fault, number, above)
    return "a colon where no key can be: is the value above it quoted and closed?"


def _no_key(fault: _SyntaxError) -> str:
    """Explain a mapping that continues with something other than a key. In most cases, the line has an indentation that
    no line above has."""
    indent = _indent(fault.current)
    if fault.column - 1 != indent:
        if _KEY_AND_BRACKET.match(fault.current):
            return "a colon is missing on this line, between its key and the bracket or brace"
        return "there is text after the end of a value: put the whole value in quotes, or begin another line"
    if fault.opened is not None and fault.column == fault.opened[1]:
        return f"a list element (-) among the keys of the mapping{fault.since}: indent the list below a key of its own"
    number, above = next(fault.above(), (0, ""))
    return _too_deep(fault, number, above) if indent > _indent(above) else _unknown_indentation(fault, indent)


def _too_deep(fault: _SyntaxError, number: int, above: str) -> str:
    return (
        f"this line is indented by {_spaces(_indent(fault.current))}, but line {number}, indented by {_indent(above)}, "
        "has a value already: give both the same indentation"
    )


def _unknown_indentation(fault: _SyntaxError, indent: int) -> str:
    line_of_indent: dict[int, int] = {}
    least: int | None = None
    for number, line in fault.above():
        if least is None or _indent(line) < least:
            least = _indent(line)
            line_of_indent[least] = number
    indents = ", ".join(f"line {number} has {each}" for each, number in list(line_of_indent.items())[:3])
    return f"this line is indented by {_spaces(indent)}, which matches no line above it: {indents}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _spaces(count: int) -> str:
    return "1 space" if count == 1 else f"{count} spaces"


def _not_closed(fault: _SyntaxError) -> str:
    return f"the bracket or brace{fault.since} is not closed before here, or a comma is missing in it"


def _no_colon(fault: _SyntaxError) -> str:
    line = fault.opened[0] if fault.opened else fault.line
    return f"line {line} has no colon: a key is followed by one, as in key: value"


_NEVER_CLOSED: Final = re.compile("end of stream.* quoted scalar")
_QUOTED_OR_UNSEPARATED: Final = re.compile(
    r"""(?P<space>(?:^|[\s,\[{])["'])  # a quotation mark that may begin a quoted text, and that text
        (?:(?<=")[^"]*"|(?<=')[^']*')
      | [A-Za-z0-9_-](?P<colon>:)["']   # a key, a colon and a value without a space between them
      | (?:^|[{,])\s*[A-Za-z0-9_-]+(?P<gap>\ *)["']   # a key and a value without a colon
    """,
    re.VERBOSE,
)

_MESSAGE_OF_GROUP: Final = {
    "colon": "a space is missing after this colon",
    "gap": "a colon is missing here, between the key and its value",
}


def _no_content(fault: _SyntaxError) -> str:
    if not any(line.strip() for line in fault.lines[fault.line - 1 :]):
        return "the file ends here, and a bracket or brace above is not closed"
    return "a value is missing here, or a bracket or brace is closed that was never opened"


def _never_closed(line: str, begin: tuple[int, int]) -> tuple[tuple[int, int], str]:
    """Return the position and message for a quotation mark that is never closed. Often YAML has read its end as part of
    a key."""
    for found in _QUOTED_OR_UNSEPARATED.finditer(line, 0, begin[1]):
        for part, words in _MESSAGE_OF_GROUP.items():
            if found[part] is not None and found.end() < begin[1]:
                return (begin[0], found.start(part) + 1), words
    return begin, "the quotation mark that starts here is never closed"


_EXPLAINED: Final[tuple[tuple[str, Callable[[_SyntaxError], str]], ...]] = (
    ("mapping values are not allowed", _second_colon),
    ("(did not find expected key|expected <block end>).* block mapping", _no_key),
    (
        "block collection",
        lambda fault: f"a line of the list{fault.since} has no - before it: write one, or indent it below an element",
    ),
    ("expected ',' or", _not_closed),
    ("could not find expected ':'", _no_colon),
    ("scanning an alias", lambda fault: 'a word that begins with * needs quotes: "*"'),
    ("scanning an anchor", lambda fault: "a word that begins with & needs quotes"),
    ("cannot start any token", lambda fault: "a value cannot begin with this character: put it in quotes"),
    ("sequence entries are not allowed", lambda fault: "a list with - begins on a line of its own, below its key"),
    ("unknown escape character", lambda fault: "in \"...\" a backslash begins an escape: write two, or use '...'"),
    ("node content", _no_content),
    ("<document start>", lambda fault: "the outermost keys all begin at the same column: the lines above are indented"),
)
"""Explanations by a pattern that matches the problem and context in the wording of either parser. The first match
counts."""
