"""Writes the tools of a request to Bedrock's Converse: definitions, the service's own tools, the tool choice, and names
that the service's pattern allows.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `ToolConfiguration`, `SystemTool` and `ToolChoice`.
Live answers quoted in public issue threads show that a model's own `tool_choice` must have a `type` if the service's
`toolChoice` is not sent, and must not have a `type` if it is sent.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from providers.adaptation.forced_calls import chosen_name
from providers.adaptation.tool_members import other_members
from providers.capabilities import BY_FORMAT, feature_of
from providers.dialects.bedrock.converse_cache import cache_point
from providers.dialects.bedrock.converse_models import ConverseModel
from providers.dialects.shared.custom_tools import as_functions
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.dialects.shared.tool_names import FittedNames, offered_names
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Params

_MODEL_TOOL_CHOICE = "additionalModelRequestFields.tool_choice"


class BedrockToolNames(FittedNames):
    """The names of one request's functions, in the form that Converse's pattern allows."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    foreign = re.compile(r"[^a-zA-Z0-9_-]")
    most = 64


class OfferedTools(NamedTuple):
    """The tools of a request.

    `params` are the request's parameters, with functions as the only tools; custom tools have been converted into
    functions. `custom` are the names of the custom tools. `own` are the definitions of the service's own tools.
    """

    params: Params
    custom: frozenset[str]
    own: list[JsonObject]


def read_tools(params: Params) -> OfferedTools:
    """Return the tools of a request. Raises Refusal for a type of tool that the service does not have."""
    params, custom = as_functions(params)
    tools = params.get("tools") or []
    service_tools = [definition for tool in tools if (definition := _service_tool(tool)) is not None]
    if service_tools:
        params = params.copy()
        params["tools"] = [tool for tool in tools if _service_tool(tool) is None]
    for tool in params.get("tools") or ():
        if (kind := tool.get("type")) != "function":
            raise Refusal("tools", f"Bedrock's Converse has no tools of the type '{str(kind)[:64]}'.")
    offered_names(params)
    return OfferedTools(params, custom, service_tools)


def _service_tool(tool: JsonObject) -> JsonObject | None:
    """Return the definition of a tool that the service runs itself, such as `nova_grounding`; `None` for other
    tools."""
    match tool:
        case {"systemTool": {"name": str(name)}} | {"type": "systemTool" | "system_tool", "name": str(name)}:
            return {"systemTool": {"name": name}}
        case _:
            return None


def put_tools(draft: RequestBody, names: BedrockToolNames, offered: OfferedTools, model: ConverseModel) -> bool:
    """Add the tools that the model may call, and return whether there are any. Raises Refusal.

    The service has no tool choice `none`, so for that choice no tool is offered.
    """
    params = offered.params
    if not offered.own and not offers_tools(params):
        return False
    tools, choice = params.get("tools") or [], params.get("tool_choice")
    if choice not in (None, "auto"):
        _check_support(draft, feature_of("tool_choice", choice))
    one_call = params.get("parallel_tool_calls") is False
    if one_call and not (cell := draft.table["parallel_tool_calls"]).native:
        raise draft.unsupported("parallel_tool_calls", cell.how)
    _check_support(draft, "tools")
    if offered.custom:
        draft.emulated.append("tools")
    if choice == "none":
        draft.emulated.append("tool_choice")
        return False
    native_choice: JsonObject | None = None
    if choice == "required":
        native_choice = {"any": {}}
    elif isinstance(choice, dict):
        tools, native_choice = _named_choice(draft, choice, tools, names)
    draft.dropped += other_members(tools, ("cache_control",))
    draft.put("toolConfig.tools", [*_definitions(draft, tools, names, model), *offered.own])
    if native_choice is not None:
        draft.put("toolConfig.toolChoice", native_choice)
    if one_call:
        # The model's own field has a type only if the service's choice is absent.
        draft.put(
            _MODEL_TOOL_CHOICE, {**({} if native_choice else {"type": "auto"}), "disable_parallel_tool_use": True}
        )
    return True


def _check_support(draft: RequestBody, feature: str) -> None:
    if (cell := draft.table[feature]).refused or cell == BY_FORMAT:
        raise draft.unsupported(feature.partition(".")[0], cell.how)


def _named_choice(
    draft: RequestBody, choice: JsonObject, tools: list[JsonObject], names: BedrockToolNames
) -> tuple[list[JsonObject], JsonObject]:
    """Return the tools to offer, and the native choice that makes the model call the named tool."""
    name = chosen_name(choice, names)
    if draft.table["tool_choice.named"].native:
        return tools, {"tool": {"name": names[name]}}
    draft.emulated.append("tool_choice")
    return [tool for tool in tools if _function(tool)["name"] == name], {"any": {}}


def _function(tool: JsonObject) -> JsonObject:
    function = tool.get("function")
    return function if isinstance(function, dict) else {}


def _definitions(
    draft: RequestBody, tools: Iterable[JsonObject], names: BedrockToolNames, model: ConverseModel
) -> list[JsonObject]:
    """Return the definitions of functions, each followed by a cache point if the client marked it."""
    definitions: list[JsonObject] = []
    for tool in tools:
        function = _function(tool)
        definitions.append(_definition(draft, function, names))
        marker = tool.get("cache_control") or function.get("cache_control")
        if isinstance(marker, dict):
            if "tools" in model.cached:
                definitions.append(cache_point(model, marker))
            else:
                draft.dropped.append("cache_control")
    return definitions


def _definition(draft: RequestBody, function: JsonObject, names: BedrockToolNames) -> JsonObject:
    name = str(function["name"])
    schema: JsonObject = {"type": "object", **(read_parameters(function) or {"properties": {}})}
    spec: JsonObject = {"name": names[name], "inputSchema": {"json": schema}}
    if function.get("description"):
        spec["description"] = function["description"]
    if function.get("strict"):
        spec["strict"] = True
    return {"toolSpec": spec}
