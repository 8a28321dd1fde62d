"""Parses a body of the Messages API into a `UnifiedRequest`.

The body is translated into OpenAI's chat shape, which is checked as every chat is, and it goes along as it came for
targets that speak the API themselves. Fields of the unified request that Anthropic does not have are taken as on every
surface; a body with one of them goes nowhere as it came, so that the field is honoured or refused by the usual rules.

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
    ONLY_ANTHROPICS,
    leave_out_fallbacks,
    only_here,
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

_ONE_MESSAGE = "has no place in an answer of this API, which is one message"

_CHANGED: Mapping[str, Check] = {
    "messages": conversation,
    "n": integer(1, 1),
    "logprobs": refuse(_ONE_MESSAGE),
    "top_logprobs": refuse(_ONE_MESSAGE),
    "return_token_log_probs": refuse(_ONE_MESSAGE),
    "echo": refuse(_ONE_MESSAGE),
    "return_token_ids": refuse(_ONE_MESSAGE),
}
"""Checks of fields whose values an answer of this API could not show; what asks for nothing is left out before."""

RULES = SurfaceRules(
    {Operation.CHAT: {**FIELDS[Operation.CHAT], **_CHANGED}},
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
    **{name: only_here(name, *neutral) for name, neutral in ONLY_ANTHROPICS.items()},
}
"""Readers of the members whose form or meaning differs from the unified field's. They run in this order."""

_SHARED = frozenset({"model", "stream", "temperature", "top_p", "top_k"})
"""Members that Anthropic has in the unified form."""

_OURS = frozenset(
    {"inference_timeout", "context_length_exceeded_behavior", "inference_extra_params", "inference_extra_headers"}
)
"""Fields of the gateway's own, which it sees to beside a body that goes on as it came too."""

_NOT_SENT = _OURS | {"fallbacks"}
"""Fields that go to no vendor. The configuration decides which other models a request may use."""

HEADERS = ("anthropic-beta", "anthropic-version")
"""The client's headers that belong to a request in this API."""

_LONGEST_HEADER = 4096


def parse_messages(body: bytes, default_model: str | None, headers: Mapping[str, str]) -> UnifiedRequest:
    """Return the checked request. Raises GatewayError with every problem."""
    return _parsed(load(body, _ACTED_ON), default_model, headers, ("max_tokens",))


def parse_count(body: bytes, default_model: str | None, headers: Mapping[str, str]) -> UnifiedRequest:
    """Return a request whose prompt is only to be counted, which needs no limit for its answer. Raises GatewayError
    with every problem."""
    data = {name: value for name, value in load(body, _ACTED_ON).items() if name not in ("max_tokens", "stream")}
    return _parsed(data, default_model, headers, ())


def _parsed(
    data: JsonObject, default_model: str | None, headers: Mapping[str, str], required: tuple[str, ...]
) -> UnifiedRequest:
    data = with_own_timeout(data)
    asked = {name: value for name, value in data.items() if not _asks_nothing(name, value)}
    made, refused = Translation(), list[tuple[str, Invalid]]()
    for name in [name for name in asked if name not in _READERS and is_instruction(name)]:
        made.leave_out_everywhere(name)
        del asked[name]
    made.chat.update({name: value for name, value in asked.items() if name not in _READERS})
    for name, read in _READERS.items():
        if name in asked:
            try:
                read(made, asked[name])
            except Invalid as bad:
                refused.append((name, bad))
    refused += [(name, Invalid("is required")) for name in required if name not in asked]
    _join(made, data)
    request = parse_fields(RULES, Operation.CHAT, made.chat, default_model, refused)
    return replace(request, native=_native(data, asked, request, headers), losses=made.losses())


def _asks_nothing(name: str, value: JsonValue) -> bool:
    """Return whether a member is as good as absent: null, or a field that Anthropic does not have and that is off."""
    if value is None:
        return True
    if name in _READERS or name in _SHARED or name in _OURS:
        return False
    return is_neutral(name, value) or (name in _CHANGED and value is False) or (name == "top_logprobs" and value == 0)


def _join(made: Translation, data: JsonObject) -> None:
    """Put the instructions before the turns, and take out what means nothing without tools."""
    if "messages" in made.chat:
        messages = [*made.system, *made.turns]
        made.chat["messages"] = cast(JsonValue, checked_prompt(made, messages) or messages)
    if "tools" not in made.chat and made.chat.get("tool_choice") in ("auto", "none"):
        del made.chat["tool_choice"]


def _native(
    data: JsonObject, asked: JsonObject, request: UnifiedRequest, headers: Mapping[str, str]
) -> NativeRequest | None:
    """Return the client's own body, for targets that speak its API; None where it holds what only the gateway knows."""
    foreign = [name for name in asked if name in RULES.fields[Operation.CHAT] and name not in _ANTHROPICS | _OURS]
    if foreign:
        return None
    own = {name: value for name, value in data.items() if name in asked or name in _ANTHROPICS}
    body = {name: value for name, value in own.items() if name not in _NOT_SENT}
    if "model" not in body:
        body["model"] = request.model
    return NativeRequest(NativeApi.MESSAGES, body, _own_headers(headers))


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name in HEADERS if (value := headers.get(name))}
    return {
        name: value
        for name, value in found.items()
        if len(value) <= _LONGEST_HEADER and value.isascii() and value.isprintable()
    }


_ANTHROPICS = frozenset(_READERS) | _SHARED
_ACTED_ON = _ANTHROPICS | frozenset(RULES.fields[Operation.CHAT])
