"""Parses vendors' JSON within limits of memory and depth, and reads small values for all dialects."""

import re
from collections.abc import Collection, Iterator
from itertools import islice

import orjson

from providers.adaptation.unique_call_ids import made_id
from providers.constraints.constraint_styles import unwrap_choice
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue, opens_more

MAX_HELD_BYTES = 320 * 2**20
"""The most bytes of memory that the values of one JSON text may take. 30 MB of log probabilities, with twenty per
token, stay below it."""

_MEMORY_BY_CHARACTER = ((b"{", 200), (b"[", 72), (b",", 64))
"""The bytes of memory that each of these characters stands for: an object with one field, an empty list, a short
string."""

_LONGEST_SAFE_TEXT = MAX_HELD_BYTES // max(held for _, held in _MEMORY_BY_CHARACTER)
"""The length in bytes of the longest text whose values cannot exceed MAX_HELD_BYTES."""

_PARSER_BYTES_PER_BYTE = 13
"""The bytes that orjson 3.11 allocates per byte of text before it parses. It crashes if the allocation fails. Nearly
all of these bytes are never written."""

MAX_UNKNOWN = 4096
"""The most fields of an object in a response that has unknown fields."""

_MAX_UNCHECKED_BRACKETS = 200
"""The number of brackets up to which the depth of a text is not checked. Recursion in this code copes with that many
levels."""

_FEW_BRACKETS = 24
"""The number of brackets of one kind up to which brackets are searched one by one."""

MAX_UNCHECKED_BYTES = 2 * _MAX_UNCHECKED_BRACKETS
"""The length in bytes of the longest text that needs no check. Most events of a stream are shorter."""


HALF_CHARACTER = "The upstream's response has half of a character."


def malformed(problem: str) -> UpstreamError:
    """Return the error for a malformed response. `problem` is the gateway's own text and quotes nothing from the
    vendor."""
    return UpstreamError(Failure(FailureKind.MALFORMED, f"The upstream's response {problem}."))


def estimate_value_bytes(data: bytes) -> int:
    """Return an estimate of the bytes of memory that the values of a JSON text take. Raises UpstreamError above
    MAX_HELD_BYTES."""
    held = sum([data.count(mark) * each for mark, each in _MEMORY_BY_CHARACTER])
    if held > MAX_HELD_BYTES:
        raise malformed("has more values than are read")
    return held


def load_json(data: bytes) -> JsonValue:
    """Parse a JSON text into a value that orjson can write again.

    Raises `orjson.JSONDecodeError`, MemoryError, and UpstreamError if the values would take far more memory than the
    text (32 MB of empty objects take 800 MB). orjson reads 1,024 levels and writes 254. A value with more levels than
    orjson writes would cause a RecursionError elsewhere, and is refused here.
    """
    if len(data) > _LONGEST_SAFE_TEXT:
        _require_memory(data)
    value: JsonValue = orjson.loads(data)
    if len(data) > MAX_UNCHECKED_BYTES and opens_more(data, _FEW_BRACKETS):
        _refuse_deep(data, value)
    return value


def load_unchecked(data: bytes) -> JsonValue:
    """Parse as `load_json` does, but without the check of the depth. It is for readers that pass on no nested value."""
    if len(data) > _LONGEST_SAFE_TEXT:
        _require_memory(data)
    value: JsonValue = orjson.loads(data)
    return value


def _require_memory(data: bytes) -> None:
    """Raise MemoryError if there is not enough memory to parse a text. The allocated pages are never written."""
    bytes(_PARSER_BYTES_PER_BYTE * len(data) + estimate_value_bytes(data))


def _refuse_deep(data: bytes, value: JsonValue) -> None:
    if data.count(b"[") + data.count(b"{") > _MAX_UNCHECKED_BRACKETS:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            raise orjson.JSONDecodeError("nested too deeply", "", 0) from None


_SURROGATES = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}(?:\\u[dD][89a-fA-F][0-9a-fA-F]{2})*")
"""A run of escapes that look like surrogates. The backslash of the first may itself be escaped. The pattern begins with
bytes that are rare in a text, which makes the search as fast as a comparison of bytes."""

_ESCAPE = len(b"\\ud800")

_MOST_REPAIRED_RUNS = 2**18
"""The most runs of escapes that are repaired in one text. They take a quarter of a second."""


