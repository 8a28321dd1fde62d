"""Tools on Cohere's v2 chat: definitions, the choice among them, and names that are safe there. Never calls.

Sources: `cohere` 7.3.1 types `ToolV2`, `V2ChatRequestToolChoice`; "Structured outputs" and "Tool use" pages, November
2026. Names are kept to what the vendor documented for its first API (letters, digits, underscores), since the second
says nothing.
"""

import re
from collections.abc import Iterable, Mapping

from providers.dialects.native_fields import Draft
from providers.failure import Refusal
from providers.tool_names import DistinctNames, chosen_name
from providers.unified import JsonObject, JsonValue, Params

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_]")


def offered(params: Params) -> Mapping[str, JsonObject]:
    """The request's functions by name. Raises Refusal for another kind of tool and for a name given twice."""
    functions: dict[str, JsonObject] = {}
    for tool in params.get("tools", ()):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if tool.get("type") != "function" or not isinstance(function, dict) or not isinstance(name, str):
            raise Refusal("tools", "Only tools of type 'function' can be translated.")
        if name in functions:
            raise Refusal("tools", f"'tools' lists the function '{name}' twice.", "invalid_value")
        functions[name] = function
    return functions


def wire_names(names: Iterable[str]) -> Mapping[str, str]:
    """Each name as the vendor takes it; names that fit keep themselves, whatever the order."""
    given = list(dict.fromkeys(names))
    wire = {name: name for name in given if _NAME.fullmatch(name)}
    distinct = DistinctNames(wire)
    for name in given:
        if name in wire:
            continue
        base = _FOREIGN.sub("_", name)
        wire[name] = distinct.add(base if _NAME.fullmatch(base) else f"_{base}")
    return wire


def put_tools(draft: Draft, functions: Mapping[str, JsonObject], names: Mapping[str, str]) -> None:
    """Add `tools`, `tool_choice` and `strict_tools`. Raises Refusal."""
    choice = draft.params.get("tool_choice")
    if not functions:
        if choice not in (None, "none", "auto"):
            raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
        return
    if draft.params.get("parallel_tool_calls") is False:
        raise draft.unsupported("parallel_tool_calls", draft.table["parallel_tool_calls"].how)
    chosen, word = _choice(draft, choice, functions)
    definitions: list[JsonValue] = [_definition(function, names) for function in chosen.values()]
    draft.body["tools"] = definitions
    if word is not None:
        draft.body["tool_choice"] = word
    if any(function.get("strict") for function in chosen.values()):
        draft.body["strict_tools"] = True


def _choice(
    draft: Draft, choice: str | JsonObject | None, functions: Mapping[str, JsonObject]
) -> tuple[Mapping[str, JsonObject], str | None]:
    """The functions to offer and the vendor's word; none where saying nothing means the same."""
    if choice is None or isinstance(choice, str):
        return functions, {"required": "REQUIRED", "none": "NONE"}.get(choice or "auto")
    name = chosen_name(choice, functions)
    draft.emulated.append("tool_choice")
    return {name: functions[name]}, "REQUIRED"


def _definition(function: JsonObject, names: Mapping[str, str]) -> JsonObject:
    name = str(function["name"])
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise Refusal("tools", "The parameters of a function must be a schema of type 'object'.", "invalid_value")
    if function.get("strict") and not parameters.get("required"):
        raise Refusal("tools", f"The parameters of '{name}' must require one to be enforced as 'strict' asks.")
    whole: JsonObject = {"type": "object", **parameters}
    whole.setdefault("properties", {})
    definition: JsonObject = {"name": names[name], "parameters": whole}
    if function.get("description"):
        definition["description"] = function["description"]
    return {"type": "function", "function": definition}
