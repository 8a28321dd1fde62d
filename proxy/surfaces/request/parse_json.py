"""Parses request bytes into a JSON object, within limits of depth and size, and without repeated keys.

Only orjson's result is used: it refuses NaN, Infinity, numbers beyond a double, invalid UTF-8 and lone surrogates,
which the standard library accepts. No message repeats bytes of the body.
"""

import json
import re
from collections.abc import Container, Iterable

import orjson

from providers.json_types import JsonObject, JsonValue, nests_deeper, occurs_more
from proxy.errors import FieldProblem, invalid_request

MAX_DEPTH = 64
"""Levels of objects and lists; far above any known schema, far below where recursive code fails."""

MAX_ELEMENTS = 200_000
"""Objects, lists and commas; 10 MB of `{}` would take 250 ms and 24 times their size in memory."""

INLINE_PARSE_BYTES = 256 * 1024
"""Bytes of a body that is parsed on the event loop, unless it is dense."""

MANY_OBJECTS = 1000
"""Objects, or lists, in a body that is parsed on the event loop; each takes up to 10 us to check and translate."""

MANY_COMMAS = 8000
"""Commas in such a body. What is between two takes up to 0.5 us to read, check and write."""

MANY_QUOTES = 3000
"""Quotation marks in such a body: two for each name, which takes up to 4 us to judge, or for each text."""

_FEWEST_BYTES = 3 * MANY_OBJECTS
"""Bytes that hold no more objects than that: each has two braces, and a comma or a name."""

_FEW_QUOTES = 64
"""Quotation marks up to which strings are skipped by searches: `find` reads 250 KB in 12 us, and `count` in 70."""

_MOST_ESCAPES = 64
"""Backslashes in a row up to which the end of a string is recognized."""

_ELEMENT_MARKS = (b"{", b"[", b",")
_LONG_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}(?![0-9.eE])")
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1
_BOM = b"\xef\xbb\xbf"
_COLON, _OPENERS = ord(":"), b"[{"
_NOT_SHAPE = bytes(set(range(256)) - set(b"[]{}:"))


class InvalidJson(ValueError):
    """Bytes that are no acceptable JSON object. The message is a predicate, such as "is not a JSON object"."""


def is_heavy(body: bytes) -> bool:
    """Return whether the work on a body may block the event loop for more than a few ms. Takes at most 0.3 ms, and 20
    us for 250 KB in few strings."""
    size = len(body)
    return size > INLINE_PARSE_BYTES or (size > _FEWEST_BYTES and _is_dense(body))


def _is_dense(body: bytes) -> bool:
    if occurs_more(body, b"{", MANY_OBJECTS) or occurs_more(body, b"[", MANY_OBJECTS):
        return True
    # A name has five bytes with its value and comma, and what is between two commas has one at least.
    if len(body) <= 5 * MANY_QUOTES // 2:
        return False
    if not occurs_more(body, b'"', _FEW_QUOTES) and _bytes_outside(body) <= 2 * MANY_COMMAS:
        return False  # its commas are in its strings
    return body.count(b'"') > MANY_QUOTES or (len(body) > 2 * MANY_COMMAS and body.count(b",") > MANY_COMMAS)


def _bytes_outside(body: bytes) -> int:
    """Return how many bytes of a JSON text are outside its strings, or more."""
    outside = at = 0
    while (start := body.find(b'"', at)) >= 0:
        outside += start - at
        at = start + 1
        while (end := body.find(b'"', at)) >= 0:
            at = end + 1
            before = body[max(start + 1, end - _MOST_ESCAPES) : end]
            escapes = len(before) - len(before.rstrip(b"\\"))
            if escapes == _MOST_ESCAPES:
                return len(body)
            if escapes % 2 == 0:
                break
        else:
            return outside
    return outside + len(body) - at


