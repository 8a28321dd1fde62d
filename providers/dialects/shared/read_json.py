"""Parsing of vendors' JSON within bounds of memory and depth, and the small readings that all dialects share."""

import re
from collections.abc import Collection, Iterator
from itertools import islice

import orjson

from providers.adaptation.unique_call_ids import made_id
from providers.constraints.constraint_styles import unwrap_choice
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue, opens_more

MAX_HELD_BYTES = 320 * 2**20
"""Bytes that the values of one JSON text may take. 30 MB of log probabilities, twenty for each token, stay below it."""

_HELD_BY = ((b"{", 200), (b"[", 72), (b",", 64))
"""Bytes that each of these means in memory: an object with one member, an empty list, a short string."""

_SMALL = MAX_HELD_BYTES // max(held for _, held in _HELD_BY)
"""Bytes of the longest text that cannot exceed MAX_HELD_BYTES."""

_PARSER = 13
"""Bytes that orjson 3.11 allocates per byte of text before it parses; it crashes when the allocation fails. Nearly all
of them stay untouched."""

MAX_UNKNOWN = 4096
"""Members of one object of an answer, where some are not known."""

_MOST_OPEN = 200
"""Brackets below which a text needs no check of its depth: fewer levels than any recursion here fails at."""

_FEW_OPEN = 24
"""Brackets of one kind up to which they are looked for one by one."""

SHORT = 2 * _MOST_OPEN
"""Bytes of the longest text that needs no check, as most events of a stream are."""


HALF_CHARACTER = "The upstream's answer holds half of a character."


def malformed(what: str) -> UpstreamError:
    """Return the error for an answer that makes no sense; `what` is our text and quotes nothing of the vendor's."""
    return UpstreamError(Failure(FailureKind.MALFORMED, f"The upstream's answer {what}."))


def values_held(data: bytes) -> int:
    """Estimate the bytes of memory that the values of a JSON text take. Raises UpstreamError above MAX_HELD_BYTES."""
    held = sum([data.count(mark) * each for mark, each in _HELD_BY])
    if held > MAX_HELD_BYTES:
        raise malformed("has more members than are read")
    return held


def load_json(data: bytes) -> JsonValue:
    """Parse a JSON text into a value that orjson can write again.

    Raises `orjson.JSONDecodeError`, MemoryError, and UpstreamError for a text whose values would take far more memory
    than the text (32 MB of empty objects take 800). orjson reads 1,024 levels and writes 254; a value between the two
    would end in a RecursionError elsewhere.
    """
    if len(data) > _SMALL:
        _require_memory(data)
    value: JsonValue = orjson.loads(data)
    if len(data) > SHORT and opens_more(data, _FEW_OPEN):
        _refuse_deep(data, value)
    return value


def load_unchecked(data: bytes) -> JsonValue:
    """Parse as `load_json` does, but for the depth: for a reader that hands on no value which holds others."""
    if len(data) > _SMALL:
        _require_memory(data)
    value: JsonValue = orjson.loads(data)
    return value


def _require_memory(data: bytes) -> None:
    """Raise MemoryError where there is no room to parse a text; the pages stay untouched."""
    bytes(_PARSER * len(data) + values_held(data))


def _refuse_deep(data: bytes, value: JsonValue) -> None:
    if data.count(b"[") + data.count(b"{") > _MOST_OPEN:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            raise orjson.JSONDecodeError("nested too deeply", "", 0) from None


_SURROGATES = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}(?:\\u[dD][89a-fA-F][0-9a-fA-F]{2})*")
"""What looks like escapes of surrogates that follow each other; the backslash of the first may itself be escaped. The
pattern begins with what is rare in a text, so that it is looked for as fast as bytes are compared."""

_ESCAPE = len(b"\\ud800")

_MOST_RUNS = 2**18
"""Runs of such escapes that are mended in one text: a quarter of a second's work."""


