"""Joins characters whose two UTF-16 surrogates a stream has in two different events.

Servers that count in UTF-16 (JavaScript, Java, .NET) may cut a text between the two surrogates. A single surrogate is
not a character: only Python's own parser reads its escape, and no text that holds one can be encoded.
"""

import json
from collections.abc import Iterator
from typing import Final

from providers.json_types import JsonObject, JsonValue

REPLACEMENT: Final = "\ufffd"

_CONTINUED_FIELDS: Final = frozenset(
    {"text", "content", "reasoning", "reasoning_content", "refusal", "thinking", "arguments", "input", "partial_json"}
    | {"delta", "response", "tool_plan", "generated_text", "text_output", "stringValue"}
)
"""Names of fields whose text continues in the next event."""

_COMPLETE_FIELDS: Final = frozenset({"logprobs", "completion_probabilities", "error", "args"})
"""Names of fields below which no text continues."""

_INDEX_FIELDS: Final = ("index", "output_index", "content_index", "summary_index", "contentBlockIndex")

TextPath = tuple[str | int, ...]
"""The position of a text in an event: field names, list positions, and the numbers in `_INDEX_FIELDS`."""


class HalfCharacter(ValueError):
    """The error for a surrogate without its other half."""


class SurrogateJoiner:
    """Joins the surrogates of one stream. `open` holds the first halves whose second half has not arrived, by the path
    of their text."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: dict[TextPath, str] = {}

    def parse(self, payload: bytes) -> JsonValue:
        """Parse an event that is known to be JSON except for single surrogates. Raises HalfCharacter."""
        return self._joined(json.loads(payload.decode("utf-8", "replace"), parse_int=_parse_number), ())

    def _joined(self, value: JsonValue, path: TextPath) -> JsonValue:
        """Return a value without single surrogates. The last name in `path` is the field that holds it."""
        if isinstance(value, str):
            return self._text(value, path) if path and path[-1] in _CONTINUED_FIELDS else _without_surrogates(value)
        if isinstance(value, list):
            return [self._joined(each, (*path, *_entry_path(each, position))) for position, each in enumerate(value)]
        return self._object(value, path) if isinstance(value, dict) else value

    def _object(self, value: JsonObject, path: TextPath) -> JsonObject:
        path = (*path, *_indexes(value))
        joined: JsonObject = {}
        for name, field_value in value.items():
            # Arguments in the form of an object are complete, and so is a message beside a delta.
            is_complete = name in _COMPLETE_FIELDS or (name in ("arguments", "input") and isinstance(field_value, dict))
            if is_complete or (name == "message" and "delta" in value):
                joined[_without_surrogates(name)] = _all_without_surrogates(field_value)
            else:
                joined[_without_surrogates(name)] = self._joined(field_value, (*path, name))
        return joined

    def _text(self, text: str, path: TextPath) -> str:
        if not text:
            return text
        half = self.open.pop(path, "")
        if half and not "\udc00" <= text[0] <= "\udfff":
            raise HalfCharacter
        text = half + text
        if "\ud800" <= text[-1] <= "\udbff":
            self.open[path] = text[-1]
            text = text[:-1]
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise HalfCharacter from None


def _parse_number(digits: str) -> int | float:
    return int(digits) if len(digits) < 19 else float(digits)


def _indexes(value: JsonObject) -> Iterator[int]:
    return (number for name in _INDEX_FIELDS if isinstance(number := value.get(name), int))


def _entry_path(value: JsonValue, position: int) -> TextPath:
    """Return the path element of a list entry, which is its position. An entry with an index of its own needs no
    element."""
    return () if isinstance(value, dict) and "index" in value else (position,)


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _all_without_surrogates(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _without_surrogates(value)
    if isinstance(value, list):
        return [_all_without_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_without_surrogates(name): _all_without_surrogates(field_value) for name, field_value in value.items()}
    return value