def load(body: bytes, acted_on: Container[str], most: int | None = None) -> JsonObject:
    """Return the object of a request body, of at most `most` elements (None = MAX_ELEMENTS). Raises GatewayError.

    Tolerates a UTF-8 byte order mark. Refuses a repeated key in `acted_on`, because a filter in front of the gateway
    may have judged the other value, and an integer beyond 64 bits, which would reach a vendor rounded.
    """
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
    try:
        data = decode(body, most)
    except InvalidJson as error:
        raise invalid_request((FieldProblem((), f"The request body {error}."),)) from None
    # A body that equals its canonical form repeats and rounds nothing. Most clients write it so, and comparing is
    # cheap.
    if orjson.dumps(data) != body:
        if _top_level_keys(body) != len(data):
            _refuse_repeats(body, acted_on)
        _refuse_rounded(body, data)
    return data


def decode(text: bytes, most: int | None = None) -> JsonObject:
    """Return the JSON object of a text. Raises InvalidJson for another value, and beyond the limits."""
    most = MAX_ELEMENTS if most is None else most
    if len(text) > most and has_too_many_elements(text, most):
        raise InvalidJson(f"has more than {most} JSON elements")
    try:
        data: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(f"is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidJson("is not a JSON object")
    many = MAX_DEPTH // 2
    if (occurs_more(text, b"{", many) or occurs_more(text, b"[", many)) and nests_deeper(data, MAX_DEPTH):
        raise InvalidJson(f"is nested more than {MAX_DEPTH} levels deep")
    return data


def has_too_many_elements(text: bytes, most: int = MAX_ELEMENTS) -> bool:
    """Return whether a JSON text has more than `most` elements."""
    if len(text) <= most or not any(occurs_more(text, mark, most // 3) for mark in _ELEMENT_MARKS):
        return False
    bare = _outside_strings(text)
    return sum(bare.count(mark) for mark in _ELEMENT_MARKS) > most


def _outside_strings(body: bytes) -> bytes:
    """Return a JSON text without its strings; the result is meaningless for bytes that are not JSON."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A text within MAX_ELEMENTS has at most twice as many strings. The tail of a longer one stays unsplit: that bounds
    # the work, and the count of elements can only be too high.
    return b"".join(body.split(b'"', 4 * MAX_ELEMENTS + 4)[::2])


def _top_level_keys(body: bytes) -> int:
    depth = keys = 0
    for byte in _outside_strings(body).translate(None, _NOT_SHAPE):
        if byte == _COLON:
            keys += depth == 1
        else:
            depth += 1 if byte in _OPENERS else -1
    return keys


def _refuse_repeats(body: bytes, acted_on: Container[str]) -> None:
    pairs: list[tuple[str, JsonValue]] = []

    def keep(found: list[tuple[str, JsonValue]]) -> JsonObject:
        pairs[:] = found  # the outermost object comes last
        return dict(found)

    json.loads(body, object_pairs_hook=keep)
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for name, _ in pairs:
        if name in seen and name in acted_on:
            repeated[name] = None
        seen.add(name)
    if repeated:
        raise invalid_request(tuple(FieldProblem((name,), f"'{name}' is given more than once.") for name in repeated))


def _refuse_rounded(body: bytes, data: JsonObject) -> None:
    # orjson makes doubles of integers beyond 64 bits, so without a large double there are none.
    if not _holds_large(data.values()) or not any(map(_rounded, _LONG_INTEGER.findall(_outside_strings(body)))):
        return
    holders = [name for name, value in data.items() if _holds_large([value])]
    loc, what = ((holders[0],), f"'{holders[0]}'") if len(holders) == 1 else ((), "The request body")
    raise invalid_request((FieldProblem(loc, f"{what} must not hold an integer beyond 64 bits."),))


def _holds_large(values: Iterable[JsonValue]) -> bool:
    holders: list[Iterable[JsonValue]] = [values]
    while holders:
        for value in holders.pop():
            # One type at a time: a union would take longer than the rest of this loop.
            if isinstance(value, float):
                if abs(value) >= -_INT64_MIN:
                    return True
            elif isinstance(value, list):
                holders.append(value)
            elif isinstance(value, dict):
                holders.append(value.values())
    return False


def _rounded(digits: bytes) -> bool:
    # An integer of 64 bits has at most 20 digits and a sign; converting longer ones takes quadratic time.
    return len(digits) > 21 or not _INT64_MIN <= int(digits) <= _UINT64_MAX
