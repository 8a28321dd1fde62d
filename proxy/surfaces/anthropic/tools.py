"""Converts tools of the Messages API to OpenAI's chat shape.

A tool without a type, or of the type `custom`, is a function. A tool that the vendor runs and that other vendors have
too, such as a search, is unchanged. A search for tools is left out, because other vendors get all definitions.
Anthropic's other tools, whose types end with a date, are noted as binding. A function in OpenAI's form does not belong
to this API.

Sources: `anthropic` 2.12.0 types `ToolUnionParam`, `ToolChoiceParam`, November 2026.
"""

from typing import cast

from providers.hosted_tools.hosted_tool import is_hosted
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.blocks import MARKER
from proxy.surfaces.anthropic.translation import Translation, kind_of, with_path
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, json_object, string, text
from proxy.surfaces.request.tools import MAX_TOOLS

_OWN_FIELDS = ("eager_input_streaming", "defer_loading", "input_examples", "allowed_callers")
"""Fields of a function that only control how Anthropic offers it. The tools to which they refer are separate tools."""

_SEARCH = "tool_search_tool_"
"""The beginning of the types of tools that load the definitions of other tools. Other vendors get all definitions at
once."""

_DIRECT: JsonValue = ["direct"]


def put_tools(draft: Translation, value: JsonValue) -> None:
    """Read the tools. An empty list counts as absent, because OpenAI refuses it. Raises Invalid."""
    if not isinstance(value, list):
        raise Invalid("must be a list of tools")
    if len(value) > MAX_TOOLS:
        raise Invalid(f"may hold at most {MAX_TOOLS} tools")
    tools: list[JsonObject] = []
    for index, item in enumerate(value):
        try:
            _put_tool(draft, json_object(item), tools)
        except Invalid as bad:
            raise with_path(bad, index) from None
    if tools:
        draft.chat["tools"] = cast(JsonValue, tools)


def _put_tool(draft: Translation, tool: JsonObject, tools: list[JsonObject]) -> None:
    if is_hosted(tool):
        _check_own(tool)
        tools.append(tool)
    elif tool.get("type") in (None, "custom"):
        tools.append(_function(draft, tool))
    elif kind_of(tool).startswith(_SEARCH):
        draft.leave_out("tools.tool_search")
    else:
        _check_own(tool)
        draft.bind("tools", f"a tool of type '{kind_of(tool)}'")


def _check_own(tool: JsonObject) -> None:
    """Check a tool that is not a function. Raises Invalid."""
    if check_at(text, tool.get("type", "hosted"), "type") == "function":
        message = (
            "is 'function', as in OpenAI's APIs; a tool has no type here, but 'name', 'description' and 'input_schema'"
        )
        raise Invalid(message, "type")
    if tool.get("model") is not None:
        # The configuration decides which models a team may use.
        raise Invalid("cannot be set here", "model")


def _function(draft: Translation, tool: JsonObject) -> JsonObject:
    name, description, schema = tool.get("name"), tool.get("description"), tool.get("input_schema")
    if not (isinstance(name, str) and name and isinstance(description, str) and isinstance(schema, dict)):
        name = check_at(text, name, "name")
        if description is not None:
            check_at(string, description, "description")
        schema = check_at(json_object, schema, "input_schema")
    function: JsonObject = {"name": name, "description": description, "parameters": schema}
    if description is None:
        del function["description"]
    written: JsonObject = {"type": "function", "function": function}
    if len(tool) == 3 and description is not None:
        return written
    if tool.get("strict") is not None and check_at(boolean, tool["strict"], "strict"):
        function["strict"] = True
    for own in _OWN_FIELDS:
        if tool.get(own) and tool[own] != _DIRECT:
            draft.leave_out(own)
    marker = tool.get(MARKER)
    return written if marker is None else {**written, MARKER: check_at(json_object, marker, MARKER)}


def put_tool_choice(draft: Translation, value: JsonValue) -> None:
    """Read the choice among the tools. Raises Invalid."""
    choice = json_object(value)
    match check_at(text, choice.get("type"), "type"):
        case "auto":
            draft.chat["tool_choice"] = "auto"
        case "any":
            draft.chat["tool_choice"] = "required"
        case "none":
            draft.chat["tool_choice"] = "none"
        case "tool":
            name = check_at(text, choice.get("name"), "name")
            draft.chat["tool_choice"] = {"type": "function", "function": {"name": name}}
        case _:
            raise Invalid("must be one of 'auto', 'any', 'tool', 'none'", "type")
    single = choice.get("disable_parallel_tool_use")
    if single is not None and check_at(boolean, single, "disable_parallel_tool_use"):
        draft.chat["parallel_tool_calls"] = False
