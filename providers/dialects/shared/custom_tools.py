"""OpenAI's custom tools, which take a text, as functions of one argument for vendors that have functions only.

Sources: OpenAI OpenAPI 2.3.0 `CustomToolChatCompletions`, `ChatCompletionMessageCustomToolCall`, November 2026.
"""

import orjson

from providers.completion import ToolCall
from providers.dialects.shared.read_json import load_json
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Params

INPUT = "input"
"""The argument that holds the text."""

_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {INPUT: {"type": "string", "description": "The whole input of the tool, as plain text."}},
    "required": [INPUT],
    "additionalProperties": False,
}


def as_functions(params: Params) -> tuple[Params, frozenset[str]]:
    """Return the parameters with functions in place of custom tools, and the names of those. Raises Refusal for a tool
    whose input must follow a grammar."""
    tools, choice = params.get("tools") or [], params.get("tool_choice")
    if not any(tool.get("type") == "custom" for tool in tools):
        return params, frozenset()
    names = frozenset(_custom_name(tool) for tool in tools if tool.get("type") == "custom")
    changed = params.copy()
    changed["tools"] = [_function(tool) if tool.get("type") == "custom" else tool for tool in tools]
    if isinstance(choice, dict) and isinstance(chosen := choice.get("custom"), dict):
        changed["tool_choice"] = {"type": "function", "function": {"name": chosen.get("name")}}
    return changed, names


def _custom_name(tool: JsonObject) -> str:
    custom = tool.get("custom")
    name = custom.get("name") if isinstance(custom, dict) else None
    if not isinstance(name, str) or not name:
        raise Refusal("tools", "A custom tool must have a name.", "invalid_value")
    return name


def _function(tool: JsonObject) -> JsonObject:
    custom = tool["custom"]
    held = custom if isinstance(custom, dict) else {}
    form = held.get("format")
    if isinstance(form, dict) and form.get("type") != "text":
        raise Refusal("tools", "The vendor cannot hold the input of a custom tool to a grammar.")
    function: JsonObject = {"name": held["name"], "parameters": _PARAMETERS}
    if held.get("description"):
        function["description"] = held["description"]
    marker = tool.get("cache_control")
    return {"type": "function", "function": function, **({"cache_control": marker} if marker else {})}


def input_text(arguments: str) -> str:
    """Return the text in a call's arguments, or the arguments themselves where a model wrote them otherwise."""
    try:
        given = load_json(arguments.encode(errors="replace"))
    except orjson.JSONDecodeError:
        return arguments
    text = given.get(INPUT) if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments


def custom_call(call: ToolCall, custom_tools: frozenset[str]) -> ToolCall:
    """Return a call as the client knows its tool: one of a custom tool has its text."""
    if call.name not in custom_tools:
        return call
    return ToolCall(call.id, call.name, input_text(call.arguments), "custom", call.extra)
