"""Tools of a request to Bedrock's Converse: definitions, the tool choice, and names that its pattern allows.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `ToolConfiguration` and `ToolChoice`. Live answers
quoted in public issue threads show that a model's own `tool_choice` must have a `type` where the service's is not sent,
and must have none where it is.
"""

import re

from providers.capabilities import feature_of
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.dialects.shared.tool_names import FittedNames, chosen_name
from providers.json_types import JsonObject

_OWN_CHOICE = "additionalModelRequestFields.tool_choice"


class BedrockToolNames(FittedNames):
    """Names of one request's functions that Converse's pattern allows."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    foreign = re.compile(r"[^a-zA-Z0-9_-]")
    most = 64


def put_tools(draft: RequestBody, names: BedrockToolNames) -> bool:
    """Add the tools that the model may call, and return whether there are any. Raises Refusal.

    The service has no choice `none`, so no tool is offered then.
    """
    if not offers_tools(draft.params):
        return False
    tools, choice = draft.params["tools"], draft.params.get("tool_choice")
    if choice not in (None, "auto"):
        _need(draft, feature_of("tool_choice", choice))
    one_call = draft.params.get("parallel_tool_calls") is False
    if one_call:
        _need(draft, "parallel_tool_calls")
    _need(draft, "tools")
    if choice == "none":
        draft.emulated.append("tool_choice")
        return False
    functions = [function for tool in tools if isinstance(function := tool["function"], dict)]
    native_choice: JsonObject | None = None
    if choice == "required":
        native_choice = {"any": {}}
    elif isinstance(choice, dict):
        functions, native_choice = _named(draft, choice, functions, names)
    draft.put("toolConfig.tools", [_definition(draft, function, names) for function in functions])
    if native_choice is not None:
        draft.put("toolConfig.toolChoice", native_choice)
    if one_call:
        # The model's own member, with a type only where the service's choice is absent.
        draft.put(_OWN_CHOICE, {**({} if native_choice else {"type": "auto"}), "disable_parallel_tool_use": True})
    return True


def _need(draft: RequestBody, feature: str) -> None:
    if (cell := draft.table[feature]).refused:
        raise draft.unsupported(feature.partition(".")[0], cell.how)


def _named(
    draft: RequestBody, choice: JsonObject, functions: list[JsonObject], names: BedrockToolNames
) -> tuple[list[JsonObject], JsonObject]:
    """Return the functions to offer, and the native choice that makes the model call the one that is named."""
    name = chosen_name(choice, names)
    if draft.table["tool_choice.named"].native:
        return functions, {"tool": {"name": names[name]}}
    draft.emulated.append("tool_choice")
    return [function for function in functions if function["name"] == name], {"any": {}}


def _definition(draft: RequestBody, function: JsonObject, names: BedrockToolNames) -> JsonObject:
    name = str(function["name"])
    schema: JsonObject = {"type": "object", **(read_parameters(function) or {"properties": {}})}
    spec: JsonObject = {"name": names[name], "inputSchema": {"json": schema}}
    if function.get("description"):
        spec["description"] = function["description"]
    if function.get("strict"):
        spec["strict"] = True
    return {"toolSpec": spec}