def parse_json(data: bytes) -> JsonValue:
    """Parse as `load_json` does, with U+FFFD for incomplete characters. Engines that split a text between tokens may
    split a character, in its UTF-8 or between the two escapes of a surrogate pair."""
    try:
        return orjson.loads(data) if len(data) <= MAX_UNCHECKED_BYTES else load_json(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8", "replace")
        repaired = _repaired(text.encode())
        if repaired == data:
            raise
    return load_json(repaired)


_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")


def passed_on(data: bytes) -> bytes:
    """Return the JSON of an event in the form that is passed on: on one line, since line ends are white space in JSON,
    and with U+FFFD for bytes that are not UTF-8, as `parse_json` reads them."""
    if b"\n" in data or b"\r" in data:
        data = data.translate(_LINE_ENDS)
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace").encode()
    return data


class SplitCharacter(UpstreamError):
    """The error for an event of a stream with half of a character, whose other half may be in another event. If no
    caller handles it, the response counts as malformed."""

    def __init__(self) -> None:
        super().__init__(Failure(FailureKind.MALFORMED, HALF_CHARACTER))


def parse_event(data: bytes) -> JsonValue:
    """Parse an event of a stream as `parse_json` parses a complete text. Also raises SplitCharacter."""
    try:
        return orjson.loads(data) if len(data) <= MAX_UNCHECKED_BYTES else load_json(data)
    except orjson.JSONDecodeError:
        value = parse_json(data)
        if any(_is_half(data[start:end]) for start, end in _surrogates(data)):
            raise SplitCharacter from None
        return value


def _surrogates(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of surrogate escapes in a JSON text."""
    for found in _SURROGATES.finditer(data):
        start, end = found.span()
        start += _ESCAPE if _follows_escape(data, start) else 0
        if start < end:
            yield start, end


def _follows_escape(data: bytes, at: int) -> bool:
    """Return whether an odd number of backslashes precedes a position, so that the character there is escaped."""
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
    """Return whether a run of escapes has a surrogate that belongs to no pair."""
    try:
        escapes.decode("unicode_escape").encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return True
    return False


def _repaired(data: bytes) -> bytes:
    """Return a JSON text with characters instead of surrogate escapes, and U+FFFD instead of surrogates without a
    pair."""
    parts: list[bytes] = []
    at = 0
    for start, end in islice(_surrogates(data), _MOST_REPAIRED_RUNS):
        halves = data[start:end].decode("unicode_escape").encode("utf-16-le", "surrogatepass")
        parts += (data[at:start], halves.decode("utf-16-le", "replace").encode())
        at = end
    return b"".join([*parts, data[at:]]) if parts else data


def parse_answer(data: bytes, problem: str = "is not valid JSON") -> JsonValue:
    """Parse as `parse_json` does. Raises UpstreamError(MALFORMED) with the problem."""
    try:
        return parse_json(data)
    except orjson.JSONDecodeError:
        raise malformed(problem) from None


def is_json(data: bytes) -> bool:
    """Return whether the bytes are a complete JSON text."""
    try:
        parse_json(data)
    except orjson.JSONDecodeError:
        return False
    return True


def json_object(data: bytes) -> JsonObject:
    """Parse a JSON object, or return the first element of a list. Raises UpstreamError(MALFORMED) if that is no object.

    Blank lines before the JSON are a vendor's keep-alive, and are skipped.
    """
    data = data.strip()
    try:
        value = load_unchecked(data)
    except orjson.JSONDecodeError:
        value = parse_answer(data)
    return object_in(data, value)


def object_in(data: bytes, value: JsonValue) -> JsonObject:
    """Return the same object as `json_object`, for a text that `load_unchecked` has already parsed. Raises
    UpstreamError(MALFORMED)."""
    try:
        if opens_more(data, _FEW_BRACKETS):
            _refuse_deep(data, value)
    except orjson.JSONDecodeError:
        raise malformed("is not valid JSON") from None
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        raise malformed("is not a JSON object")
    return value


def arguments_text(raw: JsonValue) -> str:
    """Return a call's arguments as JSON text. Some vendors send the arguments as a JSON value instead of a string."""
    if isinstance(raw, str):
        return raw
    return "" if raw is None else orjson.dumps(raw).decode()


def call_id(answer: JsonValue, choice: int, number: int) -> str:
    """Return an id for a call without an id from the vendor. It is derived from the response's id, because it must be
    unique in a conversation."""
    return made_id(f"{answer}/{choice}/{number}".encode(errors="replace"))


def unwrap_answer(text: str) -> str:
    """Return the choice inside the JSON object that the model generated. Raises UpstreamError(MALFORMED)."""
    try:
        return unwrap_choice(text)
    except ValueError:
        raise malformed("is not the object that the request's constraint was wrapped in") from None


_EMPTY: Collection[JsonValue] = (None, "", [], {})


def unknown_in(holder: JsonObject, known: frozenset[str]) -> JsonObject | None:
    """Return the unknown fields of an object that are not null or empty, otherwise `None`. Raises UpstreamError if the
    object has more than MAX_UNKNOWN fields, since each unknown field is written again for the client."""
    if known.issuperset(holder):
        return None
    if len(holder) > MAX_UNKNOWN:
        raise malformed("has more fields than are passed on")
    return {name: value for name, value in holder.items() if name not in known and value not in _EMPTY} or None


def index_of(choice: JsonObject, position: int) -> int:
    """Return a choice's index, or its position if the vendor leaves out the index."""
    value = choice.get("index")
    return value if isinstance(value, int) and not isinstance(value, bool) else position


def requested_index(choice: JsonObject, choices: int) -> int:
    """Return the index of a streamed choice, which is 0 if the vendor leaves it out. `choices` is the number of
    requested choices. Raises UpstreamError for any other index."""
    value = choice.get("index")
    match value:
        case None:
            value = 0
        case float() if value.is_integer():
            value = int(value)
        case str() if value.isdecimal() and len(value) < 10:
            value = int(value)
    if type(value) is not int or not 0 <= value < choices:
        raise malformed("has a choice that was not requested")
    return value


def text_of(content: JsonValue) -> str:
    """Return the text of a message's content: the string, or the joined text parts of the list. Raises UpstreamError
    for another form."""
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
