"""Writes the tools of a request to Cohere's v2 chat: definitions, the tool choice, and names that the vendor accepts.

Sources: `cohere` 7.3.1 types `ToolV2`, `V2ChatRequestToolChoice`; "Structured outputs" and "Tool use" pages, November
2026. The documentation of the v2 API has no rule for names, so names follow the rule of the v1 API: letters, digits and
underscores.
"""

import re
from collections.abc import Mapping

from providers.adaptation.forced_calls import chosen_name
from providers.adaptation.tool_members import other_members
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.dialects.shared.tool_names import FittedNames, offered_names
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params


class CohereToolNames(FittedNames):
    """The names of one request's functions, in a form that Cohere accepts."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
    foreign = re.compile(r"[^a-zA-Z0-9_]")
    lead = "_"


def offered_functions(params: Params) -> Mapping[str, JsonObject]:
    """Return the request's functions by name. Raises Refusal for another type of tool and for a name given twice."""
    for tool in params.get("tools", ()):
        if (kind := tool.get("type")) != "function":
            raise Refusal("tools", f"The vendor has no tools of the type '{str(kind)[:64]}'.")
    names = offered_names(params)
    functions = [function for tool in params.get("tools", ()) if isinstance(function := tool["function"], dict)]
    return dict(zip(names, functions, strict=True))


def put_tools(draft: RequestBody, params: Params, functions: Mapping[str, JsonObject], names: CohereToolNames) -> None:
    """Add `tools`, `tool_choice` and `strict_tools` for the request's parameters, whose tools must all be functions.
    Raises Refusal."""
    if not offers_tools(params):
        return
    draft.dropped += other_members(params["tools"])
    chosen, native_choice = _choice(draft, params.get("tool_choice"), functions)
    definitions: list[JsonValue] = [_definition(function, names) for function in chosen.values()]
    draft.body["tools"] = definitions
    if native_choice is not None:
        draft.body["tool_choice"] = native_choice
    if any(function.get("strict") for function in chosen.values()):
        draft.body["strict_tools"] = True


def _choice(
    draft: RequestBody, choice: str | JsonObject | None, functions: Mapping[str, JsonObject]
) -> tuple[Mapping[str, JsonObject], str | None]:
    """Return the functions to offer, and the native choice, which is `None` for the vendor's default."""
    if choice is None or isinstance(choice, str):
        return functions, {"required": "REQUIRED", "none": "NONE"}.get(choice or "auto")
    name = chosen_name(choice, functions)
    draft.emulated.append("tool_choice")
    return {name: functions[name]}, "REQUIRED"


def _definition(function: JsonObject, names: CohereToolNames) -> JsonObject:
    name = str(function["name"])
    parameters = read_parameters(function)
    schema: JsonObject = {"type": "object", **parameters}
    schema.setdefault("properties", {})
    definition: JsonObject = {"name": names[name], "parameters": schema}
    if function.get("description"):
        definition["description"] = function["description"]
    return {"type": "function", "function": definition}
