"""Tools on Anthropic's wire: definitions, the choice among them, and names that its pattern allows.

Never the calls of a conversation or of an answer.

Sources: `anthropic` 2.12.0 types `ToolParam`, `ToolChoiceParam`; "Tool use" page, November 2026.
"""

import re
from collections.abc import Mapping

from providers.dialects.anthropic_schema import schema_problem
from providers.failure import Refusal
from providers.tool_names import FittedNames, chosen_name
from providers.unified import JsonObject, JsonValue, Params


class ToolNames(FittedNames):
    """As the pattern of the vendor's names has them."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z0-9_-]{1,128}")
    foreign = re.compile(r"[^a-zA-Z0-9_-]")
    most = 128


def put_tools(body: JsonObject, params: Params, names: ToolNames) -> None:
    """Add `tools` and `tool_choice`. Raises Refusal.

    A conversation with calls in it needs definitions even when the client offers no tools now: then they are stubs that
    the model may not call.
    """
    tools, choice = params.get("tools"), params.get("tool_choice")
    if not tools:
        if choice not in (None, "none", "auto"):
            raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
        if names.history:
            body["tools"] = [{"name": name, "input_schema": _schema({})} for name in names.history]
            body["tool_choice"] = {"type": "none"}
        return
    body["tools"] = [_definition(tool["function"], names) for tool in tools]
    chosen = _choice(choice, names)
    if params.get("parallel_tool_calls") is False and chosen != {"type": "none"}:
        chosen = {**(chosen or {"type": "auto"}), "disable_parallel_tool_use": True}
    if chosen is not None:
        body["tool_choice"] = chosen


def _definition(function: JsonValue, names: ToolNames) -> JsonObject:
    if not isinstance(function, dict):
        raise TypeError("offered_names lets only functions pass")
    name = str(function["name"])
    parameters = function.get("parameters") or {}
    definition: JsonObject = {"name": names[name], "input_schema": _schema(parameters)}
    if function.get("description"):
        definition["description"] = function["description"]
    if function.get("strict"):
        if problem := schema_problem(definition["input_schema"]):
            raise Refusal("tools", f"The parameters of '{name}' cannot be enforced as 'strict' asks: {problem}.")
        definition["strict"] = True
    return definition


def _schema(parameters: JsonValue) -> JsonObject:
    """Arguments are an object always, so a schema that leaves the type out means just that."""
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise Refusal("tools", "The parameters of a function must be a schema of type 'object'.", "invalid_value")
    if not parameters:
        return {"type": "object", "properties": {}}
    return parameters if "type" in parameters else {"type": "object", **parameters}


_CHOICES: Mapping[str, JsonObject | None] = {"auto": None, "required": {"type": "any"}, "none": {"type": "none"}}


def _choice(choice: str | JsonObject | None, names: ToolNames) -> JsonObject | None:
    """The native choice; None where saying nothing means the same."""
    if choice is None:
        return None
    if isinstance(choice, str):
        return _CHOICES[choice]
    name = chosen_name(choice, names)
    return {"type": "tool", "name": names[name]}
