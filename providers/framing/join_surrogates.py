"""Joins characters of which a stream has the halves, two UTF-16 surrogates, in two events.

Servers that count in UTF-16 (JavaScript, Java, .NET) may cut a text between the two. Each half alone is no character:
no parser but Python's own reads its escape, and no text that holds one can be written.
"""

import json
from collections.abc import Iterator
from typing import Final

from providers.json_types import JsonObject, JsonValue

REPLACEMENT: Final = "\ufffd"

_TEXTS: Final = frozenset(
    {"text", "content", "reasoning", "reasoning_content", "refusal", "thinking", "arguments", "input", "partial_json"}
    | {"delta", "response", "tool_plan", "generated_text", "text_output", "stringValue"}
)
"""Names of members whose text goes on in the next event."""

_OTHERS: Final = frozenset({"logprobs", "completion_probabilities", "error", "args"})
"""Names of members below which no text goes on."""

_NUMBERS: Final = ("index", "output_index", "content_index", "summary_index", "contentBlockIndex")

Place = tuple[str | int, ...]


class HalfCharacter(ValueError):
    """A half of a character without the other."""


class SurrogateJoiner:
    """Joins the halves of one stream. `open` are those whose other half has not come, by the place of their text."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: dict[Place, str] = {}

    def parse(self, payload: bytes) -> JsonValue:
        """Parse an event that is known to be JSON but for halves of characters. Raises HalfCharacter."""
        return self._joined(json.loads(payload.decode("utf-8", "replace"), parse_int=_whole_number), ())

    def _joined(self, value: JsonValue, place: Place) -> JsonValue:
        """Return a value without halves. The last name in `place` is that of the member that it is in."""
        if isinstance(value, str):
            return self._text(value, place) if place and place[-1] in _TEXTS else _replaced(value)
        if isinstance(value, list):
            return [self._joined(each, (*place, *_number(each, at))) for at, each in enumerate(value)]
        return self._object(value, place) if isinstance(value, dict) else value

    def _object(self, value: JsonObject, place: Place) -> JsonObject:
        place = (*place, *_numbers(value))
        joined: JsonObject = {}
        for name, member in value.items():
            # Arguments as an object are whole, and so is a message beside a delta.
            whole = name in _OTHERS or (name in ("arguments", "input") and isinstance(member, dict))
            if whole or (name == "message" and "delta" in value):
                joined[_replaced(name)] = _all_replaced(member)
            else:
                joined[_replaced(name)] = self._joined(member, (*place, name))
        return joined

    def _text(self, text: str, place: Place) -> str:
        if not text:
            return text
        half = self.open.pop(place, "")
        if half and not "\udc00" <= text[0] <= "\udfff":
            raise HalfCharacter
        text = half + text
        if "\ud800" <= text[-1] <= "\udbff":
            self.open[place] = text[-1]
            text = text[:-1]
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise HalfCharacter from None


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) < 19 else float(digits)


def _numbers(value: JsonObject) -> Iterator[int]:
    return (number for name in _NUMBERS if isinstance(number := value.get(name), int))


def _number(value: JsonValue, position: int) -> Place:
    """Return what tells an entry of a list from others: its own number, else its position."""
    return () if isinstance(value, dict) and "index" in value else (position,)


def _replaced(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _all_replaced(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _replaced(value)
    if isinstance(value, list):
        return [_all_replaced(each) for each in value]
    if isinstance(value, dict):
        return {_replaced(name): _all_replaced(member) for name, member in value.items()}
    return value
