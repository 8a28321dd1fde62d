"""Mutation of inputs: seeds with a few changes, to their bytes or to the JSON in them."""

import re
from collections.abc import Callable, Sequence
from random import Random

import orjson

from providers.json_types import JsonValue

LONGEST = 64 * 1024
"""Bytes of an input. Without a limit, repeated doubling of the same part would take most of the time."""

TOKENS = (
    *(b"\x00", b"\r", b"\n", b"\r\n", b"\n\n", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8"),
    *(b"-1", b"0", b"1e999", b"18446744073709551616", b"9" * 40, b"NaN", b"null", b"true", b"\\u0000", b"\\ud800"),
    *(b"{", b"}", b"[", b"]", b'"', b"\\", b":", b",", b"[" * 200, b'{"a":' * 100, b"data: ", b"data:", b"event: "),
)
"""Bytes that parsers tend to mishandle."""

_HOLDERS: tuple[JsonValue, ...] = ([], {}, [None, [], {}], {"": None}, {"a": {"b": [None]}})
VALUES: tuple[JsonValue, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64 - 1, -(2**63), 0.5, -0.0, 1e308, 1e-320),
    *("", "a", "\x00", "\u2028", "1", "NaN", "stop", "x" * 5000, "../", "\r\nA: b"),
    *_HOLDERS,
)
"""Replacements of a JSON value."""

_WHOLE = re.compile(rb"\{.*\}", re.DOTALL)
_LINE = re.compile(rb"\{.*\}")


class Mutator:
    """A source of inputs made from seeds. The same random numbers give the same inputs."""

    def __init__(self, draw: Random, seeds: Sequence[bytes], tokens: Sequence[bytes] = ()) -> None:
        self._draw = draw
        self._seeds = seeds
        self._tokens = (*TOKENS, *tokens)
        self._changes: tuple[Callable[[bytes], bytes], ...] = (
            *(self._flip, self._insert, self._replace, self._remove, self._repeat, self._cut, self._splice),
            *(self._json, self._json, self._json),
        )

    def input(self) -> bytes:
        """Return another input: a seed with one to four changes, rarely without a change."""
        data = self._draw.choice(self._seeds)
        for _ in range(min(int(self._draw.expovariate(0.5)) + (self._draw.random() < 0.99), 4)):
            data = self._draw.choice(self._changes)(data)
        return data[:LONGEST]

    def _at(self, data: bytes) -> int:
        return self._draw.randrange(len(data) + 1)

    def _stretch(self, data: bytes) -> tuple[int, int]:
        start = self._at(data)
        return start, min(len(data), start + int(self._draw.expovariate(0.1)) + 1)

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        at = self._draw.randrange(len(data))
        return data[:at] + bytes((data[at] ^ (1 << self._draw.randrange(8)),)) + data[at + 1 :]

    def _insert(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + self._draw.choice(self._tokens) + data[at:]

    def _replace(self, data: bytes) -> bytes:
        start, end = self._stretch(data)
        return data[:start] + self._draw.choice(self._tokens) + data[end:]

    def _remove(self, data: bytes) -> bytes:
        start, end = self._stretch(data)
        return data[:start] + data[end:]

    def _repeat(self, data: bytes) -> bytes:
        start, end = self._stretch(data)
        return data[:end] + data[start:end] * self._draw.choice((1, 1, 2, 50)) + data[end:]

    def _cut(self, data: bytes) -> bytes:
        at = self._at(data)
        return self._draw.choice((data[:at], data[at:]))

    def _splice(self, data: bytes) -> bytes:
        other = self._draw.choice(self._seeds)
        return data[: self._at(data)] + other[self._at(other) :]

    def _json(self, data: bytes) -> bytes:
        """Change one value of a JSON object in the data, or in one of its lines."""
        found = list(_LINE.finditer(data)) or list(_WHOLE.finditer(data))
        if not found:
            return self._insert(data)
        match = self._draw.choice(found)
        try:
            value: JsonValue = orjson.loads(match[0])
        except orjson.JSONDecodeError:
            return self._flip(data)
        return data[: match.start()] + orjson.dumps(self._changed(value)) + data[match.end() :]

    def _changed(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict) and value and self._draw.random() < 0.85:
            return self._changed_object(value)
        if isinstance(value, list) and value and self._draw.random() < 0.85:
            at = self._draw.randrange(len(value))
            return [*value[:at], self._changed(value[at]), *value[at + 1 :]]
        return self._draw.choice(VALUES)

    def _changed_object(self, value: dict[str, JsonValue]) -> JsonValue:
        name = self._draw.choice(list(value))
        chance = self._draw.random()
        if chance < 0.15:
            return {key: member for key, member in value.items() if key != name}
        if chance < 0.25:
            return {**value, self._draw.choice(list(value)): value[name]}
        return {**value, name: self._changed(value[name])}
