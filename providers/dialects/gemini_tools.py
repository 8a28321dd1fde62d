"""Functions on Gemini's wire: declarations, the choice among them, and names that its pattern allows.

Never the calls of a conversation or of an answer.

Sources: `google-genai` 3.4.0 types `FunctionDeclaration`, `FunctionCallingConfig`; "Function calling" page, November
2026. Names may have 128 characters on newer models; the 64 of the older ones hold everywhere.
"""

import re
from collections.abc import Mapping

from providers.dialects.gemini_schema import native_schema
from providers.failure import Refusal
from providers.guided import Unenforceable
from providers.tool_names import FittedNames, chosen_name
from providers.unified import JsonObject, JsonValue, Params


class ToolNames(FittedNames):
    """As the pattern of the vendor's names has them."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
    foreign = re.compile(r"[^a-zA-Z0-9_.:-]")
    most = 64
    lead = "_"


def put_tools(body: JsonObject, params: Params, names: ToolNames) -> None:
    """Add `tools` and `toolConfig`. Raises Refusal."""
    tools, choice = params.get("tools"), params.get("tool_choice")
    if not tools:
        if choice not in (None, "none", "auto"):
            raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
        return
    declarations: list[JsonValue] = [_declaration(tool["function"], names) for tool in tools]
    body["tools"] = [{"functionDeclarations": declarations}]
    config = _choice(choice, names)
    if config is None and any(_strict(tool["function"]) for tool in tools):
        # The model stays free to answer in text, but a call keeps its declaration.
        config = {"mode": "VALIDATED"}
    if config is not None:
        body["toolConfig"] = {"functionCallingConfig": config}


def _strict(function: JsonValue) -> bool:
    return isinstance(function, dict) and bool(function.get("strict"))


def _declaration(function: JsonValue, names: ToolNames) -> JsonObject:
    if not isinstance(function, dict):
        raise TypeError("offered_names lets only functions pass")
    name = str(function["name"])
    declaration: JsonObject = {"name": names[name]}
    if function.get("description"):
        declaration["description"] = function["description"]
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise Refusal("tools", "The parameters of a function must be a schema of type 'object'.", "invalid_value")
    if parameters:
        schema: JsonObject = parameters if "type" in parameters else {"type": "object", **parameters}
        declaration["parametersJsonSchema"] = _enforced(name, schema) if _strict(function) else schema
    return declaration


def _enforced(name: str, schema: JsonObject) -> JsonObject:
    try:
        return native_schema(schema)
    except Unenforceable as problem:
        message = f"The parameters of '{name}' cannot be enforced as 'strict' asks: {problem.reason}."
        raise Refusal("tools", message) from None


_MODES: Mapping[str, JsonObject | None] = {"auto": None, "required": {"mode": "ANY"}, "none": {"mode": "NONE"}}


def _choice(choice: str | JsonObject | None, names: ToolNames) -> JsonObject | None:
    """The native choice; None where saying nothing means the same."""
    if choice is None:
        return None
    if isinstance(choice, str):
        return _MODES[choice]
    name = chosen_name(choice, names)
    return {"mode": "ANY", "allowedFunctionNames": [names[name]]}
