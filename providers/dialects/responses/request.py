"""Calls of the Responses API for requests of clients that speak another API, to models that require this API for them.

Such a request is first written as a chat, by the writers of the OpenAI family's fields. Then its fields get the names
and forms of this API. The vendor stores nothing unless the client requests it: the whole conversation is sent, and the
model returns its reasoning encrypted.

Sources: `openai` 3.54.0 types `ResponseCreateParams`, `FunctionToolParam`, `CustomToolParam`, `ToolChoiceAllowedParam`,
`ResponseTextConfigParam`; OpenAI's guide "Migrate to the Responses API" (functions are strict by default), November
2026.
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

_MISSING_FIELDS: Final = frozenset(
    {"n", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "prediction", "modalities", "audio"}
)
"""Fields of chats that the API does not have."""

_MISSING_REASON: Final = "this request goes by the Responses API, which has no such field ({})"

_RENAMED_FIELDS: Final[Mapping[str, str]] = {"reasoning_effort": "reasoning.effort", "verbosity": "text.verbosity"}
_LIMIT: Final = "max_output_tokens"
_MIN_LIMIT: Final = 16
"""The lowest limit: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16"."""

_HOSTED: Final = re.compile(r"web_search(_preview)?(_[0-9_]+)?|code_interpreter")
"""The vendor's own tools that other vendors have too. Chats have none of them. "Deep research models" require a
search."""

_NO_PARAMETERS: Final[JsonObject] = {"type": "object", "properties": {}}

Effort = Literal["unsaid", "none", "some"]
"""The effort of a request, as far as the choice of the API depends on it."""

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
    """Return the reason to send a request to the Responses API, or an empty text if it is sent as a chat.

    `profile` is the profile of the model. `own` is true if the client itself used this API.
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
    """Return the capabilities of the Responses API, with a reason for each field that only chats of the same model
    have. `because` is the reason why the request is sent to this API."""
    chat = profile.wires[Operation.CHAT].accepts
    missing = [name for name in _MISSING_FIELDS & chat if table[name].refused]
    return replace(table, cells={**table.cells, **dict.fromkeys(missing, refused(_MISSING_REASON.format(because)))})


@lru_cache(maxsize=256)
def responses_profile(profile: Profile) -> Profile:
    """Return the profile of a model for its Responses API: the profile of its chats with other names and paths.

    Cached by the profile, which lives as long as the process.
    """
    chat = profile.wires[Operation.CHAT]
    own = replace(
        chat,
        path=_wire(profile).path,
        accepts=chat.accepts - _MISSING_FIELDS,
        rename=MappingProxyType({**chat.rename, **_RENAMED_FIELDS}),
        max_tokens_field=_LIMIT,
    )
    return replace(
        profile,
        wires=MappingProxyType({Operation.CHAT: own}),
        words=MappingProxyType({**profile.words, "reasoning_effort": effort_words(profile, _wire(profile))}),
        # Other vendors with this API raise a lower limit themselves.
        bounds=MappingProxyType({**profile.bounds, "max_tokens": (_MIN_LIMIT, None)})
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


def responses_fields(profile: Profile, target: Target) -> JsonObject:
    """Return the fields of every body for a target: the name of its model, and the profile's fields, with the token
    limit lowered to the operator's and the model's."""
    fields: JsonObject = {_wire(profile).model_field(target.upstream_model): target.upstream_model, **profile.body}
    given = fields.get(_LIMIT)
    if isinstance(given, int):
        model_limit = model_facts(profile.model_host, *target.model_names).most_output
        fields[_LIMIT] = min([given, *[most for most in (target.max_output_tokens, model_limit) if most is not None]])
    return fields


def put_input(draft: RequestBody, profile: Profile) -> None:
    """Write the conversation. Raises Refusal for content that the vendor does not accept."""
    messages, param = build_messages(draft)
    draft.body["input"] = input_items(messages, param, profile, _wire(profile), draft.dropped)


def finish_responses(draft: RequestBody, profile: Profile) -> None:
    """Change the fields of a chat to the forms of the Responses API, and write the client's further fields. Raises
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
    """Return an object with the fields of the object under `name` moved up into it."""
    inner = holder.get(name)
    rest = {key: value for key, value in holder.items() if key != name}
    return {**rest, **inner} if isinstance(inner, dict) else rest


def _tool(tool: JsonObject, dropped: list[str]) -> JsonObject:
    if BREAKPOINT in tool:
        dropped.append(BREAKPOINT)
        tool = {name: value for name, value in tool.items() if name != BREAKPOINT}
    match tool.get("type"):
        case "function":
            flat = _flat(tool, "function")
            # `strict` is always written, because the vendor's default is true.
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
