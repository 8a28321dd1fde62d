"""Reads hosted tools, which vendors run themselves, from the forms of all APIs.

Sources, November 2026: `anthropic` 2.12.0 types `WebSearchTool20250305Param`, `WebFetchTool20250910Param`; openai
3.54.0 types `WebSearchToolParam`, `CodeInterpreterParam`, `completion_create_params.WebSearchOptions`; `google-genai`
3.4.0 types `GoogleSearch`, `UrlContext`; openrouter's `ChatWebSearchShorthand`, `WebSearchServerToolConfig`; groq 1.7
`ChatCompletionToolParam`; mistralai 3.7.0 `WebSearchPremiumTool`; botocore 1.44.5 shape `SystemTool`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.profile import HostedKind
from providers.request_fields import SEARCH

ALLOWED, BLOCKED = "allowed_domains", "blocked_domains"
LOCATION, CONTEXT, USES, CONTENT = "user_location", "search_context_size", "max_uses", "max_content_tokens"

_LOCATION_FIELDS: Final = ("city", "country", "region", "timezone")


@frozen
class HostedTool:
    """A hosted tool of a request.

    `api` is the API whose form the tool has. `given` is the tool's type in that form. `options` are the settings that
    several vendors have, under the gateway's names. `others` are the names of settings that only the vendor of that API
    has. `bound` names a part of the tool that no other vendor can honour; it is empty if other vendors can honour all
    parts.
    """

    kind: HostedKind
    api: str
    given: str
    options: Mapping[str, JsonValue]
    others: tuple[str, ...] = ()
    bound: str = ""


@frozen
class _Form:
    """One API's form of a tool. `types` is a pattern of its types. `nested` are the fields that may hold the
    settings."""

    api: str
    kind: HostedKind
    types: re.Pattern[str]
    nested: tuple[str, ...] = ()


def _form(api: str, kind: HostedKind, types: str, *nested: str) -> _Form:
    return _Form(api, kind, re.compile(types, re.ASCII), nested)


_OPENAI_SEARCH: Final = _form("openai", "web_search", r"web_search(_preview)?(_[0-9]{4}_[0-9]{2}_[0-9]{2})?", "filters")
_FORMS: Final = (
    _form("anthropic", "web_search", r"web_search_[0-9]{8}"),
    _form("anthropic", "web_fetch", r"web_fetch_[0-9]{8}"),
    _form("anthropic", "code_execution", r"code_execution_[0-9]{8}"),
    _OPENAI_SEARCH,
    _form("openai", "code_execution", r"code_interpreter"),
    _form("gemini", "web_search", r"googleSearch(Retrieval)?|google_search(_retrieval)?"),
    _form("gemini", "web_fetch", r"urlContext|url_context"),
    _form("gemini", "code_execution", r"codeExecution|code_execution"),
    _form("openrouter", "web_search", r"openrouter:web_search", "parameters"),
    _form("openrouter", "web_fetch", r"openrouter:web_fetch", "parameters"),
    _form("groq", "web_search", r"browser_search"),
    _form("perplexity", "web_fetch", r"fetch_url"),
    _form("mistral", "web_search", r"web_search_premium"),
)

_NAMES: Final[Mapping[str, str]] = {
    **{name: name for name in (ALLOWED, BLOCKED, LOCATION, CONTEXT, USES, CONTENT)},
    **dict.fromkeys(("excluded_domains", "excludeDomains", "exclude_domains"), BLOCKED),
}
"""By the vendors' names of settings: the gateway's names."""

_NEUTRAL: Final[Mapping[str, tuple[JsonValue, ...]]] = {
    CONTEXT: ("medium",),
    "external_web_access": (True,),
    "allowed_callers": (["direct"],),
    "citations": ({"enabled": False},),
    "defer_loading": (False,),
    "container": ({"type": "auto"},),
}
"""By setting: the values that are the default and need not be sent."""

_CLIENT_TOOL_TYPES: Final = ("function", "custom", None)
_NO_SETTINGS: Final = frozenset({"type", "name"})
_NOVA: Final = "nova_grounding"


def is_hosted(tool: JsonObject) -> bool:
    """Return whether an entry of `tools` is a hosted tool that several vendors have."""
    kind = tool.get("type")
    if kind in _CLIENT_TOOL_TYPES and len(tool) > 1 and "systemTool" not in tool:
        # Nearly all tools are functions.
        return False
    return _form_of(tool) is not None or _is_nova(tool)


def hosted_tool(tool: JsonObject) -> HostedTool | None:
    """Return the hosted tool that an entry of `tools` describes, if several vendors have it; `None` for any other
    entry. Raises Refusal for invalid settings."""
    if _is_nova(tool):
        return HostedTool("web_search", "nova", _NOVA, {})
    found = _form_of(tool)
    if found is None:
        return None
    form, kind = found
    return _read(form, kind, {name: value for name, value in tool.items() if name not in _NO_SETTINGS})


def _form_of(tool: JsonObject) -> tuple[_Form, str] | None:
    """Return the form that a tool has, and its type in that form; `None` if it has no known form."""
    kind = tool.get("type")
    if kind is None and len(tool) == 1:
        # Google's own form: the only key is the name of the tool, its value are the settings.
        ((kind, held),) = tool.items()
        if not isinstance(held, dict):
            return None
    if kind == "function" or not isinstance(kind, str):
        return None
    return next(((each, kind) for each in _FORMS if each.types.fullmatch(kind)), None)


def _is_nova(tool: JsonObject) -> bool:
    held = tool.get("systemTool", tool if tool.get("type") in ("systemTool", "system_tool") else None)
    return isinstance(held, dict) and held.get("name") == _NOVA


def search_of_options(options: JsonObject) -> HostedTool:
    """Return the web search that `web_search_options` requests. Raises Refusal."""
    return _read(_OPENAI_SEARCH, SEARCH, options)


def _read(found: _Form, kind: str, settings: JsonObject) -> HostedTool:
    options: dict[str, JsonValue] = {}
    others: list[str] = []
    for name, value in _settings(found, kind, settings):
        if value is None or value in _NEUTRAL.get(name, ()):
            continue
        common = _NAMES.get(name)
        if common is None:
            others.append(name)
        elif value != []:
            options[common] = _checked(common, value)
    bound = _files(settings) if kind == "code_interpreter" else ""
    return HostedTool(found.kind, found.api, kind, options, tuple(others), bound)


def _settings(found: _Form, kind: str, settings: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    """Yield the settings of a tool, including the settings in a nested field."""
    for name, value in settings.items():
        if isinstance(value, dict) and name in (*found.nested, kind):
            yield from value.items()
        else:
            yield name, value


def _files(settings: JsonObject) -> str:
    """Return a description of the part of a container that only its own vendor has, otherwise an empty text."""
    held = settings.get("container")
    if isinstance(held, str):
        return "a container of its own vendor"
    return "files of its own vendor" if isinstance(held, dict) and held.get("file_ids") else ""


def _checked(name: str, value: JsonValue) -> JsonValue:
    match name:
        case "allowed_domains" | "blocked_domains":
            if isinstance(value, list) and all([isinstance(each, str) and each for each in value]):
                return value
            raise _invalid(name, "a list of domains")
        case "user_location":
            return _location(value)
        case "max_uses" | "max_content_tokens":
            if type(value) is int and value > 0:
                return value
            raise _invalid(name, "a number above 0")
        case _:
            if isinstance(value, str):
                return value
            raise _invalid(name, "a string")


def _location(value: JsonValue) -> JsonValue:
    """Return the user's location in the form of most vendors."""
    if not isinstance(value, dict):
        raise _invalid(LOCATION, "an object")
    held = value.get("approximate")
    places = held if isinstance(held, dict) else value
    known: JsonObject = {
        name: place for name in _LOCATION_FIELDS if isinstance(place := places.get(name), str) and place
    }
    return {"type": "approximate", **known}


def _invalid(name: str, expected: str) -> Refusal:
    return Refusal("tools", f"'{name}' of a web search must be {expected}.", "invalid_value")