def parse_json(data: bytes) -> JsonValue:
    """Parse as `load_json` does, with U+FFFD for what is no character: engines that cut a text between tokens may cut
    one, in its UTF-8 or between the two escapes of a surrogate pair."""
    try:
        return orjson.loads(data) if len(data) <= SHORT else load_json(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8", "replace")
        mended = _mended(text.encode())
        if mended == data:
            raise
    return load_json(mended)


_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")


def passed_on(data: bytes) -> bytes:
    """Return the JSON of an event as it is passed on: on one line, since line ends are white space in JSON, and with
    U+FFFD for what is no UTF-8, as `parse_json` reads it."""
    if b"\n" in data or b"\r" in data:
        data = data.translate(_LINE_ENDS)
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace").encode()
    return data


class SplitCharacter(UpstreamError):
    """An event of a stream holds half of a character, whose other half may be in another event. Where nobody looks for
    that the answer makes no sense."""

    def __init__(self) -> None:
        super().__init__(Failure(FailureKind.MALFORMED, HALF_CHARACTER))


def parse_event(data: bytes) -> JsonValue:
    """Parse an event of a stream as `parse_json` does a whole text. Raises SplitCharacter besides."""
    try:
        return orjson.loads(data) if len(data) <= SHORT else load_json(data)
    except orjson.JSONDecodeError:
        value = parse_json(data)
        if any(_is_half(data[start:end]) for start, end in _surrogates(data)):
            raise SplitCharacter from None
        return value


def _surrogates(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield from where to where runs of escapes of surrogates stand in a JSON text."""
    for found in _SURROGATES.finditer(data):
        start, end = found.span()
        start += _ESCAPE if _follows_escape(data, start) else 0
        if start < end:
            yield start, end


def _follows_escape(data: bytes, at: int) -> bool:
    """Return whether an odd number of backslashes stands before a place, so that what stands there is escaped."""
    count, size = 0, 64
    while at > 0:
        window = data[max(0, at - size) : at]
        rest = window.rstrip(b"\\")
        count += len(window) - len(rest)
        if rest:
            break
        at, size = at - len(window), 2 * size
    return count % 2 == 1


def _is_half(escapes: bytes) -> bool:
    """Return whether a run of escapes holds a surrogate that belongs to no pair."""
    try:
        escapes.decode("unicode_escape").encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return True
    return False


def _mended(data: bytes) -> bytes:
    """Return a JSON text with characters for its escapes of surrogates, and U+FFFD for those that belong to no pair."""
    pieces: list[bytes] = []
    at = 0
    for start, end in islice(_surrogates(data), _MOST_RUNS):
        halves = data[start:end].decode("unicode_escape").encode("utf-16-le", "surrogatepass")
        pieces += (data[at:start], halves.decode("utf-16-le", "replace").encode())
        at = end
    return b"".join([*pieces, data[at:]]) if pieces else data


def parse_answer(data: bytes, problem: str = "is not valid JSON") -> JsonValue:
    """Parse as `parse_json` does. Raises UpstreamError(MALFORMED) with the problem."""
    try:
        return parse_json(data)
    except orjson.JSONDecodeError:
        raise malformed(problem) from None


def is_json(data: bytes) -> bool:
    """Return whether the bytes are a whole JSON text."""
    try:
        parse_json(data)
    except orjson.JSONDecodeError:
        return False
    return True


def json_object(data: bytes) -> JsonObject:
    """Parse a JSON object, or a list that begins with one. Raises UpstreamError(MALFORMED).

    Blank lines before it are a vendor's keep-alive.
    """
    data = data.strip()
    try:
        value = load_unchecked(data)
    except orjson.JSONDecodeError:
        value = parse_answer(data)
    return object_in(data, value)


def object_in(data: bytes, value: JsonValue) -> JsonObject:
    """Return the object that `json_object` does for a text that `load_unchecked` has parsed. Raises
    UpstreamError(MALFORMED)."""
    try:
        if opens_more(data, _FEW_OPEN):
            _refuse_deep(data, value)
    except orjson.JSONDecodeError:
        raise malformed("is not valid JSON") from None
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        raise malformed("is not a JSON object")
    return value


def arguments_text(raw: JsonValue) -> str:
    """Return a call's arguments as JSON text; some vendors send the value itself."""
    if isinstance(raw, str):
        return raw
    return "" if raw is None else orjson.dumps(raw).decode()


def call_id(answer: JsonValue, choice: int, number: int) -> str:
    """Return an id for a call whose vendor gave none, derived from the answer's id: it must be unique in a
    conversation."""
    return made_id(f"{answer}/{choice}/{number}".encode(errors="replace"))


def unwrap_answer(text: str) -> str:
    """Return the choice inside the JSON object that was generated in its place. Raises UpstreamError(MALFORMED)."""
    try:
        return unwrap_choice(text)
    except ValueError:
        raise malformed("is not the object that the request's constraint was wrapped in") from None


_EMPTY: Collection[JsonValue] = (None, "", [], {})


def unknown_in(holder: JsonObject, known: frozenset[str]) -> JsonObject | None:
    """Return the members that are not known, without those that are null or empty; None where there are none. Raises
    UpstreamError for more than MAX_UNKNOWN of them, since each is written again for the client."""
    if known.issuperset(holder):
        return None
    if len(holder) > MAX_UNKNOWN:
        raise malformed("has more members than are passed on")
    return {name: value for name, value in holder.items() if name not in known and value not in _EMPTY} or None


def index_of(choice: JsonObject, position: int) -> int:
    """Return a choice's index, or its position where the vendor leaves the index out."""
    value = choice.get("index")
    return value if isinstance(value, int) and not isinstance(value, bool) else position


def asked_index(choice: JsonObject, choices: int) -> int:
    """Return the index of a streamed choice of so many that were asked for: the first, where the vendor leaves it out.
    Raises UpstreamError for what is the number of none of them."""
    value = choice.get("index")
    match value:
        case None:
            value = 0
        case float() if value.is_integer():
            value = int(value)
        case str() if value.isdecimal() and len(value) < 10:
            value = int(value)
    if type(value) is not int or not 0 <= value < choices:
        raise malformed("has a choice that was not asked for")
    return value


def text_of(content: JsonValue) -> str:
    """Return the text of a message's content: a string, or a list's text parts joined. Raises UpstreamError for another
    form."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_part, content))
    if content is None:
        return ""
    raise malformed("has a message whose content is neither text nor a list")


def _part(part: JsonValue) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise malformed("has a part of a message that is neither text nor an object")
    kind = part.get("type")
    text = part.get(kind) if kind in ("text", "refusal") else None
    return text if isinstance(text, str) else ""
