"""Tools of a request to Gemini: function declarations, the tool choice, and names that its pattern allows.

Sources: `google-genai` 3.4.0 types `FunctionDeclaration`, `FunctionCallingConfig`; "Function calling" page, November
2026. Names may have 128 characters on newer models; the 64 of the older ones hold everywhere.
"""

import re
from collections.abc import Mapping

from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.dialects.shared.tool_names import FittedNames, native_choice
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params


class GeminiToolNames(FittedNames):
    """Names of one request's functions that Gemini's pattern allows."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
    foreign = re.compile(r"[^a-zA-Z0-9_.:-]")
    most = 64
    lead = "_"


def put_tools(body: JsonObject, params: Params, names: GeminiToolNames) -> None:
    """Add `tools` and `toolConfig`. Raises Refusal."""
    if not offers_tools(params):
        return
    tools = params["tools"]
    declarations: list[JsonValue] = [_declaration(tool["function"], names) for tool in tools]
    body["tools"] = [{"functionDeclarations": declarations}]
    config = native_choice(
        params.get("tool_choice"), _MODES, names, lambda name: {"mode": "ANY", "allowedFunctionNames": [name]}
    )
    if config is None and any(_strict(tool["function"]) for tool in tools):
        # The model may still answer in text, but its calls must match their declarations.
        config = {"mode": "VALIDATED"}
    if config is not None:
        body["toolConfig"] = {"functionCallingConfig": config}


def _strict(function: JsonValue) -> bool:
    return isinstance(function, dict) and bool(function.get("strict"))


def _declaration(function: JsonValue, names: GeminiToolNames) -> JsonObject:
    if not isinstance(function, dict):
        raise TypeError("offered_names lets only functions pass")
    name = str(function["name"])
    declaration: JsonObject = {"name": names[name]}
    if function.get("description"):
        declaration["description"] = function["description"]
    if parameters := read_parameters(function):
        schema: JsonObject = parameters if "type" in parameters else {"type": "object", **parameters}
        declaration["parametersJsonSchema"] = schema
    return declaration


_MODES: Mapping[str, JsonObject | None] = {"auto": None, "required": {"mode": "ANY"}, "none": {"mode": "NONE"}}
