"""Reads events that are the same but for a piece of text by comparing bytes, without parsing: in a stream, nearly every
event has the form of the one before.

A form is learned from one event. The event is cut into constants, with holes between them: its text, and members that
mean nothing and change with every event. That the holes are where they seem to be is verified by parsing the event with
marks in them, so it does not depend on how a vendor writes its JSON.

Bytes that are the same constants with JSON strings (or numbers) in the holes must parse to the same object but for
these values: after a constant, a JSON reader is within the string; it leaves it at the quote with which the next
constant begins, whatever the string holds. An event that differs in anything else is not read here.

Not a regular expression: to compile one for an event of 250 bytes takes 400 us, half as long as it takes to parse 200
of them, and it reads no faster than `find` and `startswith` do (CPython 3.11).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import orjson

from providers.completion import RunPart, TextRun
from providers.frozen_record import record
from providers.json_types import JsonObject, JsonValue

MARK: Final = "the mark of a hole"
_MARK_BYTES: Final = MARK.encode()
_NUMBER_MARK: Final = 7

MOST_BYTES: Final = 4096
"""The longest data of an event that a form is learned from; it is kept while the stream lasts."""

MOST_HOLES: Final = 5

MOST_LESSONS: Final = 16
"""Forms that are learned of one stream. Each costs about as much as to parse five events."""

PLAIN: Final = bytes(byte for byte in range(32, 127) if byte not in b'"\\')
"""What stands for itself in a JSON string, in whoever's JSON."""

NO_ODD: Final[Mapping[int, str]] = MappingProxyType({})
"""See TextRun: every text of a run is plain."""

_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_NUMBER: Final = re.compile(rb"0|[1-9][0-9]{0,17}+")
BEFORE_DATA: Final = re.compile(rb"(?:event: ?[^\r\n]{1,64}\r?\n)?data: ?")
_BACKSLASH: Final = ord("\\")


Around = tuple[bytes, bytes | None, bytes]
"""What stands before a text, between it and a string that means nothing if there is one, and after both."""


@record
class TextFrames:
    """The form of events that hold a text: `_opening`, then for each hole the type of its value and the constant after
    it. The text is in the hole number `_text`. `around` is what stands before and after it, where no other hole is but
    for a string behind it; in between is what stands between these two."""

    _opening: bytes
    _steps: tuple[tuple[type, bytes], ...]
    _text: int
    around: Around | None = None

    def read(self, data: bytes) -> tuple[list[bytes], int]:
        """Return the texts of the events of this form that the data begins with, as they stand between their quotes,
        none of them empty; and how many bytes these events are."""
        if len(self._steps) > 1:
            return self._with_all_holes(data)
        texts: list[bytes] = []
        at = 0
        opening, ((_, closing),) = self._opening, self._steps
        before, after = len(opening), len(closing)
        while data.startswith(opening, at):
            start = at + before
            end = data.find(b'"', start)
            if data[end - 1] == _BACKSLASH:
                end = _end_of_string(data, start)
            # Without a quote `end` is -1, where no constant fits: each is longer than one byte.
            if end == start or not data.startswith(closing, end):
                break
            texts.append(data[start:end])
            at = end + after
        return texts, at

    def _with_all_holes(self, data: bytes) -> tuple[list[bytes], int]:
        texts: list[bytes] = []
        others: list[bytes] = []
        at = 0
        while data.startswith(self._opening, at):
            values, end = self._values(data, at + len(self._opening))
            if len(values) < len(self._steps) or not values[self._text]:
                break
            texts.append(values.pop(self._text))
            others += values
            at = end
        # Nobody reads these, but they must be the insides of JSON strings.
        return (texts, at) if _is_plain(b"".join(others)) else ([], 0)

    def _values(self, data: bytes, start: int) -> tuple[list[bytes], int]:
        """Return what is in the holes, as far as the constants fit, and where the last of them ends."""
        values: list[bytes] = []
        for kind, constant in self._steps:
            if kind is str:
                end = data.find(b'"', start)
                if data[end - 1] == _BACKSLASH:
                    end = _end_of_string(data, start)
            else:
                number = _NUMBER.match(data, start)
                end = -1 if number is None else number.end()
            if not data.startswith(constant, end):
                break
            values.append(data[start:end])
            start = end + len(constant)
        return values, start


def _end_of_string(data: bytes, start: int) -> int:
    """Return where the quote is that ends the JSON string whose inside begins at `start`."""
    found = _STRING.match(data, start)
    return -1 if found is None else found.end()


def _is_plain(literal: bytes) -> bool:
    return not literal.translate(None, PLAIN)


def part_run(index: int, literals: list[bytes], fingerprint: str | None, part: RunPart, call: int) -> TextRun | None:
    """Return pieces of a part of a choice that were read as a run; None if one of them is not the inside of a JSON
    string."""
    run = text_run(index, literals, fingerprint)
    if run is not None and part != "text":
        run.part, run.call, run.characters = part, call, 0
    return run


def text_run(index: int, literals: list[bytes], fingerprint: str | None) -> TextRun | None:
    """Return texts of a choice that were read as a run; None if one of them is not the inside of a JSON string."""
    joined = b"".join(literals)
    if not joined.translate(None, PLAIN):
        return TextRun(index, literals, NO_ODD, len(joined), len(joined), fingerprint)
    odd: dict[int, str] = {}
    characters = size = 0
    for place, literal in enumerate(literals):
        characters += len(literal)
        size += len(literal)
        if _is_plain(literal):
            continue
        text = text_of_literal(literal)
        if text is None:
            return None
        odd[place] = text
        characters += len(text) - len(literal)
        size += len(text.encode()) - len(literal)
    return TextRun(index, literals, odd, characters, size, fingerprint)


