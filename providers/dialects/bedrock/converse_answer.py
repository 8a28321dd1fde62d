"""Whole answers of Bedrock's Converse to the common completion shape, and what streams share with them.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `ConverseResponse`, `StopReason`, `TokenUsage`.
"""

from collections.abc import Mapping

from providers.completion import Choice, Completion, FinishReason, ToolCall, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.answer import whole_text
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import arguments_text, json_object, malformed
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import STOP_STRING

_PLAIN: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
_SHOWN: Mapping[str, FinishReason] = {
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_BROKEN = frozenset({"malformed_model_output", "malformed_tool_use"})

SERVER_TOOL = "server_tool_use"
"""The type of a call that the service itself executes; it is not for the client."""


def decode_converse(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    match answer:
        case {"output": {"message": {"content": list(blocks)}}, "stopReason": str(reason)}:
            finish, native = finish_reason(reason)
        case _:
            raise malformed("has no message or no stop reason")
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for block in blocks:
        match block:
            case {"text": str(text)}:
                texts.append(text)
            case {"reasoningContent": {"reasoningText": {"text": str(thought)}}}:
                thoughts.append(thought)
            case {"toolUse": dict(call)}:
                calls += call_of(sent, call)
            case _:
                # Citations and unknown blocks; text and calls are complete without them.
                continue
    matched = stop_string(sent, answer, reason)
    choice = Choice(
        index=0,
        text=whole_text(sent, "".join(texts), finish, matched),
        finish_reason=finish,
        native_finish_reason=native,
        reasoning="".join(thoughts) or None,
        tool_calls=tuple(calls),
        matched_stop=matched,
    )
    tier = answer.get("serviceTier")
    kind = tier.get("type") if isinstance(tier, dict) else None
    return Completion((choice,), usage_of(answer.get("usage")), None, kind if isinstance(kind, str) else None)


def call_of(sent: UpstreamRequest, call: JsonObject) -> list[ToolCall]:
    """Return the call in a block under the client's name for the tool, nothing for a call of the service's own."""
    identity, name = call.get("toolUseId"), call.get("name")
    if call.get("type") == SERVER_TOOL:
        return []
    if not isinstance(identity, str) or not isinstance(name, str):
        raise malformed("has a tool call without id or name")
    return [ToolCall(identity, sent.tool_names.get(name, name), arguments_text(call.get("input")) or "{}")]


def finish_reason(reason: str) -> tuple[str, str | None]:
    """Return the finish reason as `read_finish_reason` does."""
    if reason in _BROKEN:
        message = "The upstream's model gave an answer that it could not read."
        raise UpstreamError(Failure(FailureKind.NONCONFORMING, message))
    return read_finish_reason(reason, _PLAIN, _SHOWN)


def stop_string(sent: UpstreamRequest, holder: JsonObject, reason: str) -> str | None:
    """Return the stop string that ended the text, where the model names it.

    Raises UpstreamError where the client wants the string in the text and the model does not name it.
    """
    extra = holder.get("additionalModelResponseFields")
    matched = extra.get("stop_sequence") if isinstance(extra, dict) else None
    if isinstance(matched, str) and matched:
        return matched
    if reason == "stop_sequence" and STOP_STRING in sent.emulated:
        raise malformed("does not say which stop string has ended it")
    return None


def usage_of(raw: JsonValue) -> Usage | None:
    """Return the counts in OpenAI's meaning, where prompt tokens include cached ones; None without counts."""
    if not isinstance(raw, dict):
        return None
    fresh, output = raw.get("inputTokens"), raw.get("outputTokens")
    if not isinstance(fresh, int) or not isinstance(output, int):
        return None
    details: dict[str, int] = {}
    for wire, name in (("cacheReadInputTokens", "cached_tokens"), ("cacheWriteInputTokens", "cache_write_tokens")):
        if isinstance(count := raw.get(wire), int):
            details[name] = count
    return Usage(fresh + sum(details.values()), output, details or None)
