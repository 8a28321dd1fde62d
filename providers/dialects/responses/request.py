"""Calls of the Responses API for requests of clients that speak another API, to models that take them by it alone.

Such a request is written as a chat first, by the writers of the OpenAI family's fields; then its fields get the names
and the forms of this API. The vendor stores nothing unless the client requests it: the conversation is sent whole, and
the model returns its reasoning encrypted.

Sources: `openai` 3.54.0 types `ResponseCreateParams`, `FunctionToolParam`, `CustomToolParam`, `ToolChoiceAllowedParam`,
`ResponseTextConfigParam`; OpenAI's guide "Migrate to the Responses API" (functions are strict unless they say
otherwise), November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

from providers.capabilities import Capabilities, refused
from providers.dialects.responses.call import ENCRYPTED, PROTECTED, effort_words, reasons_at
from providers.dialects.responses.input_items import BREAKPOINT, input_items
from providers.dialects.responses.own_body import LOGPROBS
from providers.dialects.shared.operations import build_messages
from providers.dialects.shared.request_body import RequestBody, put_unknown
from providers.json_types import JsonObject, JsonValue
from providers.models.facts import model_facts
from providers.profile import Profile, ResponsesWire
from providers.target import Target
from providers.unified_request import Operation, Params

_SOURCES: Final = "web_search_call.action.sources"

_LACKS: Final = frozenset(
    {"n", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "prediction", "modalities", "audio"}
)
"""Fields of chats that the API does not have."""

_LACKING: Final = "this request goes by the Responses API, which has no such field ({})"

_NAMES: Final[Mapping[str, str]] = {"reasoning_effort": "reasoning.effort", "verbosity": "text.verbosity"}
_LIMIT: Final = "max_output_tokens"
_LEAST: Final = 16
"""The least limit: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16"."""

_HOSTED: Final = re.compile(r"web_search(_preview)?(_[0-9_]+)?|code_interpreter")
"""The vendor's own tools that other vendors have too; chats have none of them. "Deep research models" need a search."""

_NO_PARAMETERS: Final[JsonObject] = {"type": "object", "properties": {}}

Effort = Literal["unsaid", "none", "some"]
"""The effort that a request has, as far as the choice of the API depends on it."""

_REASONS: Final[Mapping[str, Mapping[Effort, str]]] = {
    "never": {},
    "hosted": {},
    "tools": dict.fromkeys(("unsaid", "some"), "the model takes tools in chats only if 'reasoning_effort' is 'none'"),
    "tools_and_reasoning": {"some": "the model takes tools beside a 'reasoning_effort' by this API alone"},
}


def effort_of(profile: Profile, params: Params) -> Effort:
    """Return the effort of a request as it is sent to the vendor."""
    given = params.get("reasoning_effort")
    if given is None:
        return "unsaid"
    word = profile.words.get("reasoning_effort", {}).get(given, given) if isinstance(given, str) else given
    return "none" if word is False or word == "none" else "some"


def runs_hosted(params: Params) -> bool:
    """Return whether a request has a tool that the vendor runs."""
    kinds = [kind for tool in params.get("tools", ()) if (kind := tool.get("type")) != "function"]
    return any([_HOSTED.fullmatch(str(kind)) for kind in kinds])


def why_responses(profile: Profile, params: Params, *, own: bool = False) -> str:
    """Return the reason to send a request to the Responses API, empty if it is sent as a chat.

    `profile` is the profile of the model; `own` says that the request came by this API.
    """
    wire = profile.responses
    if wire is None:
        return ""
    if own and wire.takes_own:
        return "the request came by this API"
    if wire.when == "always":
        return "the model has no other API"
    if runs_hosted(params):
        return "the vendor runs tools of its own by this API alone"
    return _REASONS[wire.when].get(effort_of(profile, params), "") if params.get("tools") else ""


def without_chat_fields(table: Capabilities, profile: Profile, because: str) -> Capabilities:
    """Return the capabilities of the Responses API with a reason at each field that a chat of the same model has, and
    that is refused because the request goes by this API; `because` is the reason."""
    chat = profile.wires[Operation.CHAT].accepts
    lost = [name for name in _LACKS & chat if table[name].refused]
    return replace(table, cells={**table.cells, **dict.fromkeys(lost, refused(_LACKING.format(because)))})


