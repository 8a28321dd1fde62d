"""Finds the fields of functions that are lost if a definition is written in another vendor's form: cache markers,
examples and hints on how a tool is offered. A response can satisfy the request even if the vendor does not receive
these fields.

Sources: `anthropic` 2.12.0 type `ToolParam`; OpenAI OpenAPI 2.3.0 `FunctionObject`, November 2026.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from providers.json_types import JsonObject, JsonValue

_READ: Final = frozenset({"type", "function", "name", "description", "parameters", "strict"})
_DIRECT: Final[JsonValue] = ["direct"]
"""The default value of `allowed_callers`."""


def other_members(tools: Iterable[JsonObject], taken: Collection[str] = ()) -> list[str]:
    """Return the names of the fields of functions that are lost, each once. `taken` are the names of the fields that
    the vendor's form also has. Fields that are empty or have their default value are not included."""
    names: dict[str, None] = {}
    for tool in tools:
        function = tool.get("function")
        if isinstance(function, dict) and not (_READ.issuperset(tool) and _READ.issuperset(function)):
            names |= dict.fromkeys(_others(tool, function, taken))
    return [*names]


def _others(tool: JsonObject, function: JsonObject, taken: Collection[str]) -> Iterator[str]:
    for holder in (tool, function):
        for name, value in holder.items():
            if name not in _READ and value and value != _DIRECT and name not in taken:
                yield name
