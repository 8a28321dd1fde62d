"""Names fields of functions that a definition in another form cannot hold: cache markers, examples and hints on how a
tool is offered. They do not change the response in a guaranteed way.

Sources: `anthropic` 2.12.0 type `ToolParam`; OpenAI OpenAPI 2.3.0 `FunctionObject`, November 2026.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from providers.json_types import JsonObject, JsonValue

_READ: Final = frozenset({"type", "function", "name", "description", "parameters", "strict"})
_DIRECT: Final[JsonValue] = ["direct"]
"""The value of `allowed_callers` that is the default."""


def other_members(tools: Iterable[JsonObject], taken: Collection[str] = ()) -> list[str]:
    """Return the names of fields of functions, each once, that are neither part of every definition nor `taken`. Fields
    with a default value are not named."""
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