@lru_cache(maxsize=256)
def responses_profile(profile: Profile) -> Profile:
    """Return the profile of a model for its Responses API: the profile of a chat with other names and paths.

    Cached by the profile, which lives as long as the process.
    """
    chat = profile.wires[Operation.CHAT]
    own = replace(
        chat,
        path=_wire(profile).path,
        accepts=chat.accepts - _LACKS,
        rename=MappingProxyType({**chat.rename, **_NAMES}),
        max_tokens_field=_LIMIT,
    )
    return replace(
        profile,
        wires=MappingProxyType({Operation.CHAT: own}),
        words=MappingProxyType({**profile.words, "reasoning_effort": effort_words(profile, _wire(profile))}),
        # Vendors of their own raise a smaller limit by themselves.
        bounds=MappingProxyType({**profile.bounds, "max_tokens": (_LEAST, None)})
        if _wire(profile).openai
        else profile.bounds,
        needs=MappingProxyType({}),
        hooks=(),
        tool_types=(*profile.tool_types, _HOSTED),
        model_in="body",
        api_version=None,
        overrides=(),
        versions=(),
    )


def responses_members(profile: Profile, target: Target) -> JsonObject:
    """Return the fields of every body for a target: the name of its model, and those of the profile, within the limit
    of the operator and of the model."""
    members: JsonObject = {_wire(profile).model_field(target.upstream_model): target.upstream_model, **profile.body}
    given = members.get(_LIMIT)
    if isinstance(given, int):
        known = model_facts(profile.model_host, *target.model_names).most_output
        members[_LIMIT] = min([given, *[most for most in (target.max_output_tokens, known) if most is not None]])
    return members


def put_input(draft: RequestBody, profile: Profile) -> None:
    """Write the conversation. Raises Refusal for content that the vendor does not take."""
    messages, param = build_messages(draft)
    draft.body["input"] = input_items(messages, param, profile, _wire(profile), draft.dropped)


def finish_responses(draft: RequestBody, profile: Profile) -> None:
    """Give the fields of a chat the forms of the Responses API, and write the client's further fields. Raises
    Refusal."""
    body = draft.body
    if isinstance(tools := body.get("tools"), list):
        body["tools"] = [_tool(tool, draft.dropped) for tool in tools if isinstance(tool, dict)]
    if isinstance(choice := body.get("tool_choice"), dict):
        body["tool_choice"] = _choice(choice)
    form = body.get("response_format")
    if isinstance(form, dict) and _wire(profile).openai:
        del body["response_format"]
        draft.put("text.format", _flat(form, "json_schema"))
    include: list[JsonValue] = [ENCRYPTED] if reasons_at(_wire(profile), draft.target) else []
    if body.pop("logprobs", None):
        include.append(LOGPROBS)
    searches = any([tool.get("type") == "web_search" for tool in draft.params.get("tools", ())])
    if searches and profile.hosted.get("web_search") == "responses":
        include.append(_SOURCES)
    if include:
        body["include"] = include
    body.setdefault("store", False)
    put_unknown(draft, PROTECTED, profile.takes | {"reasoning"}, joined=("reasoning", "text"))


def _wire(profile: Profile) -> ResponsesWire:
    if profile.responses is None:
        raise TypeError(f"{profile.name} has no Responses API")
    return profile.responses


def _flat(holder: JsonObject, name: str) -> JsonObject:
    """Return an object with the fields of the object that it has under a name."""
    held = holder.get(name)
    rest = {key: value for key, value in holder.items() if key != name}
    return {**rest, **held} if isinstance(held, dict) else rest


def _tool(tool: JsonObject, dropped: list[str]) -> JsonObject:
    if BREAKPOINT in tool:
        dropped.append(BREAKPOINT)
        tool = {name: value for name, value in tool.items() if name != BREAKPOINT}
    match tool.get("type"):
        case "function":
            flat = _flat(tool, "function")
            # The default would be true.
            return {
                **flat,
                "parameters": flat.get("parameters") or _NO_PARAMETERS,
                "strict": flat.get("strict") is True,
            }
        case "custom":
            flat = _flat(tool, "custom")
            form = flat.get("format")
            return {**flat, "format": _flat(form, "grammar")} if isinstance(form, dict) else flat
        case _:
            return tool


def _choice(choice: JsonObject) -> JsonObject:
    kind = choice.get("type")
    flat = _flat(choice, str(kind))
    tools = flat.get("tools")
    if kind == "allowed_tools" and isinstance(tools, list):
        return {**flat, "tools": [_flat(tool, str(tool.get("type"))) for tool in tools if isinstance(tool, dict)]}
    return flat
