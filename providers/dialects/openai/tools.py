"""Writers of tools and of the tool choice for the OpenAI family.

A tool that is not a function runs at the vendor (a search, an interpreter) or is OpenAI's `custom` tool, which is sent
to other vendors as a function. Each vendor's profile lists the types that the vendor accepts. For hosted vendors, a
function name that does not match OpenAI's pattern (Claude's names may have 128 characters) is changed in the request
and restored in the response. Names of the vendor's own tools (Kimi's `$web_search`) stay.

Sources, November 2026: OpenAI OpenAPI 2.3.0 `ChatCompletionTool`, `FunctionObject`, `CustomToolChatCompletions`;
@openrouter/sdk 1.3.19, groq 1.7.0, zai-sdk 0.2.3 and "Kimi API: official tools" for the vendors' own types that the
profiles list.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

from providers.capabilities import feature_of
from providers.dialects.shared.custom_tools import as_functions
from providers.dialects.shared.field_writers import without_markers
from providers.dialects.shared.request_body import FieldWriter, RequestBody
from providers.dialects.shared.tool_definitions import with_properties
from providers.dialects.shared.tool_names import FittedNames
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.request_fields import is_neutral
from providers.unified_request import ChatPrompt, Operation, Params, UnifiedRequest

_ALLOWED_TOOLS: Final = "allowed_tools"
_CLIENT_TOOL_TYPES: Final = ("function", "custom", None)


def tools_writer(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    """Return the writer of `tools`, which raises Refusal for a type that the vendor does not have."""

    def put(draft: RequestBody, value: object) -> None:
        if (tools := cast(list[JsonObject], value)) and not _withholds_tools(draft):
            if profile.most_tools is not None and len(tools) > profile.most_tools:
                raise draft.unsupported(name, f"it takes at most {profile.most_tools} tools")
            draft.body[name] = [_vendor_tool(draft, profile, tool) for tool in tools]

    return put


def _withholds_tools(draft: RequestBody) -> bool:
    """Return whether the tools are left out, because the choice is `none` and the vendor has no such choice."""
    return draft.params.get("tool_choice") == "none" and draft.table["tool_choice.none"].emulated


def _name(tool: JsonObject) -> str:
    function = tool.get("function") or tool.get("custom")
    return str(function.get("name")) if isinstance(function, dict) else ""


def _vendor_tool(draft: RequestBody, profile: Profile, tool: JsonObject) -> JsonObject:
    if (kind := tool.get("type")) != "function" and not profile.takes_tool(kind):
        raise draft.unsupported("tools", f"it has no tools of type '{kind}'")
    if kind != "function" or len(tool) != 2 or "function" not in tool:
        tool = without_markers(tool, profile, draft.dropped)
    if not profile.bare_parameters and isinstance(function := tool.get("function"), dict):
        typed = with_properties(function)
        tool = tool if typed is function else {**tool, "function": typed}
    return tool if profile.strict_tools else _without_strict(tool)


def _without_strict(tool: JsonObject) -> JsonObject:
    """Return a tool without `strict`, which the vendor does not know."""
    function = tool.get("function")
    if not isinstance(function, dict) or "strict" not in function:
        return tool
    return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}


def choice_writer(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    """Return the writer of `tool_choice`."""
    known = name in profile.wires[operation].accepts

    def put(draft: RequestBody, value: object) -> None:
        has_tools = _has_tools(draft)
        if not has_tools and value in ("auto", "none"):
            return
        if value == "auto" and not known:
            # A vendor without the field behaves in this way by default.
            return
        cell = draft.table[feature_of(name, value)]
        if _withholds_tools(draft):
            draft.emulated.append(name)
            return
        if not (cell.native and known):
            raise draft.unsupported(name, cell.how)
        if not has_tools:
            # "'tool_choice' is only allowed when 'tools' are specified".
            raise draft.invalid(name, "needs 'tools' to choose from")
        kind = value.get("type") if isinstance(value, dict) else "function"
        if not profile.takes_tool(kind):
            raise draft.unsupported(name, f"it has no choice of type '{kind}'")
        draft.body[name] = cast(JsonValue, value)
        if profile.with_forced_tool and forces_a_tool(draft.params):
            draft.body |= profile.with_forced_tool

    return put


def _has_tools(draft: RequestBody) -> bool:
    """Return whether the vendor receives tools, including tools that the client adds by `inference_extra_params`."""
    return bool(draft.params.get("tools") or (draft.request.extra_params or {}).get("tools"))


def forces_a_tool(params: Params) -> bool:
    """Return whether the model must call a tool."""
    choice = params.get("tool_choice")
    return choice == "required" or isinstance(choice, dict)


def without_custom_tools(request: UnifiedRequest, profile: Profile) -> tuple[UnifiedRequest, frozenset[str]]:
    """Return the request with functions instead of custom tools if the vendor has no custom tools, and the names of
    these tools. Raises Refusal for a tool whose input must follow a grammar."""
    if profile.takes_tool("custom"):
        return request, frozenset()
    params, names = as_functions(request.params)
    return (replace(request, params=params) if names else request), names


class FamilyToolNames(FittedNames):
    """The function names of one request, changed to match OpenAI's pattern."""

    __slots__ = ()

    fits = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    foreign = re.compile(r"[^a-zA-Z0-9_-]")
    most = 64


