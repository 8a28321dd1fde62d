"""Assembles the arguments of a function call that arrive in several parts, each with its JSON path.

The gateway does not request partial arguments, but on Vertex AI a client may request them with
`inference_extra_params`.

Source: `google-genai` 3.4.0 types `FunctionCall.partial_args`, `PartialArg`, November 2026.
"""

import re
from typing import NamedTuple, cast

from providers.dialects.shared.read_json import malformed
from providers.json_types import JsonObject, JsonValue

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("numberValue", "boolValue", "stringValue")

MAX_DEPTH = 64
"""The maximum depth of nested arguments. The same limit applies to a client's request."""

Step = str | int


class ArgumentAssembler:
    """Assembles the arguments of one call.

    `_texts` holds the strings that arrive in several deltas, by the identity of their container and by their key or
    index in it. The deltas of a string are joined once, at the end.
    """

    __slots__ = ("_arguments", "_texts")

    def __init__(self) -> None:
        self._arguments: JsonObject = {}
        self._texts: dict[tuple[int, Step], _StringDeltas] = {}

    def update(self, fields: JsonObject) -> None:
        """Set arguments that arrived complete."""
        for name, value in fields.items():
            self._set(self._arguments, name, value)

    def add_partial(self, partials: JsonValue) -> None:
        """Set the values of partial arguments at their paths. Raises UpstreamError for a path that cannot be
        followed."""
        for partial in partials if isinstance(partials, list) else ():
            path = partial.get("jsonPath") if isinstance(partial, dict) else None
            if not isinstance(partial, dict) or not isinstance(path, str):
                raise malformed("has partial arguments without a path")
            self._set_at_path(_steps(path), next((partial[name] for name in _VALUES if name in partial), None))

    def complete(self) -> JsonObject:
        """Return the arguments."""
        for text in self._texts.values():
            _set(text.container, text.step, "".join(text.deltas))
        self._texts.clear()
        return self._arguments

    def _set_at_path(self, steps: list[Step], value: JsonValue) -> None:
        container: JsonValue = self._arguments
        for step, next_step in zip(steps, [*steps[1:], None], strict=True):
            child: JsonValue = value if next_step is None else [] if isinstance(next_step, int) else {}
            old = _at(container, step)
            if next_step is not None and isinstance(old, dict | list):
                container = old
            elif next_step is None and isinstance(old, str) and isinstance(value, str):
                # This is a further delta of a string.
                self._texts.setdefault((id(container), step), _StringDeltas(container, step, [old])).deltas.append(
                    value
                )
            else:
                self._set(container, step, child)
                container = child

    def _set(self, container: JsonValue, step: Step, value: JsonValue) -> None:
        self._texts.pop((id(container), step), None)
        _set(container, step, value)


class _StringDeltas(NamedTuple):
    """The deltas of a string, with its container and its key or index. The reference to the container keeps the
    container alive, so that no other object gets its identity."""

    container: JsonValue
    step: Step
    deltas: list[str]


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
        raise malformed("has partial arguments with an unreadable path")
    return steps


def _at(container: JsonValue, step: Step) -> JsonValue:
    if isinstance(container, dict) and isinstance(step, str):
        return container.get(step)
    if isinstance(container, list) and isinstance(step, int):
        return container[step] if step < len(container) else None
    raise malformed("has partial arguments that contradict each other")


def _set(container: JsonValue, step: Step, value: JsonValue) -> None:
    if isinstance(container, list):
        index = cast(int, step)
        if index > len(container):
            raise malformed("has partial arguments that skip a list index")
        container[index : index + 1] = [value]
    else:
        cast(JsonObject, container)[cast(str, step)] = value
