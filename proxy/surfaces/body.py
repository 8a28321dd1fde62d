"""Request bytes to a JSON object, with the attacks on parsers refused first. Never knows a field's meaning.

orjson is the only parser whose result is used: it refuses NaN, Infinity, numbers beyond a double, invalid UTF-8 and
lone surrogates, which the standard library accepts. No message repeats bytes of the body.
"""

import json
import re
from collections.abc import Container, Iterable

import orjson

from providers.unified import JsonObject, JsonValue
from proxy.errors import Problem, invalid_request

MAX_DEPTH = 64
"""Levels of objects and lists; far above any schema seen, far below where recursive code fails."""

MAX_ELEMENTS = 200_000
"""Objects, lists and commas; ten megabytes of `{}` would cost a quarter of a second and 24 times their size."""

LONG = 256 * 1024
"""Bytes of a body whose densest form takes 50 ms to parse."""

MANY_OBJECTS = 1000
"""Objects in a body; as schemas each takes about 10 us to be checked and translated."""

_FEWEST_BYTES = 2 * MANY_OBJECTS

_ELEMENT_MARKS = (b"{", b"[", b",")
_LONG_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}(?![0-9.eE])")
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1
_BOM = b"\xef\xbb\xbf"
_COLON, _OPENERS = ord(":"), b"[{"
_NOT_SHAPE = bytes(set(range(256)) - set(b"[]{}:"))


class Malformed(ValueError):
    """Bytes that cannot be taken as a JSON object; the message continues the name of what they are: "is not ..."."""


def is_heavy(body: bytes) -> bool:
    """Whether reading a body, whatever it holds, may hold up the event loop for more than some ms. Takes 50 us at most
    of a short body, and nearly nothing of others."""
    return len(body) > LONG or (len(body) > _FEWEST_BYTES and _frequent(body, b"{", MANY_OBJECTS))


def load(body: bytes, acted_on: Container[str]) -> JsonObject:
    """A request's object. A UTF-8 byte order mark is tolerated; a repeated key is refused when it is in `acted_on`,
    because a filter in front of the gateway may have judged the other value, and so is an integer beyond 64 bits, which
    would reach a vendor rounded. Raises GatewayError."""
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
    try:
        data = decode(body)
    except Malformed as error:
        raise invalid_request((Problem((), f"The request body {error}."),)) from None
    # A body that is its own canonical form repeats and rounds nothing; most clients write it so, and the comparison is
    # cheap.
    if orjson.dumps(data) != body:
        if _top_level_keys(body) != len(data):
            _refuse_repeats(body, acted_on)
        _refuse_rounded(body, data)
    return data


def decode(text: bytes) -> JsonObject:
    """A JSON object of bounded depth and size. Raises Malformed."""
    if crowded(text):
        raise Malformed(f"has more than {MAX_ELEMENTS} JSON elements")
    try:
        data: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise Malformed("is not a JSON object")
    if (_frequent(text, b"{", MAX_DEPTH // 2) or _frequent(text, b"[", MAX_DEPTH // 2)) and _deeper(data):
        raise Malformed(f"is nested more than {MAX_DEPTH} levels deep")
    return data


def crowded(text: bytes) -> bool:
    """Whether a JSON text has more elements than a request may have."""
    if len(text) <= MAX_ELEMENTS or not any(_frequent(text, mark, MAX_ELEMENTS // 3) for mark in _ELEMENT_MARKS):
        return False
    bare = _outside_strings(text)
    return sum(bare.count(mark) for mark in _ELEMENT_MARKS) > MAX_ELEMENTS


def _frequent(text: bytes, mark: bytes, limit: int) -> bool:
    """Whether a byte occurs more than `limit` times; `find` is many times faster than `count` where it is rare."""
    at = -1
    for _ in range(limit + 1):
        at = text.find(mark, at + 1)
        if at < 0:
            return False
    return True


def _deeper(data: JsonObject) -> bool:
    level: list[JsonObject | list[JsonValue]] = [data]
    for _ in range(MAX_DEPTH):
        level = [child for holder in level for child in _children(holder) if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _children(holder: JsonObject | list[JsonValue]) -> Iterable[JsonValue]:
    return holder.values() if isinstance(holder, dict) else holder


def _outside_strings(body: bytes) -> bytes:
    """What is left of a JSON text without its strings; nonsense for bytes that are not JSON."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A text within MAX_ELEMENTS has at most twice as many strings. The tail of a longer one stays unsplit, which bounds
    # the work and counts too much rather than too little.
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
        raise invalid_request(tuple(Problem((name,), f"'{name}' is given more than once.") for name in repeated))


def _refuse_rounded(body: bytes, data: JsonObject) -> None:
    # orjson makes doubles of integers beyond 64 bits: where there is no large double there was none of them either.
    if not _holds_large(data.values()) or not any(map(_rounded, _LONG_INTEGER.findall(_outside_strings(body)))):
        return
    holders = [name for name, value in data.items() if _holds_large([value])]
    loc, what = ((holders[0],), f"'{holders[0]}'") if len(holders) == 1 else ((), "The request body")
    raise invalid_request((Problem(loc, f"{what} must not hold an integer beyond 64 bits."),))


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
    # Twenty digits and a sign at most are within; more are not worth converting, which is quadratic.
    return len(digits) > 21 or not _INT64_MIN <= int(digits) <= _UINT64_MAX
