"""Checks tools and the choice among them.

Shapes: OpenAI OpenAPI 2.3.0 `ChatCompletionTool`, `ChatCompletionToolChoiceOption`; Google's own tools in the form that
clients of `google-genai` 3.4.0 use: an object with the tool's name as a key and its settings as the value.
"""

from typing import TypeGuard

from providers.hosted_tools.hosted_tool import is_hosted
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.rule_kinds import Invalid, check_at, json_object, string, text

MAX_TOOLS = 512
"""The most tools of a request, four times OpenAI's own limit."""

CHOICES = ("none", "auto", "required")


def tools(value: JsonValue) -> list[JsonObject]:
    """Check a list of tools, possibly empty. A function has a name, and may have an object of parameters."""
    if not isinstance(value, list):
        raise Invalid("must be a list of tools")
    if len(value) > MAX_TOOLS:
        raise Invalid(f"may hold at most {MAX_TOOLS} tools")
    return [item if _is_usual(item) else check_at(_tool, item, index) for index, item in enumerate(value)]


def _is_usual(tool: JsonValue) -> TypeGuard[JsonObject]:
    """Return whether a tool is a function with a description and parameters, as nearly all tools are. `_tool` accepts
    every such tool, and this test takes a third of its time."""
    return (
        type(tool) is dict
        and tool.get("type") == "function"
        and type(function := tool.get("function")) is dict
        and type(name := function.get("name")) is str
        and bool(name)
        and type(function.get("description")) is str
        and type(function.get("parameters")) is dict
    )


def _tool(value: JsonValue) -> JsonObject:
    tool = json_object(value)
    if tool.get("type") is None and is_hosted(tool):
        return tool
    if check_at(text, tool.get("type"), "type") == "function":
        check_at(_function, tool.get("function"), "function")
    return tool


def _function(value: JsonValue) -> None:
    function = json_object(value)
    check_at(text, function.get("name"), "name")
    for name, check in (("description", string), ("parameters", json_object)):
        field_value = function.get(name)
        if field_value is not None:
            check_at(check, field_value, name)


def function_tool(value: JsonValue) -> JsonObject:
    """Check a function, and return it as a tool."""
    _function(value)
    return {"type": "function", "function": value}


def tool_choice(value: JsonValue) -> str | JsonObject:
    """Check a mode, or an object that names a function."""
    if isinstance(value, str) and value in CHOICES:
        return value
    if not isinstance(value, dict):
        raise Invalid("must be 'none', 'auto', 'required' or an object")
    if check_at(text, value.get("type"), "type") == "function":
        function = check_at(json_object, value.get("function"), "function")
        check_at(text, function.get("name"), "function", "name")
    return value