def without_first(run: TextRun) -> TextRun:
    """Return a run without its first piece."""
    piece = run.odd.get(0)
    size = len(run.literals[0] if piece is None else piece.encode())
    characters = len(run.literals[0] if piece is None else piece) if run.part == "text" else 0
    odd = {place - 1: text for place, text in run.odd.items() if place} if run.odd else NO_ODD
    return replace(
        run, literals=run.literals[1:], odd=odd, characters=run.characters - characters, size=run.size - size
    )


def text_of_literal(literal: bytes) -> str | None:
    """Return the text of which this is the inside of a JSON string; None if it is not. A string alone is parsed as it
    is within an event."""
    try:
        text: str = orjson.loads(b'"%b"' % literal)
    except orjson.JSONDecodeError:
        return None
    return text


def text_of_ascii(literal: bytes) -> str:
    """Return the text of which this is the inside of a JSON string in ASCII, as `ascii_json` writes it."""
    if b"\\" not in literal:
        return literal.decode()
    text: str = orjson.loads(b'"%b"' % literal)
    return text


# Learning ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class FrameLearner:
    """Learns the form of a stream's events, and again when it changes. `unread` are members of an event that mean
    nothing; `changing` those of them that are different in each event, as far as is known. `lessons` are left."""

    unread: Collection[str]
    changing: frozenset[str]
    frames: TextFrames | None = None
    _learned: bytes = b""
    lessons: int = MOST_LESSONS

    def learn(self, data: bytes, member: str, marked: JsonObject, piece: bytes) -> None:
        """Learn from an event. Its text is the value of `member` in its data, and `marked` is what it holds with MARK
        for the text. `piece` begins with the next event. Without a form `frames` is None afterwards."""
        self.frames = None
        if not self.lessons or len(data) > MOST_BYTES or b"\n" in data or b"\r" in data:
            return
        self.lessons -= 1
        if self._learned:
            self.changing |= _changed(self._learned, marked, self.unread)
        self._learned = data
        line_end = b"\r\n" if b"\r" in piece else b"\n"
        begin = BEFORE_DATA.match(piece)
        if begin is not None:
            self.frames = learn(data, member, marked, self.changing, (begin[0], 2 * line_end))


def _changed(before: bytes, after: JsonObject, names: Iterable[str]) -> frozenset[str]:
    """Return those members that are not the same in two events. None where the first had to be mended before it was
    read: what changes shows at the next lesson."""
    try:
        found: JsonValue = orjson.loads(before)
    except orjson.JSONDecodeError:
        return frozenset()
    held = found if isinstance(found, dict) else {}
    return frozenset(name for name in names if held.get(name) != after.get(name))


@record
class _Hole:
    """From where to where a value stands in an event's data, and what takes its place. `name` is None for the text."""

    start: int
    end: int
    name: str | None
    mark: str | int


def learn(
    data: bytes, member: str, marked: JsonObject, changing: Collection[str], around: tuple[bytes, bytes]
) -> TextFrames | None:
    """Return the form of an event; None if it cannot be cut so. See FrameLearner.learn; `around` is what an event has
    before and after its data. Members in `changing` become holes where they are strings or whole numbers."""
    names = [name for name in changing if type(marked.get(name)) in (str, int)]
    text = _hole(data, member, None)
    if text is not None and not names:
        # What follows, for one hole: half of what it costs, once a stream.
        before, after = data[: text.start], data[text.end :]
        if not _holds(before + _MARK_BYTES + after, marked):
            return None
        before, after = around[0] + before, after + around[1]
        return TextFrames(before, ((str, after),), 0, (before, None, after))
    found = [*(_hole(data, name, name) for name in names), text]
    holes = sorted([hole for hole in found if hole is not None], key=lambda hole: hole.start)
    if len(holes) < len(found) or len(holes) > MOST_HOLES:
        return None
    starts = [0, *(hole.end for hole in holes)]
    ends = [*(hole.start for hole in holes), len(data)]
    constants = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    if not _is_verified(marked, constants, holes):
        return None
    constants[0], constants[-1] = around[0] + constants[0], constants[-1] + around[1]
    steps = zip([type(hole.mark) for hole in holes], constants[1:], strict=True)
    padded = len(holes) == 2 and holes[0].name is None and holes[1].mark is MARK
    whole = (constants[0], constants[1], constants[2]) if padded else None
    return TextFrames(constants[0], tuple(steps), [hole.name for hole in holes].index(None), whole)


def _hole(data: bytes, member: str, name: str | None) -> _Hole | None:
    """Return where the value of a member stands, within its quotes for a string; None unless there is just one."""
    key = b'"%b":' % member.encode()
    start = data.find(key)
    if start < 0 or data.find(key, start + 1) >= 0:
        return None
    start += len(key)
    while data.startswith(b" ", start):
        start += 1
    if data.startswith(b'"', start):
        return _Hole(start + 1, _end_of_string(data, start + 1), name, MARK)
    number = _NUMBER.match(data, start)
    return None if number is None else _Hole(start, number.end(), name, _NUMBER_MARK)


def _is_verified(marked: JsonObject, constants: list[bytes], holes: list[_Hole]) -> bool:
    """Return whether the data with marks in its holes holds what it did but for these values."""
    expected: JsonObject = {**marked}
    data = constants[0]
    for hole, constant in zip(holes, constants[1:], strict=True):
        data += str(hole.mark).encode() + constant
        if hole.name is not None:
            expected[hole.name] = hole.mark
    return _holds(data, expected)


def _holds(data: bytes, expected: JsonObject) -> bool:
    try:
        return bool(orjson.loads(data) == expected)
    except orjson.JSONDecodeError:
        return False
