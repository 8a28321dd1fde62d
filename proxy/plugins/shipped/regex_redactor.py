"""A guard that replaces or refuses matches of the operator's patterns, in requests and responses.

Options: `patterns`, a list of regular expressions in Python's syntax; `replacement`, by default `[redacted]`;
`ignore_case`; `action: refuse` instead of `replace`; `where`, by default `[request, answer]`.

Python's matcher holds the interpreter lock while it searches, in threads too, and its time can grow without limit. So
a pattern matches at most 256 characters, repeats no part of variable length, and refers to no group. A text is
searched in windows, and other threads can run between them. In a stream, the text that may begin a match is held back.

Sources: Python 3.11 `re`, whose parser computes a pattern's width, November 2026.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from proxy.plugins.api import (
    ALLOW,
    AboutRequest,
    AnswerTexts,
    AnswerTextStream,
    GuardedText,
    OptionError,
    Refuse,
    RefusedStream,
    RequestTexts,
    Rewrite,
    Verdict,
)

MAX_WIDTH: Final = 256
"""The maximum characters of a match, lookahead and lookbehind included."""

MAX_PATTERNS: Final = 100

WINDOW: Final = 8192
"""The characters that are searched at a time."""

_KEYS: Final = ("patterns", "replacement", "ignore_case", "action", "where")
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_VARYING: Final = (*_REPEATS, "BRANCH")
_ASSERTIONS: Final = ("ASSERT", "ASSERT_NOT")
_REFERENCES: Final = ("GROUPREF", "GROUPREF_IGNORE", "GROUPREF_EXISTS")


class RegexRedactor:
    """A guard that replaces or refuses matches of patterns."""

    api_version = 1
    slow = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        for key in options:
            if key not in _KEYS:
                raise OptionError(f"unknown option; there are {', '.join(_KEYS)}", key)
        self._replacement = _text(options, "replacement", "[redacted]")
        self._refuses = _one_of(options, "action", ("replace", "refuse")) == "refuse"
        where = options.get("where", ["request", "answer"])
        if not isinstance(where, list) or not set(where) <= {"request", "answer"}:
            raise OptionError("must be a list of request and answer", "where")
        self._requests, self._answers = "request" in where, "answer" in where
        patterns = options.get("patterns")
        if not isinstance(patterns, list) or not 1 <= len(patterns) <= MAX_PATTERNS:
            raise OptionError(f"must be a list of 1 to {MAX_PATTERNS} patterns", "patterns")
        flags = re.IGNORECASE if options.get("ignore_case", False) is True else re.NOFLAG
        self._reach = max([_reach(pattern, at, flags) for at, pattern in enumerate(patterns)])
        self._pattern = re.compile("|".join([f"(?:{each})" for each in patterns]), flags)

    def check_request(self, request: RequestTexts) -> Verdict:
        return self._checked(request.texts) if self._requests else ALLOW

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        return self._checked(answer.texts) if self._answers else ALLOW

    def open_stream(self, about: AboutRequest, choice: int) -> AnswerTextStream:
        """Return a stream that replaces or refuses matches, or that changes nothing if responses are not checked."""
        return RedactedStream(self) if self._answers else UnchangedText()

    def _checked(self, texts: tuple[GuardedText, ...]) -> Verdict:
        new = []
        for each in texts:
            text, _ = self.replaced(each.text, 0, len(each.text) + 1)
            if self._refuses and text != each.text:
                return Refuse(self.reason)
            new.append(text)
        return Rewrite(tuple(new))

    @property
    def reason(self) -> str:
        """The reason that the client gets for a refusal."""
        return "a text matches a pattern that must not pass"

    @property
    def refuses(self) -> bool:
        """Whether a match refuses the text instead of being replaced."""
        return self._refuses

    @property
    def reach(self) -> int:
        """The number of characters that decide whether a match begins at a position."""
        return self._reach

    def replaced(self, text: str, start: int, before: int) -> tuple[str, int]:
        """Return the text from `start` with the matches replaced that begin before `before`, and the position of its
        end. It ends at `before`, or at the end of the last match if that is later."""
        pieces = []
        place = start
        for begin, end in self._matches(text, start, before):
            pieces += [text[place:begin], self._replacement]
            place = end
        stop = max(place, min(before, len(text)))
        return "".join([*pieces, text[place:stop]]), stop

    def _matches(self, text: str, start: int, before: int) -> Iterator[tuple[int, int]]:
        search, reach, place = self._pattern.search, self._reach, start
        before = min(before, len(text))
        while place < before:
            edge = place + WINDOW
            found = search(text, place, edge + reach)
            if found is None or found.start() >= edge:
                place = edge
            elif found.start() >= before:
                return
            else:
                yield found.span()
                place = found.end()


class RedactedStream:
    """The text of one choice of a stream, with matches replaced."""

    def __init__(self, redactor: RegexRedactor) -> None:
        self._redactor = redactor
        self._text = ""
        self._done = 0

    def feed(self, text: str) -> str:
        self._text += text
        return self._up_to(len(self._text) - self._redactor.reach)

    def end(self) -> str:
        return self._up_to(len(self._text) + 1)

    def _up_to(self, before: int) -> str:
        if before <= self._done:
            return ""
        reach = self._redactor.reach
        shown, done = self._redactor.replaced(self._text, self._done, before)
        if self._redactor.refuses and shown != self._text[self._done : done]:
            raise RefusedStream(self._redactor.reason)
        # The text that a pattern may look behind at stays in memory.
        behind = max(0, done - reach)
        self._text, self._done = self._text[behind:], done - behind
        return shown


class UnchangedText:
    """A stream whose text is not changed, for a redactor that checks requests only."""

    def feed(self, text: str) -> str:
        return text

    def end(self) -> str:
        return ""


def _text(options: Mapping[str, Any], key: str, default: str) -> str:
    value = options.get(key, default)
    if not isinstance(value, str) or len(value) > MAX_WIDTH:
        raise OptionError(f"must be a text of at most {MAX_WIDTH} characters", key)
    return value


def _one_of(options: Mapping[str, Any], key: str, words: tuple[str, ...]) -> str:
    value = options.get(key, words[0])
    if value not in words:
        raise OptionError(f"must be one of {', '.join(words)}", key)
    return str(value)


def _reach(pattern: object, at: int, flags: re.RegexFlag) -> int:
    """Return the number of characters that decide whether a pattern matches at a position. Raises OptionError."""
    place = ("patterns", at)
    if not isinstance(pattern, str):
        raise OptionError("must be a pattern as text", *place)
    try:
        tree = re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
        re.compile(f"(?:{pattern})", flags)
    except (re.error, RecursionError, OverflowError) as error:
        what = error.msg if isinstance(error, re.error) else "it is too large"
        raise OptionError(f"is not a regular expression: {what}", *place) from None
    least, most = tree.getwidth()
    reach = int(most) + 1 + _beside(tree, place)
    if least == 0:
        raise OptionError("matches the empty text", *place)
    if reach > MAX_WIDTH + 1:
        raise OptionError(f"may match more than {MAX_WIDTH} characters; write {{1,64}} instead of + or *", *place)
    return reach


def _beside(tree: Any, place: tuple[str, int], inside: bool = False) -> int:  # noqa: ANN401
    """Return how many characters a pattern looks ahead and behind. Raises OptionError for patterns that may take too
    long. `inside` is set if the tree is repeated."""
    total = 0
    for operation, argument in tree:
        name = str(operation)
        if name in _REFERENCES:
            raise OptionError("refers to a group, which may take too long", *place)
        if inside and name in _VARYING:
            raise OptionError("repeats a part of variable length, which may take too long", *place)
        for below in _trees(argument):
            if name in _ASSERTIONS:
                total += int(below.getwidth()[1])
            total += _beside(below, place, inside or (name in _REPEATS and int(argument[1]) > 1))
    return total


def _trees(argument: object) -> Iterator[Any]:
    """Yield the patterns in an operation's argument."""
    if hasattr(argument, "getwidth"):
        yield argument
    elif isinstance(argument, tuple | list):
        for each in argument:
            yield from _trees(each)
