"""Arguments of a function call that come in pieces, each with its place in the whole.

Never asked for by the gateway: a client may, through `inference_extra_params`, on Vertex AI.

Source: `google-genai` 3.4.0 types `FunctionCall.partial_args`, `PartialArg`, November 2026.
"""

import re
from typing import NamedTuple, cast

from providers.dialects.openai_read import malformed
from providers.unified import JsonObject, JsonValue

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("numberValue", "boolValue", "stringValue")

MAX_DEPTH = 64
"""Levels of arguments, as many as a client's own request may have."""

Step = str | int


class Pieces:
    """The arguments of one call in the making.

    `_texts` holds the texts that came in several pieces, by the holder's identity and their place in it: they are
    joined once, when the whole is wanted.
    """

    __slots__ = ("_given", "_texts")

    def __init__(self) -> None:
        self._given: JsonObject = {}
        self._texts: dict[tuple[int, Step], _Text] = {}

    def update(self, members: JsonObject) -> None:
        """Set members that came whole."""
        for name, value in members.items():
            self._set(self._given, name, value)

    def put(self, pieces: JsonValue) -> None:
        """Put pieces into their places. Raises UpstreamError for a place that cannot be."""
        for piece in pieces if isinstance(pieces, list) else ():
            path = piece.get("jsonPath") if isinstance(piece, dict) else None
            if not isinstance(piece, dict) or not isinstance(path, str):
                raise malformed("has a piece of arguments without its place")
            self._put(_steps(path), next((piece[name] for name in _VALUES if name in piece), None))

    def whole(self) -> JsonObject:
        """The arguments."""
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
                # A text goes on where it left off.
                self._texts.setdefault((id(holder), step), _Text(holder, step, [old])).pieces.append(value)
            else:
                self._set(holder, step, made)
                holder = made

    def _set(self, holder: JsonValue, step: Step, value: JsonValue) -> None:
        self._texts.pop((id(holder), step), None)
        _set(holder, step, value)


class _Text(NamedTuple):
    """A text in pieces and its place; the reference keeps the holder's identity from being given to another."""

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
