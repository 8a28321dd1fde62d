"""Parses request bytes into a JSON object, within limits of depth and size, and without repeated keys.

Which bytes are valid is decided by orjson: it refuses NaN, Infinity, numbers beyond a double, invalid UTF-8 and lone
surrogates, which the standard library accepts. A body that is not in orjson's own form is also read by jiter, which
reports repeated keys and keeps integers exact (jiter 0.19, `from_json`, November 2026). No message repeats bytes of the
body.
"""

import json
from collections.abc import Container, Mapping
from math import isfinite

import jiter
import orjson

from providers.json_types import JsonObject, JsonValue, nests_deeper, opens_more
from proxy.errors import FieldProblem, invalid_request

MAX_DEPTH = 64
"""The most levels of nested objects and lists. This is far more than any known schema has, and far fewer than recursive
code can handle."""

_SURELY_FLAT = MAX_DEPTH // 2
"""A text with at most this many opening brackets of each kind cannot have more than MAX_DEPTH levels."""

_WRAPPING_LISTS = 254 - MAX_DEPTH
"""The number of lists around an object of MAX_DEPTH levels that orjson can still write (orjson 3.13, README, `dumps`:
254 levels)."""

_ORJSON_MAX_BYTES = 320 * 1024
"""Size in bytes of the longest body that orjson reads faster than jiter. orjson needs twelve times as many bytes of
memory. Beyond `c_allocator.LARGE_BUFFER` the allocator maps this memory anew for each body."""

MAX_ELEMENTS = 200_000
"""The most objects, lists and commas of a body. Parsing 10 MB of `{}` would take 250 ms and 24 times the size of the
text in memory."""

_ELEMENT_MARKS = (b"{", b"[", b",")
_NO_ELEMENT = bytes(set(range(256)) - set(b"{[,"))
_BOM = b"\xef\xbb\xbf"
_NO_OBJECT = "is not a JSON object"
_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"


class InvalidJson(ValueError):
    """The error for bytes that are not an acceptable JSON object. Its message is a predicate, such as "is not a JSON
    object"."""


def load(body: bytes, acted_on: Container[str], most: int | None = None) -> JsonObject:
    """Return the object of a request body, of at most `most` elements (`None`: MAX_ELEMENTS). Raises GatewayError.

    A UTF-8 byte order mark is allowed. A repeated key in `acted_on` is refused, because a filter in front of the
    gateway may have checked the value that the gateway does not use. An integer beyond 64 bits is refused, because the
    vendor would receive it rounded.
    """
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
    try:
        if len(body) > (most or MAX_ELEMENTS):
            _bound_elements(body, most)
        data = _read_canonical(body) if len(body) <= _ORJSON_MAX_BYTES else None
        return _read_exactly(body, acted_on) if data is None else data
    except InvalidJson as error:
        raise invalid_request((FieldProblem((), f"The request body {error}."),)) from None


def decode(text: bytes, most: int | None = None) -> JsonObject:
    """Return the JSON object of a text. Raises InvalidJson for another value, and for a text beyond the limits."""
    _bound_elements(text, most)
    return _read_within_depth(text)


def has_too_many_elements(text: bytes, most: int = MAX_ELEMENTS) -> bool:
    """Return whether a JSON text has more than `most` elements."""
    if len(text) <= most or len(text.translate(None, _NO_ELEMENT)) <= most:
        return False
    bare = _outside_strings(text)
    return sum(bare.count(mark) for mark in _ELEMENT_MARKS) > most


def _bound_elements(text: bytes, most: int | None) -> None:
    """Raise InvalidJson for a text with too many elements. A text that is too short to exceed the limit by more than a
    third is not counted, because counting takes half as long as reading the text."""
    most = MAX_ELEMENTS if most is None else most
    if len(text) > 2 * most and has_too_many_elements(text, most):
        raise InvalidJson(f"has more than {most} JSON elements")


