"""Parses a Responses body into a unified request, which has the form of a chat.

Sources: OpenAI OpenAPI 2.3.0 `CreateResponse`, `Response`; openai 3.54.0 `types/responses`, November 2026.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from providers.client_extras.proxy_instructions import is_instruction
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import SHORTEST_PROMPTS, Operation, TranslationLosses, deferred_prompt
from proxy.surfaces.request import pass_through_fields as extras
from proxy.surfaces.request.chat_messages import messages
from proxy.surfaces.request.field_conflicts import resolve
from proxy.surfaces.request.parse_json import load
from proxy.surfaces.request.parse_request import make_request
from proxy.surfaces.request.parse_state import ParsedFields, SurfaceRules
from proxy.surfaces.request.rule_kinds import Invalid
from proxy.surfaces.responses.common_items import common_input
from proxy.surfaces.responses.input_items import REASONING, ResolvedInput, ids_referred_to, resolve_input
from proxy.surfaces.responses.native_body import native_items, native_request
from proxy.surfaces.responses.own_fields import OWN_FIELDS, READERS, SOURCES, UNIFIED
from proxy.surfaces.responses.read_conversation import ConversationReader, read_common
from proxy.surfaces.responses.read_tools import read_tools
from proxy.surfaces.responses.request_draft import ResponsesDraft, ResponsesRequest, ResponseTerms
from proxy.surfaces.surface import NotRecalledError, ReferredIds, RequestContext
from proxy.surfaces.tool_items.typed_tools import tools_of

RULES: Final = SurfaceRules({Operation.CHAT: UNIFIED}, {Operation.CHAT: {"context_length_exceeded_behavior": "error"}})

_ACTED_ON: Final = UNIFIED.keys() | READERS.keys()

_LOADING: Final = ("additional_tools", "tool_search_output")
"""Items that add tools."""

_NOTHING: Final = ResolvedInput((), ())

_ECHOED: Mapping[str, JsonValue] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""Fields of a response that repeat fields of the request, each with the value for a request without the field. The AI
SDK, LangChain and openai's Node client fail if lists are missing."""


def read_request(body: bytes, default_model: str | None, context: RequestContext) -> ResponsesRequest:
    """Return the checked request, with `default_model` as its model if the body has no `model`. Raises GatewayError
    with all problems or for a reference to an object that is not stored, and NotRecalledError if stored objects must be
    read first."""
    data = extras.with_own_timeout(load(body, _ACTED_ON))
    if not context.recalled and (referred := ids_referred_to(data)) != ReferredIds():
        raise NotRecalledError(referred)
    parsed = ParsedFields(RULES, Operation.CHAT)
    draft = ResponsesDraft(data, parsed)
    _read_fields(draft)
    if data.get("store") is True and not context.stores:
        draft.left_out["store"] = draft.native_left_out["store"] = None
    read = _read_common_input(draft) or _read_input(draft, context)
    resolve(parsed)
    native = None if parsed.problems else native_request(draft, read.native, OWN_FIELDS, UNIFIED)
    if native is None:
        for name, why in draft.only.items():
            parsed.refuse(name, Invalid(f"cannot be translated: {why} has no other form", code="unsupported_parameter"))
    request = make_request(parsed, default_model)
    return ResponsesRequest(
        request.operation,
        request.model,
        request.prompt,
        request.params,
        request.stream,
        request.stream_options,
        request.injected,
        request.unknown,
        request.timeout,
        request.extra_params,
        request.extra_headers,
        native=native,
        losses=_losses(draft),
        shortens=draft.shortens,
        terms=_terms(draft, read.own, context),
    )


def _read_fields(draft: ResponsesDraft) -> None:
    parsed = draft.parsed
    for name, value in draft.data.items():
        if value is None or name in READERS:
            continue
        check = UNIFIED.get(name)
        try:
            if check is None and is_instruction(name):
                draft.left_out[name] = draft.native_left_out[name] = None
            elif check is None:
                parsed.unknown[name] = extras.unknown_field(name, value)
            else:
                parsed.values[name] = check(value)
        except Invalid as bad:
            parsed.refuse(name, bad)
    # These fields are read last, because they may set the same values as a unified field.
    for name, read in READERS.items():
        value = draft.data.get(name)
        if value is None:
            continue
        try:
            read(draft, value)
        except Invalid as bad:
            parsed.refuse(name, bad)


