"""Arguments of a function call that come in pieces, each with its JSON path.

The gateway does not request them; on Vertex AI a client may, by `inference_extra_params`.

Source: `google-genai` 3.4.0 types `FunctionCall.partial_args`, `PartialArg`, November 2026.
"""

import re
from typing import NamedTuple, cast

from providers.dialects.shared.read_json import malformed
from providers.json_types import JsonObject, JsonValue

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("numberValue", "boolValue", "stringValue")

MAX_DEPTH = 64
"""Levels of nested arguments; a client's request may have as many."""

Step = str | int


class Pieces:
    """Assembles the arguments of one call.

    `_texts` holds the strings that came in several pieces, by the identity of their container and their key or index;
    they are joined once, at the end.
    """

    __slots__ = ("_given", "_texts")

    def __init__(self) -> None:
        self._given: JsonObject = {}
        self._texts: dict[tuple[int, Step], _Text] = {}

    def update(self, members: JsonObject) -> None:
        """Set complete members."""
        for name, value in members.items():
            self._set(self._given, name, value)

    def put(self, pieces: JsonValue) -> None:
        """Set the values of pieces. Raises UpstreamError for a path that cannot be followed."""
        for piece in pieces if isinstance(pieces, list) else ():
            path = piece.get("jsonPath") if isinstance(piece, dict) else None
            if not isinstance(piece, dict) or not isinstance(path, str):
                raise malformed("has a piece of arguments without its place")
            self._put(_steps(path), next((piece[name] for name in _VALUES if name in piece), None))

    def whole(self) -> JsonObject:
        """Return the arguments."""
        for text in self._texts.values():
            _set(text.holder, text.step, "".join(text.pieces))
        self._texts.clear()
        return self._given

    def _put(self, steps: list[Step], value: JsonValue) -> None:
        holder: JsonValue = self._given
        for step, after in zip(steps, [*steps[1:], None], strict=True):
            made: JsonValue = value if after is None else [] if isinstance(after, int) else {}
            old = _at(holder, step)
            if after is not None and isinstance(old, dict | list):
                holder = old
            elif after is None and isinstance(old, str) and isinstance(value, str):
                # A further piece of a string.
                self._texts.setdefault((id(holder), step), _Text(holder, step, [old])).pieces.append(value)
            else:
                self._set(holder, step, made)
                holder = made

    def _set(self, holder: JsonValue, step: Step, value: JsonValue) -> None:
        self._texts.pop((id(holder), step), None)
        _set(holder, step, value)


class _Text(NamedTuple):
    """A string in pieces and its place; the reference to the container keeps its identity from being reused."""

    holder: JsonValue
    step: Step
    pieces: list[str]


def _steps(path: str) -> list[Step]:
    steps: list[Step] = []
    end = 1
    while end < len(path) and len(steps) < MAX_DEPTH:
        found = _STEP.match(path, end)
        if found is None:
            break
        steps.append(int(found[2]) if found[2] else found[1] or found[3] or found[4] or "")
        end = found.end()
    if not path.startswith("$") or end < len(path) or not steps or not isinstance(steps[0], str):
        raise malformed("has a piece of arguments at a place that cannot be read")
    return steps


def _at(holder: JsonValue, step: Step) -> JsonValue:
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int):
        return holder[step] if step < len(holder) else None
    raise malformed("has pieces of arguments that contradict each other")


def _set(holder: JsonValue, step: Step, value: JsonValue) -> None:
    if isinstance(holder, list):
        place = cast(int, step)
        if place > len(holder):
            raise malformed("has a piece of arguments that skips a place")
        holder[place : place + 1] = [value]
    else:
        cast(JsonObject, holder)[cast(str, step)] = value
