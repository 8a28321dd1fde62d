"""Whole answers of Anthropic's Messages API to the common completion shape, and the parts that streams share.

Never a request, and never an error's meaning.

Sources: `anthropic` 2.12.0 types `Message`, `Usage`, `StopReason`; "Handling stop reasons" page, November 2026.
"""

from collections.abc import Mapping

import orjson

from providers.completion import Choice, Completion, FinishReason, ToolCall, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic_errors import failure_of
from providers.dialects.openai_read import parsed
from providers.failure import Failure, FailureKind, UpstreamError
from providers.finish import own_word
from providers.guided import unwrap_choice
from providers.unified import JsonObject, JsonValue

STOP_STRING = "include_stop_str_in_output"
"""The field whose effect is made here: the vendor cuts the stop string off and says which one it was."""

_PLAIN: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
_TELLING: Mapping[str, FinishReason] = {
    "model_context_window_exceeded": "length",
    "compaction": "length",
    "refusal": "content_filter",
}
_TIERS = {"standard": "default"}


def malformed(what: str) -> UpstreamError:
    """An answer that makes no sense."""
    return UpstreamError(Failure(FailureKind.MALFORMED, f"The upstream's answer {what}."))


def decode_message(sent: UpstreamRequest, body: bytes) -> Completion:
    """A whole 2xx body. Raises UpstreamError."""
    message = parse_object(body)
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
                calls.append(ToolCall(call, sent.tool_names.get(name, name), compact(given)))
            case {"type": "text" | "thinking" | "tool_use"}:
                raise malformed("has a block without what its type promises")
            case _:
                # The vendor adds kinds of block several times a year; text and calls are whole without them.
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
    """The tier that an answer was given by, which the vendor tells beside its counts."""
    tier = usage.get("service_tier") if isinstance(usage, dict) else None
    return _TIERS.get(tier, tier) if isinstance(tier, str) else None


def parse_object(body: bytes) -> JsonObject:
    """A JSON object. Raises UpstreamError."""
    try:
        value = parsed(body)
    except orjson.JSONDecodeError:
        raise malformed("is not JSON") from None
    if not isinstance(value, dict):
        raise malformed("is not a JSON object")
    return value


def compact(arguments: JsonValue) -> str:
    """A call's arguments as OpenAI has them: a text of JSON."""
    return orjson.dumps(arguments).decode()


def finish_reason(reason: str) -> tuple[str, str | None]:
    """The common reason, and the vendor's word where it says more. Raises UpstreamError for words that mean failure.

    `pause_turn` is none of the common ones: the text goes on when the conversation is sent again. It and the words that
    nobody knows yet stay what they are.
    """
    plain = _PLAIN.get(reason)
    return (plain, None) if plain is not None else (_TELLING.get(reason) or own_word(reason), reason)


def stop_string(holder: JsonObject) -> str | None:
    """The stop string that ended the text."""
    matched = holder.get("stop_sequence")
    return matched if isinstance(matched, str) and matched else None


def explanation(holder: JsonObject) -> str | None:
    """Why the vendor declined to go on, in its words."""
    details = holder.get("stop_details")
    words = details.get("explanation") if isinstance(details, dict) else None
    return words if isinstance(words, str) and words else None


def whole_text(sent: UpstreamRequest, text: str, finish: str, matched: str | None) -> str:
    """The text with what this side of the wire adds or takes away. Raises UpstreamError.

    A choice that was cut off or declined is left as it came: its finish reason tells why it is none of those asked for.
    """
    if sent.unwrap_choice and finish == "stop":
        try:
            return unwrap_choice(text)
        except ValueError:
            raise malformed("does not hold the choice that was asked for") from None
    return text + matched if matched is not None and STOP_STRING in sent.emulated else text


def usage_of(raw: JsonValue) -> Usage | None:
    """The counts in OpenAI's meaning, where prompt tokens include cached ones; None when the vendor sent none."""
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