def _read(text: bytes) -> JsonObject:
    """Return the JSON object of a text, of any depth."""
    try:
        data: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(f"is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidJson(_NO_OBJECT)
    return data


def _read_within_depth(text: bytes) -> JsonObject:
    data = _read(text)
    if opens_more(text, _SURELY_FLAT):
        _written_within_depth(data)
    return data


def _read_canonical(body: bytes) -> JsonObject | None:
    """Return the object of a body that equals the form in which orjson writes it, as the bodies of most clients do;
    `None` for any other body. A body in orjson's form has no repeated keys and no rounded numbers."""
    value = body.find(b'":') + 2
    if body[value : value + 1].isspace():
        return None
    data = _read(body)
    if not opens_more(body, _SURELY_FLAT):
        return data if orjson.dumps(data) == body else None
    written = _written_within_depth(data)
    return (
        data if len(written) == len(body) + 2 * _WRAPPING_LISTS and written.startswith(body, _WRAPPING_LISTS) else None
    )


def _read_exactly(body: bytes, acted_on: Container[str]) -> JsonObject:
    """Return the object of a body in any form. Raises GatewayError if the body is ambiguous, and InvalidJson if it is
    not acceptable JSON."""
    try:
        data: JsonValue = jiter.from_json(
            body, allow_inf_nan=False, cache_mode="keys", catch_duplicate_keys=True, float_mode="lossless-float"
        )
    except ValueError:
        # Either this is not JSON, and orjson raises with the message, or some object has a repeated key.
        data = _read_within_depth(body)
        _refuse_rounded(_refuse_repeats(body, acted_on))
        return data
    if not isinstance(data, dict):
        raise InvalidJson(_NO_OBJECT)
    floats: list[object] = []
    try:
        orjson.dumps(_within_lists(data) if opens_more(body, _SURELY_FLAT) else data, floats.append)
    except orjson.JSONEncodeError:
        if nests_deeper(data, MAX_DEPTH):
            raise InvalidJson(_TOO_DEEP) from None
        _refuse_rounded(data)
    return data if not floats or _replace_texts_by_doubles(data, len(floats)) else _read(body)


def _replace_texts_by_doubles(data: JsonObject, count: int) -> bool:
    """Replace the numbers of an object that jiter left as texts by doubles. Return whether there were `count` such
    numbers and each fits into a double. If not, orjson must read the body, because orjson raises with the message that
    jiter lacks."""
    read: Mapping[str, object] = data
    doubles = {name: float(value) for name, value in read.items() if isinstance(value, jiter.LosslessFloat)}
    data.update(doubles)
    return len(doubles) == count and all(map(isfinite, doubles.values()))


def _written_within_depth(data: JsonObject) -> bytes:
    """Return an object as JSON within `_WRAPPING_LISTS` lists. Raises InvalidJson for more than MAX_DEPTH levels."""
    try:
        return orjson.dumps(_within_lists(data))
    except orjson.JSONEncodeError:
        raise InvalidJson(_TOO_DEEP) from None


def _within_lists(data: JsonObject) -> JsonValue:
    """Return an object wrapped in so many lists that orjson writes it only if the object has at most MAX_DEPTH levels.
    This tests the depth in compiled code, three times as fast as a walk."""
    holder: JsonValue = data
    for _ in range(_WRAPPING_LISTS):
        holder = [holder]
    return holder


def _outside_strings(body: bytes) -> bytes:
    """Return a JSON text without its strings. The result has no meaning for bytes that are not JSON."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A text within MAX_ELEMENTS has at most twice as many strings. The rest of a text with more strings is not split.
    # This bounds the work, and the error can only be a too high count of elements.
    return b"".join(body.split(b'"', 4 * MAX_ELEMENTS + 4)[::2])


def _refuse_repeats(body: bytes, acted_on: Container[str]) -> JsonObject:
    """Return the object of a text, with exact integers. Raises GatewayError for a repeated key in `acted_on`."""
    pairs: list[tuple[str, JsonValue]] = []

    def keep(found: list[tuple[str, JsonValue]]) -> JsonObject:
        pairs[:] = found  # the hook is called for the outermost object last
        return dict(found)

    data: JsonObject = json.loads(body, object_pairs_hook=keep)
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for name, _ in pairs:
        if name in seen and name in acted_on:
            repeated[name] = None
        seen.add(name)
    if repeated:
        raise invalid_request(tuple(FieldProblem((name,), f"'{name}' is given more than once.") for name in repeated))
    return data


def _refuse_rounded(data: JsonObject) -> None:
    """Raise GatewayError for an integer beyond 64 bits, which orjson would read as a double."""
    holders = [name for name, value in data.items() if not _is_writable(value)]
    if holders:
        loc, subject = ((holders[0],), f"'{holders[0]}'") if len(holders) == 1 else ((), "The request body")
        raise invalid_request((FieldProblem(loc, f"{subject} must not hold an integer beyond 64 bits."),))


def _is_writable(value: JsonValue) -> bool:
    """Return whether orjson writes a value; it does not write an integer beyond 64 bits."""
    try:
        orjson.dumps(value, float)
    except orjson.JSONEncodeError:
        return False
    return True
