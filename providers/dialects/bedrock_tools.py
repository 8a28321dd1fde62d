"""Tools on Bedrock's Converse: definitions, the choice among them, and names that its pattern allows.

Never the calls of a conversation or of an answer.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `ToolConfiguration` and `ToolChoice`. Live answers
quoted in public issue threads show that a model's own `tool_choice` must have a `type` where the service's is not said,
and may have none where it is.
"""

import re

from providers.capabilities import feature_of
from providers.dialects.anthropic_schema import schema_problem
from providers.dialects.native_fields import Draft
from providers.failure import Refusal
from providers.tool_names import FittedNames, chosen_name
from providers.unified import JsonObject

_OWN_CHOICE = "additionalModelRequestFields.tool_choice"


class ToolNames(FittedNames):
    """As the pattern of the service's names has them."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    foreign = re.compile(r"[^a-zA-Z0-9_-]")
    most = 64


def put_tools(draft: Draft, names: ToolNames) -> bool:
    """Add the tools that the model may call; whether there are any. Raises Refusal.

    The service has no word for calling none, so then no tool is offered.
    """
    tools, choice = draft.params.get("tools"), draft.params.get("tool_choice")
    if not tools:
        if choice not in (None, "none", "auto"):
            raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
        return False
    if choice not in (None, "auto"):
        _need(draft, feature_of("tool_choice", choice))
    alone = draft.params.get("parallel_tool_calls") is False
    if alone:
        _need(draft, "parallel_tool_calls")
    _need(draft, "tools")
    if choice == "none":
        draft.emulated.append("tool_choice")
        return False
    functions = [function for tool in tools if isinstance(function := tool["function"], dict)]
    word: JsonObject | None = None
    if choice == "required":
        word = {"any": {}}
    elif isinstance(choice, dict):
        functions, word = _named(draft, choice, functions, names)
    draft.put("toolConfig.tools", [_definition(draft, function, names) for function in functions])
    if word is not None:
        draft.put("toolConfig.toolChoice", word)
    if alone:
        # The model's own switch. It has a type of its own only where the service's choice does not say one.
        draft.put(_OWN_CHOICE, {**({} if word else {"type": "auto"}), "disable_parallel_tool_use": True})
    return True


def _need(draft: Draft, feature: str) -> None:
    if (cell := draft.table[feature]).refused:
        raise draft.unsupported(feature.partition(".")[0], cell.how)


def _named(
    draft: Draft, choice: JsonObject, functions: list[JsonObject], names: ToolNames
) -> tuple[list[JsonObject], JsonObject]:
    """The functions to offer, and the word that makes the model call the one that is named."""
    name = chosen_name(choice, names)
    if draft.table["tool_choice.named"].native:
        return functions, {"tool": {"name": names[name]}}
    draft.emulated.append("tool_choice")
    return [function for function in functions if function["name"] == name], {"any": {}}


def _definition(draft: Draft, function: JsonObject, names: ToolNames) -> JsonObject:
    name = str(function["name"])
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise Refusal("tools", "The parameters of a function must be a schema of type 'object'.", "invalid_value")
    schema: JsonObject = {"type": "object", **(parameters or {"properties": {}})}
    spec: JsonObject = {"name": names[name], "inputSchema": {"json": schema}}
    if function.get("description"):
        spec["description"] = function["description"]
    if function.get("strict"):
        cell = draft.table["response_format.json_schema"]
        if problem := cell.how if cell.refused else schema_problem(schema):
            raise Refusal("tools", f"The parameters of '{name}' cannot be enforced as 'strict' asks: {problem}.")
        spec["strict"] = True
    return {"toolSpec": spec}
