"""Whole answers of Anthropic's Messages API in the common completion shape, and the parts that streams share.

Sources: `anthropic` 2.12.0 types `Message`, `Usage`, `StopReason`; "Handling stop reasons" page, November 2026.
"""

from collections.abc import Mapping

from providers.completion import Choice, Completion, FinishReason, ToolCall, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.errors import failure_of
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import arguments_text, malformed, parse_answer, unwrap_answer
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import STOP_STRING

_PLAIN: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
_PRECISE: Mapping[str, FinishReason] = {
    "model_context_window_exceeded": "length",
    "compaction": "length",
    "refusal": "content_filter",
}
_TIERS = {"standard": "default"}


def decode_message(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    message = _parsed_object(body)
    if message.get("type") == "error":
        raise UpstreamError(failure_of(message))
    blocks, reason = message.get("content"), message.get("stop_reason")
    if not isinstance(blocks, list) or not isinstance(reason, str):
        raise malformed("has no content or no stop reason")
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "thinking", "thinking": str(thought)}:
                thoughts.append(thought)
            case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(given)}:
                calls.append(ToolCall(call, sent.tool_names.get(name, name), arguments_text(given)))
            case {"type": "text" | "thinking" | "tool_use"}:
                raise malformed("has a block without what its type promises")
            case _:
                # The vendor adds types of block several times a year; text and calls are complete without them.
                continue
    text, refusal = "".join(texts), explanation(message)
    finish, native = finish_reason(reason)
    matched = stop_string(message)
    choice = Choice(
        index=0,
        text=whole_text(sent, text, finish, matched) or refusal or "",
        finish_reason=finish,
        native_finish_reason=native,
        refusal=refusal,
        reasoning="".join(thoughts) or None,
        tool_calls=tuple(calls),
        matched_stop=matched,
    )
    usage = message.get("usage")
    return Completion((choice,), usage_of(usage), None, service_tier(usage))


def service_tier(usage: JsonValue) -> str | None:
    """Return the service tier of an answer, which the vendor reports beside its counts."""
    tier = usage.get("service_tier") if isinstance(usage, dict) else None
    return _TIERS.get(tier, tier) if isinstance(tier, str) else None


def _parsed_object(body: bytes) -> JsonObject:
    """Parse a JSON object. Raises UpstreamError."""
    value = parse_answer(body, "is not JSON")
    if not isinstance(value, dict):
        raise malformed("is not a JSON object")
    return value


def finish_reason(reason: str) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own where it is more precise.

    Unknown reasons are returned as they are, and so is `pause_turn`: the text continues when the conversation is sent
    again. Raises UpstreamError for reasons that mean failure.
    """
    return read_finish_reason(reason, _PLAIN, _PRECISE)


def stop_string(holder: JsonObject) -> str | None:
    """Return the stop string that ended the text."""
    matched = holder.get("stop_sequence")
    return matched if isinstance(matched, str) and matched else None


def explanation(holder: JsonObject) -> str | None:
    """Return why the vendor refused to continue, in its words."""
    details = holder.get("stop_details")
    words = details.get("explanation") if isinstance(details, dict) else None
    return words if isinstance(words, str) and words else None


def whole_text(sent: UpstreamRequest, text: str, finish: str, matched: str | None) -> str:
    """Return the text of an answer, with its choice unwrapped or its stop string appended where the request has that.

    A choice that was cut off or refused stays as it came, with its finish reason. Raises UpstreamError.
    """
    if sent.unwrap_choice and finish == "stop":
        return unwrap_answer(text)
    return text + matched if matched is not None and STOP_STRING in sent.emulated else text


def usage_of(raw: JsonValue) -> Usage | None:
    """Return the counts in OpenAI's meaning, in which prompt tokens include cached ones; None when there are none."""
    if not isinstance(raw, dict):
        return None
    fresh, output = raw.get("input_tokens"), raw.get("output_tokens")
    if not isinstance(fresh, int) or not isinstance(output, int):
        return None
    read, written = raw.get("cache_read_input_tokens"), raw.get("cache_creation_input_tokens")
    details: dict[str, int] = {}
    if isinstance(read, int):
        details["cached_tokens"] = read
        fresh += read
    if isinstance(written, int):
        details["cache_write_tokens"] = written
        fresh += written
    split = raw.get("output_tokens_details")
    thinking = split.get("thinking_tokens") if isinstance(split, dict) else None
    reasoning = {"reasoning_tokens": thinking} if isinstance(thinking, int) else None
    return Usage(fresh, output, details or None, reasoning)