def with_fitting_names(request: UnifiedRequest, profile: Profile) -> tuple[UnifiedRequest, Mapping[str, str]]:
    """Return the request with function names that match OpenAI's pattern, and a mapping from each changed name to the
    client's name.

    Names are changed in the tools, the tool choice and the conversation. An engine accepts any name.
    """
    tools = request.params["tools"]
    offered = [_name(tool) for tool in tools if tool.get("type") in _CLIENT_TOOL_TYPES]
    if profile.engine or all(map(FamilyToolNames.fits.fullmatch, filter(None, offered))):
        return request, {}
    names = FamilyToolNames(dict.fromkeys(filter(None, offered)))
    for name in filter(None, map(_name, tools)):
        if name not in names:
            names.keep(name)
    params = request.params.copy()
    params["tools"] = [_renamed(tool, names) for tool in tools]
    if isinstance(choice := params.get("tool_choice"), dict):
        params["tool_choice"] = _renamed_choice(choice, names)
    prompt = request.prompt
    if isinstance(prompt, ChatPrompt):
        prompt = ChatPrompt(tuple([_renamed_message(message, names) for message in prompt.messages]))
    return replace(request, params=params, prompt=prompt), names.changed()


def _renamed(holder: JsonObject, names: FittedNames) -> JsonObject:
    """Return a tool, a tool choice or a call with the name that is sent to the vendor."""
    for kind in ("function", "custom"):
        held = holder.get(kind)
        if isinstance(held, dict) and isinstance(name := held.get("name"), str) and name:
            return {**holder, kind: {**held, "name": names.used(name)}}
    return holder


def _renamed_choice(choice: JsonObject, names: FittedNames) -> JsonObject:
    held = choice.get(_ALLOWED_TOOLS)
    if not isinstance(held, dict) or not isinstance(tools := held.get("tools"), list):
        return _renamed(choice, names)
    return {**choice, _ALLOWED_TOOLS: {**held, "tools": _all_renamed(tools, names)}}


def _renamed_message(message: JsonObject, names: FittedNames) -> JsonObject:
    calls, name = message.get("tool_calls"), message.get("name")
    if isinstance(calls, list):
        return {**message, "tool_calls": _all_renamed(calls, names)}
    if message.get("role") == "tool" and isinstance(name, str) and name:
        return {**message, "name": names.used(name)}
    return message


def _all_renamed(holders: list[JsonValue], names: FittedNames) -> list[JsonValue]:
    return [_renamed(holder, names) if isinstance(holder, dict) else holder for holder in holders]


def parallel_writer(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    """Return the writer of `parallel_tool_calls`. Without tools it writes nothing: the field has no effect then, and
    some vendors refuse it."""
    known = name in profile.wires[operation].accepts

    def put(draft: RequestBody, value: object) -> None:
        if not draft.params.get("tools") or _withholds_tools(draft):
            return
        if known:
            draft.body[name] = cast(JsonValue, value)
        elif not is_neutral(name, value):
            raise draft.unsupported(name, draft.table[name].how)

    return put
