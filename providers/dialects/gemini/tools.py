"""Writes the tools of a request to Gemini: function declarations, the tool choice, Google's tools, and names that the
vendor's pattern allows.

For a tool that Google runs itself, such as Google Search, a client writes `{"type": "google_search"}`. The tool's
settings stand beside `type` or below the tool's name, in the vendor's spelling or with underscores. A request with both
functions and such tools requires Gemini 3. For such a request the Gemini API requires a switch that Vertex AI does not
know.

Sources: `google-genai` 3.4.0 types `Tool`, `FunctionDeclaration`, `FunctionCallingConfig`; "Function calling" and "Tool
combination" pages; the error "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with
Function calling" as issue threads of cloudwego/eino-ext and ag2ai/ag2 quote it, November 2026. Names may have 128
characters on newer models, but the 64 of the older models are allowed on all.
"""

import re
from collections.abc import Mapping, Sequence

from providers.adaptation.tool_members import other_members
from providers.dialects.gemini.model_path import is_modern
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.thought_signatures import Service
from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.dialects.shared.tool_names import FittedNames, native_choice, offered_names
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params


class GeminiToolNames(FittedNames):
    """The names of one request's functions, in the form that Gemini's pattern allows."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
    foreign = re.compile(r"[^a-zA-Z0-9_.:-]")
    most = 64
    lead = "_"


_GOOGLE_TOOLS = (
    "googleSearch",
    "googleSearchRetrieval",
    "googleMaps",
    "urlContext",
    "codeExecution",
    "fileSearch",
    "computerUse",
    "enterpriseWebSearch",
    "retrieval",
    "mcpServers",
    "parallelAiSearch",
    "exaAiSearch",
)


def _with_underscores(name: str) -> str:
    return "".join([f"_{letter.lower()}" if letter.isupper() else letter for letter in name])


SERVER_TOOLS: Mapping[str, str] = {
    **{name: name for name in _GOOGLE_TOOLS},
    **{_with_underscores(name): name for name in _GOOGLE_TOOLS},
}
"""The vendor's names of its tools, by both spellings that clients use."""

_UNIFIED_KEYS = frozenset({"type", "cache_control"})


def server_tool(tool: JsonObject) -> JsonObject | None:
    """Return an entry of `tools` in the vendor's form; `None` if the tool is not the vendor's own."""
    kind = tool.get("type")
    if kind is None and len(tool) == 1:
        (kind,) = tool
    name = SERVER_TOOLS.get(kind) if isinstance(kind, str) else None
    if name is None:
        return None
    settings: JsonValue = tool.get(name, tool.get(_with_underscores(name)))
    if settings is None:
        settings = {key: value for key, value in tool.items() if key not in _UNIFIED_KEYS}
    return {name: settings}


def split_tools(tools: Sequence[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the entries of `tools` that are the vendor's own tools, in the vendor's form, and the other entries
    unchanged."""
    google_tools: list[JsonObject] = []
    others: list[JsonObject] = []
    for tool in tools:
        native = server_tool(tool)
        if native is None:
            others.append(tool)
        else:
            google_tools.append(native)
    return google_tools, others


def put_tools(draft: RequestBody, names: GeminiToolNames, service: Service) -> None:
    """Add `tools` and `toolConfig`. Raises Refusal."""
    params, body = draft.params, draft.body
    if not offers_tools(params):
        return
    google_tools, functions = split_tools(params["tools"])
    if google_tools and functions and not is_modern(draft.target):
        message = "models before Gemini 3 cannot use Google's own tools beside functions"
        raise draft.unsupported("tools", message)
    if any("cache_control" in tool for tool in params["tools"]):
        draft.dropped.append("cache_control")
    if not functions:
        _put_google_tools(draft, google_tools)
        return
    draft.dropped += other_members(functions)
    declarations: list[JsonValue] = [_declaration(tool["function"], names) for tool in functions]
    body["tools"] = [*google_tools, {"functionDeclarations": declarations}]
    choice = params.get("tool_choice")
    config = native_choice(choice, _MODES, names, lambda name: {"mode": "ANY", "allowedFunctionNames": [name]})
    if config is None and any(_strict(tool["function"]) for tool in functions):
        # In this mode the model may still respond with text, but its calls must match the functions' declarations.
        config = {"mode": "VALIDATED"}
    tool_config: JsonObject = {} if config is None else {"functionCallingConfig": config}
    if google_tools and service == "studio":
        tool_config["includeServerSideToolInvocations"] = True
    if tool_config:
        body["toolConfig"] = tool_config


def _put_google_tools(draft: RequestBody, google_tools: list[JsonObject]) -> None:
    """Add the tools that Google runs, for a request without functions. Raises Refusal if the tool choice requires a
    tool call."""
    choice = draft.params.get("tool_choice")
    if choice in (None, "auto"):
        draft.body["tools"] = [*google_tools]
    elif choice != "none":
        raise draft.unsupported("tool_choice", "only functions can be required, not Google's own tools")


def named_functions(params: Params) -> list[str]:
    """Return the names of the request's functions. Google's own tools may stand beside them. Raises Refusal."""
    _, functions = split_tools(params.get("tools", ()))
    return offered_names({"tools": functions})


def _strict(function: JsonValue) -> bool:
    return isinstance(function, dict) and bool(function.get("strict"))


def _declaration(function: JsonValue, names: GeminiToolNames) -> JsonObject:
    if not isinstance(function, dict):
        raise TypeError("offered_names accepts only functions")
    name = str(function["name"])
    declaration: JsonObject = {"name": names[name]}
    if function.get("description"):
        declaration["description"] = function["description"]
    if parameters := read_parameters(function):
        schema: JsonObject = parameters if "type" in parameters else {"type": "object", **parameters}
        declaration["parametersJsonSchema"] = schema
    return declaration


_MODES: Mapping[str, JsonObject | None] = {"auto": None, "required": {"mode": "ANY"}, "none": {"mode": "NONE"}}
