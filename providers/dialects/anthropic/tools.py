"""Tools on Anthropic's wire: definitions, the choice among them, and names that its pattern allows.

Sources: `anthropic` 2.12.0 types `ToolParam`, `ToolChoiceParam`; "Tool use" page, November 2026.
"""

import re
from collections.abc import Mapping

from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.dialects.shared.tool_names import FittedNames, native_choice
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params


class ToolNames(FittedNames):
    """Names of tools as the vendor's pattern allows them."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z0-9_-]{1,128}")
    foreign = re.compile(r"[^a-zA-Z0-9_-]")
    most = 128


def put_tools(body: JsonObject, params: Params, names: ToolNames) -> None:
    """Write `tools` and `tool_choice`. Raises Refusal.

    A conversation that holds calls needs definitions even when the request offers no tools: then they are stubs that
    the model may not call.
    """
    if not offers_tools(params):
        if names.history:
            body["tools"] = [{"name": name, "input_schema": _schema({})} for name in names.history]
            body["tool_choice"] = {"type": "none"}
        return
    body["tools"] = [_definition(tool["function"], names) for tool in params["tools"]]
    chosen = native_choice(params.get("tool_choice"), _CHOICES, names, lambda name: {"type": "tool", "name": name})
    if params.get("parallel_tool_calls") is False and chosen != {"type": "none"}:
        chosen = {**(chosen or {"type": "auto"}), "disable_parallel_tool_use": True}
    if chosen is not None:
        body["tool_choice"] = chosen


def _definition(function: JsonValue, names: ToolNames) -> JsonObject:
    if not isinstance(function, dict):
        raise TypeError("offered_names lets only functions pass")
    name = str(function["name"])
    definition: JsonObject = {"name": names[name], "input_schema": _schema(read_parameters(function))}
    if function.get("description"):
        definition["description"] = function["description"]
    if function.get("strict"):
        definition["strict"] = True
    return definition


def _schema(parameters: JsonObject) -> JsonObject:
    """Return the schema of a function's arguments, with the type 'object' where it is left out."""
    if not parameters:
        return {"type": "object", "properties": {}}
    return parameters if "type" in parameters else {"type": "object", **parameters}


_CHOICES: Mapping[str, JsonObject | None] = {"auto": None, "required": {"type": "any"}, "none": {"type": "none"}}
