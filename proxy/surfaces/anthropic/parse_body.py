"""Parses a body of the Messages API into a `UnifiedRequest`.

The body is translated into OpenAI's chat shape, which is checked like every chat. Targets that speak the Messages API
get the client's own body unchanged. Fields of the unified request that Anthropic does not have are accepted as on every
surface. A body with one of them is never sent unchanged, so that the field is honoured or refused by the usual rules.

Sources: `anthropic` 2.12.0 types `MessageCreateParams`, `MessageCountTokensParams`, November 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from providers.client_extras.proxy_instructions import is_instruction
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import is_neutral
from providers.unified_request import NativeApi, NativeRequest, Operation, UnifiedRequest
from proxy.surfaces.anthropic.conversation import checked_prompt, conversation, put_messages, put_system
from proxy.surfaces.anthropic.tools import put_tool_choice, put_tools
from proxy.surfaces.anthropic.translation import Translation
from proxy.surfaces.anthropic.unified_settings import (
    ANTHROPIC_ONLY,
    anthropic_only,
    leave_out_fallbacks,
    put_context_management,
    put_format,
    put_limit,
    put_marker,
    put_metadata,
    put_output,
    put_stops,
    put_thinking,
    put_tier,
)
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.request.parse_json import load
from proxy.surfaces.request.parse_request import parse_fields
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.request.pass_through_fields import with_own_timeout
from proxy.surfaces.request.rule_kinds import Check, Invalid, integer, refuse

_ONE_MESSAGE = "has no counterpart in a response of this API, which is one message"

_CHANGED_CHECKS: Mapping[str, Check] = {
    "messages": conversation,
    "n": integer(1, 1),
    "logprobs": refuse(_ONE_MESSAGE),
    "top_logprobs": refuse(_ONE_MESSAGE),
    "return_token_log_probs": refuse(_ONE_MESSAGE),
    "echo": refuse(_ONE_MESSAGE),
    "return_token_ids": refuse(_ONE_MESSAGE),
}
"""Checks of fields whose values a response of this API could not show. Values without an effect have been left out
before these checks."""

RULES = SurfaceRules(
    {Operation.CHAT: {**FIELDS[Operation.CHAT], **_CHANGED_CHECKS}},
    {Operation.CHAT: {"context_length_exceeded_behavior": "error"}},
    bare_zero_tokens=frozenset({Operation.CHAT}),
)

_READERS: Mapping[str, Callable[[Translation, JsonValue], None]] = {
    "max_tokens": put_limit,
    "system": put_system,
    "messages": put_messages,
    "tools": put_tools,
    "tool_choice": put_tool_choice,
    "thinking": put_thinking,
    "output_config": put_output,
    "output_format": put_format,
    "stop_sequences": put_stops,
    "metadata": put_metadata,
    "service_tier": put_tier,
    "context_management": put_context_management,
    "cache_control": put_marker,
    "fallbacks": leave_out_fallbacks,
    **{name: anthropic_only(name, *neutral) for name, neutral in ANTHROPIC_ONLY.items()},
}
"""Readers of the fields whose form or meaning differs from the unified field. They run in this order."""

_COMMON_FIELDS = frozenset({"model", "stream", "temperature", "top_p", "top_k"})
"""Fields that Anthropic has in the unified form."""

_GATEWAY_FIELDS = frozenset(
    {"inference_timeout", "context_length_exceeded_behavior", "inference_extra_params", "inference_extra_headers"}
)
"""The gateway's own fields, which it also honours for a body that is sent unchanged."""

_NOT_SENT = _GATEWAY_FIELDS | {"fallbacks"}
"""Fields that go to no vendor. The configuration decides which other models a request may use."""

HEADERS = ("anthropic-beta", "anthropic-version")
"""The client's headers that belong to a request in this API."""

_MAX_HEADER_CHARS = 4096


def parse_messages(body: bytes, default_model: str | None, headers: Mapping[str, str]) -> UnifiedRequest:
    """Return the checked request. Raises GatewayError with every problem."""
    return _parsed(load(body, _ACTED_ON), default_model, headers, ("max_tokens",))


def parse_count(body: bytes, default_model: str | None, headers: Mapping[str, str]) -> UnifiedRequest:
    """Return a request whose prompt is only to be counted, so that it needs no limit for its response. Raises
    GatewayError with every problem."""
    data = {name: value for name, value in load(body, _ACTED_ON).items() if name not in ("max_tokens", "stream")}
    return _parsed(data, default_model, headers, ())


def _parsed(
    data: JsonObject, default_model: str | None, headers: Mapping[str, str], required: tuple[str, ...]
) -> UnifiedRequest:
    data = with_own_timeout(data)
    effective = {name: value for name, value in data.items() if not _has_no_effect(name, value)}
    draft, refused = Translation(), list[tuple[str, Invalid]]()
    for name in [name for name in effective if name not in _READERS and is_instruction(name)]:
        draft.leave_out_everywhere(name)
        del effective[name]
    draft.chat.update({name: value for name, value in effective.items() if name not in _READERS})
    for name, read in _READERS.items():
        if name in effective:
            try:
                read(draft, effective[name])
            except Invalid as bad:
                refused.append((name, bad))
    refused += [(name, Invalid("is required")) for name in required if name not in effective]
    _join(draft, data)
    request = parse_fields(RULES, Operation.CHAT, draft.chat, default_model, refused)
    return replace(request, native=_native(data, effective, request, headers), losses=draft.losses())


def _has_no_effect(name: str, value: JsonValue) -> bool:
    """Return whether a field has no effect: it is null, or Anthropic does not have the field and its value is off."""
    if value is None:
        return True
    if name in _READERS or name in _COMMON_FIELDS or name in _GATEWAY_FIELDS:
        return False
    return (
        is_neutral(name, value)
        or (name in _CHANGED_CHECKS and value is False)
        or (name == "top_logprobs" and value == 0)
    )


def _join(draft: Translation, data: JsonObject) -> None:
    """Put the instructions before the turns, and remove a tool choice that has no effect without tools."""
    if "messages" in draft.chat:
        messages = [*draft.system, *draft.turns]
        draft.chat["messages"] = cast(JsonValue, checked_prompt(draft, messages) or messages)
    if "tools" not in draft.chat and draft.chat.get("tool_choice") in ("auto", "none"):
        del draft.chat["tool_choice"]


def _native(
    data: JsonObject, effective: JsonObject, request: UnifiedRequest, headers: Mapping[str, str]
) -> NativeRequest | None:
    """Return the client's own body, for targets that speak its API; `None` if it has fields that only the gateway
    knows."""
    foreign = [
        name
        for name in effective
        if name in RULES.fields[Operation.CHAT] and name not in _ANTHROPIC_FIELDS | _GATEWAY_FIELDS
    ]
    if foreign:
        return None
    own = {name: value for name, value in data.items() if name in effective or name in _ANTHROPIC_FIELDS}
    body = {name: value for name, value in own.items() if name not in _NOT_SENT}
    if "model" not in body:
        body["model"] = request.model
    return NativeRequest(NativeApi.MESSAGES, body, _own_headers(headers))


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name in HEADERS if (value := headers.get(name))}
    return {
        name: value
        for name, value in found.items()
        if len(value) <= _MAX_HEADER_CHARS and value.isascii() and value.isprintable()
    }


_ANTHROPIC_FIELDS = frozenset(_READERS) | _COMMON_FIELDS
_ACTED_ON = _ANTHROPIC_FIELDS | frozenset(RULES.fields[Operation.CHAT])
