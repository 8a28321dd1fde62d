"""Translates tools into Anthropic's form: definitions, the vendor's own tools, the tool choice, and names that the
vendor's pattern allows.

Sources: `anthropic` 2.12.0 types `ToolUnionParam`, `ToolChoiceParam`; "Tool use" page, November 2026. For the tools
that the clouds lack: pydantic-ai 2.68.0 `providers/bedrock`, "Claude on Vertex AI" page.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from providers.adaptation.tool_members import other_members
from providers.dialects.shared.custom_tools import as_functions
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.dialects.shared.tool_names import FittedNames, native_choice, offered_names
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.models.claude import ClaudeModel
from providers.target import Target
from providers.unified_request import Params

NO_FORCED_CHOICE = "this model cannot be made to call a tool"

_VENDOR_TOOL = re.compile(
    r"(?:web_search|web_fetch|code_execution|bash|text_editor|memory|computer|computer_toolset|browser_toolset|advisor)"
    r"_[0-9]{8}|tool_search_tool_(?:bm25|regex)(?:_[0-9]{8})?|mcp_toolset"
)
_TOOL_FIELDS = ("cache_control", "defer_loading", "eager_input_streaming", "allowed_callers", "input_examples")
"""Fields that the vendor accepts in a tool's definition in addition to the fields of the function."""

_TOOL_FIELD_SET = frozenset(_TOOL_FIELDS)


class ToolNames(FittedNames):
    """Tool names that the vendor's pattern allows. `own` are the names of the vendor's own tools. `custom` are the
    names of the client's tools whose input is a text."""

    __slots__ = ("custom", "own")

    fits = re.compile(r"[a-zA-Z0-9_-]{1,128}")
    foreign = re.compile(r"[^a-zA-Z0-9_-]")
    most = 128

    def __init__(self, offered: Iterable[str], own: Iterable[str] = (), custom: frozenset[str] = frozenset()) -> None:
        self.own = frozenset(own)
        self.custom = custom
        super().__init__([*offered, *self.own])


def tool_names(params: Params) -> ToolNames:
    """Return the names of the request's tools. Raises Refusal for a type of tool that the vendor does not have."""
    params, custom = as_functions(params)
    functions: list[JsonObject] = []
    own: list[str] = []
    for tool in params.get("tools", ()):
        kind = tool.get("type")
        if kind == "function":
            functions.append(tool)
        elif _is_vendor_tool(tool):
            own.append(str(tool.get("name", kind)))
        else:
            raise Refusal("tools", f"The vendor has no tools of type '{str(kind)[:64]}'.")
    return ToolNames(offered_names(cast(Params, {"tools": functions})), own, custom)


def put_tools(draft: RequestBody, names: ToolNames, model: ClaudeModel) -> None:
    """Write `tools` and `tool_choice`. Raises Refusal.

    A conversation with tool calls needs tool definitions even if the request offers no tools. Such definitions are
    stubs, which the model may not call.
    """
    body, (params, _) = draft.body, as_functions(draft.params)
    if not offers_tools(params):
        if names.history:
            body["tools"] = [{"name": name, "input_schema": _schema({})} for name in names.history]
            body["tool_choice"] = {"type": "none"}
        return
    body["tools"] = [tool if _is_vendor_tool(tool) else _definition(tool, names) for tool in params["tools"]]
    draft.dropped += other_members(params["tools"], _TOOL_FIELDS)
    chosen = native_choice(params.get("tool_choice"), _CHOICES, names, lambda name: {"type": "tool", "name": name})
    if forces_call(chosen) and not model.forced_choice:
        raise draft.unsupported("tool_choice", NO_FORCED_CHOICE)
    if params.get("parallel_tool_calls") is False and chosen != {"type": "none"}:
        chosen = {**(chosen or {"type": "auto"}), "disable_parallel_tool_use": True}
    if chosen is not None:
        body["tool_choice"] = chosen
    if names.custom:
        draft.emulated.append("tools")


def forces_call(chosen: JsonValue) -> bool:
    """Return whether a native tool choice requires a call."""
    return isinstance(chosen, dict) and chosen.get("type") in ("any", "tool")


def refuse_tools(target: Target, tools: Iterable[JsonObject], absent: re.Pattern[str]) -> None:
    """Raise Refusal for one of Anthropic's own tools if the platform does not offer its type."""
    for tool in tools:
        kind = tool.get("type")
        if isinstance(kind, str) and kind != "function" and absent.match(kind):
            raise Refusal("tools", f"{target.name} does not offer tools of type '{kind[:64]}'.")


def _is_vendor_tool(tool: JsonObject) -> bool:
    kind = tool.get("type")
    return kind != "function" and isinstance(kind, str) and _VENDOR_TOOL.fullmatch(kind) is not None


def _definition(tool: JsonObject, names: ToolNames) -> JsonObject:
    function = tool.get("function")
    if not isinstance(function, dict):
        raise TypeError("tool_names accepts only functions")
    name = str(function["name"])
    definition: JsonObject = {"name": names[name], "input_schema": _schema(read_parameters(function))}
    if function.get("description"):
        definition["description"] = function["description"]
    if function.get("strict"):
        definition["strict"] = True
    if not (_TOOL_FIELD_SET.isdisjoint(tool) and _TOOL_FIELD_SET.isdisjoint(function)):
        definition.update(_other_fields(tool, function))
    return definition


def _other_fields(tool: JsonObject, function: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    for name in _TOOL_FIELDS:
        if value := tool.get(name) or function.get(name):
            yield name, value


def _schema(parameters: JsonObject) -> JsonObject:
    """Return the schema of a function's arguments, with the type 'object' if the client left the type out."""
    if not parameters:
        return {"type": "object", "properties": {}}
    return parameters if "type" in parameters else {"type": "object", **parameters}


_CHOICES: Mapping[str, JsonObject | None] = {"auto": None, "required": {"type": "any"}, "none": {"type": "none"}}