@frozen
class _ReadInput:
    """The request's own items, and the items of the whole conversation in OpenAI's form."""

    own: tuple[JsonObject, ...]
    native: Iterable[JsonValue]


def _read_common_input(draft: ResponsesDraft) -> _ReadInput | None:
    """Set the tools and the conversation of a request that has only common items; return `None` for any other request.
    The conversation is created when it is first read: a vendor with this API gets the items instead."""
    raw_instructions = draft.data.get("instructions")
    instructions = raw_instructions if isinstance(raw_instructions, str) else None
    if draft.data.get("previous_response_id") is not None:
        return None
    common = common_input(draft.data.get("input"), bool(instructions))
    if common is None:
        return None
    read_tools(draft)
    if common.reasons:
        draft.left_out[REASONING] = None
    make = partial(read_common, instructions, common.items)
    draft.parsed.values["messages"] = deferred_prompt(make, common.plain, common.without_parts)
    return _ReadInput(common.items, common.native)


def _read_input(draft: ResponsesDraft, context: RequestContext) -> _ReadInput:
    """Set the tools and the conversation, and note every problem."""
    resolved = _resolve(draft, context)
    read_tools(draft, [tool for item in resolved.whole if item["type"] in _LOADING for tool in tools_of(item)])
    if not draft.parsed.refused("input"):
        _read_conversation(draft, resolved)
    return _ReadInput(resolved.own, native_items(draft, resolved.whole))


def _resolve(draft: ResponsesDraft, context: RequestContext) -> ResolvedInput:
    """Return the items of the conversation."""
    try:
        resolved = resolve_input(draft, context)
        if not resolved.whole:
            raise Invalid("is required")
    except Invalid as bad:
        _refuse_input(draft.parsed, bad)
        return _NOTHING
    return resolved


def _refuse_input(parsed: ParsedFields, bad: Invalid) -> None:
    parsed.refuse("input", bad)
    # This prompt is only set so that `make_request` does not report a missing prompt as another problem.
    parsed.values["messages"] = SHORTEST_PROMPTS[Operation.CHAT]


def _read_conversation(draft: ResponsesDraft, resolved: ResolvedInput) -> None:
    """Set the messages of the conversation."""
    parsed = draft.parsed
    try:
        raw_instructions = draft.data.get("instructions")
        chat = ConversationReader(draft).read(
            raw_instructions if isinstance(raw_instructions, str) else None, resolved.whole
        )
        if not chat:
            # OpenAI's own API may accept the items; no other target gets this prompt.
            draft.only.setdefault("input", "a conversation without a message")
        parsed.values["messages"] = messages(chat) if chat else SHORTEST_PROMPTS[Operation.CHAT]
    except Invalid as bad:
        _refuse_input(parsed, bad)


def _losses(draft: ResponsesDraft) -> TranslationLosses:
    """Return the fields that only OpenAI's own API can honour. Codex always sends the efforts of reasoning and of the
    text, for every model, so these two may be dropped."""
    return TranslationLosses(
        dict(draft.only), tuple(draft.left_out), {"reasoning_effort": {}, "verbosity": {}}, tuple(draft.native_left_out)
    )


def _terms(draft: ResponsesDraft, own: tuple[JsonObject, ...], context: RequestContext) -> ResponseTerms:
    data = draft.data
    echoes: dict[str, JsonValue] = {
        name: absent if (given := data.get(name)) is None else given for name, absent in _ECHOED.items()
    }
    store = echoes["store"] = context.stores and data.get("store") is not False
    reasoning = data.get("reasoning")
    reasoning_fields: JsonObject = reasoning if isinstance(reasoning, dict) else {}
    shown = reasoning_fields.get("summary") or reasoning_fields.get("generate_summary")
    included = data.get("include")
    return ResponseTerms(
        echoes,
        summary=shown is not None,
        origins=draft.names.origins(),
        typed=draft.typed,
        input=own,
        ancestors=tuple([each.id for each in context.chain]) if data.get("previous_response_id") is not None else (),
        store=store,
        sources=isinstance(included, list) and SOURCES in included,
    )
