"""Arguments of a function call that come in pieces, each with its place in the whole.

Never asked for by the gateway: a client may, through `inference_extra_params`, on Vertex AI.

Source: `google-genai` 3.4.0 types `FunctionCall.partial_args`, `PartialArg`, November 2026.
"""

import re
from typing import cast

from providers.dialects.openai_read import malformed
from providers.unified import JsonObject, JsonValue

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("numberValue", "boolValue", "stringValue")

Step = str | int


def put_pieces(given: JsonObject, pieces: JsonValue) -> None:
    """Put pieces into their places. Raises UpstreamError for a place that cannot be."""
    for piece in pieces if isinstance(pieces, list) else ():
        path = piece.get("jsonPath") if isinstance(piece, dict) else None
        if not isinstance(piece, dict) or not isinstance(path, str):
            raise malformed("has a piece of arguments without its place")
        _put(given, _steps(path), next((piece[name] for name in _VALUES if name in piece), None))


def _steps(path: str) -> list[Step]:
    steps: list[Step] = []
    end = 1
    while end < len(path):
        found = _STEP.match(path, end)
        if found is None:
            break
        steps.append(int(found[2]) if found[2] else found[1] or found[3] or found[4] or "")
        end = found.end()
    if not path.startswith("$") or end < len(path) or not steps or not isinstance(steps[0], str):
        raise malformed("has a piece of arguments at a place that cannot be read")
    return steps


def _put(given: JsonObject, steps: list[Step], value: JsonValue) -> None:
    holder: JsonValue = given
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        made: JsonValue = value if after is None else [] if isinstance(after, int) else {}
        old = _at(holder, step)
        if after is not None and isinstance(old, dict | list):
            made = old
        elif after is None and isinstance(old, str) and isinstance(value, str):
            # A text goes on where it left off.
            made = old + value
        _set(holder, step, made)
        holder = made


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
