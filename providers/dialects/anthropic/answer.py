"""Decodes non-streaming responses of Anthropic's Messages API. The stream decoder uses some of the functions too.

Sources: `anthropic` 2.12.0 types `Message`, `Usage`, `StopReason`; "Handling stop reasons" page, November 2026.
"""

from collections.abc import Mapping

from providers.completion import (
    Choice,
    Completion,
    Extras,
    FinishReason,
    ToolCall,
    Usage,
    billed_tier,
    count_of,
    reported_usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.answer_parts import (
    citation_extras,
    other_block_extras,
    other_call_fields,
    other_message_fields,
    other_usage_fields,
    reasoning_detail,
)
from providers.dialects.anthropic.errors import failure_of
from providers.dialects.shared.custom_tools import complete_call
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import arguments_text, malformed, parse_answer, unwrap_answer
from providers.emulation.join_extras import GrowingExtras
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
    "pause_turn": "length",
    "refusal": "content_filter",
}
_TIERS = {"standard": "default"}


def decode_message(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    message = _parsed_object(body)
    if message.get("type") == "error":
        raise UpstreamError(failure_of(message))
    blocks, reason = message.get("content"), message.get("stop_reason")
    if not isinstance(blocks, list) or not isinstance(reason, str):
        raise malformed("has no content or no stop reason")
    parts = _MessageParts(sent)
    for block in blocks:
        parts.add(block)
    text, refusal = "".join(parts.texts), refusal_text(message)
    finish, native = finish_reason(reason)
    matched = stop_string(message)
    choice = Choice(
        index=0,
        text=final_text(sent, text, finish, matched) or refusal or "",
        finish_reason=finish,
        native_finish_reason=native,
        refusal=refusal,
        reasoning="".join(parts.reasoning_texts) or None,
        tool_calls=tuple(parts.calls),
        matched_stop=matched,
        extras=parts.extras.whole(),
    )
    usage = message.get("usage")
    return Completion((choice,), usage_of(usage), None, service_tier(usage), other_message_fields(message) or None)


class _MessageParts:
    """The text, reasoning, tool calls and extras of a message, collected from its content blocks."""

    __slots__ = ("_reasoning_count", "_sent", "_text_length", "calls", "extras", "reasoning_texts", "texts")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._text_length = self._reasoning_count = 0
        self.texts: list[str] = []
        self.reasoning_texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.extras = GrowingExtras()

    def add(self, block: JsonValue) -> None:
        """Add a content block. Raises UpstreamError if the block lacks a field that its type requires."""
        if not isinstance(block, dict):
            raise malformed("has a block that is not an object")
        match block:
            case {"type": "text", "text": str(text)}:
                self._text(text, block.get("citations"))
            case {"type": "thinking", "thinking": str(thought)}:
                self.reasoning_texts.append(thought)
                self._thought(block)
            case {"type": "redacted_thinking", "data": str()}:
                self._thought(block)
            case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(tool_input)}:
                client = self._sent.tool_names.get(name, name)
                tool_call = ToolCall(call, client, arguments_text(tool_input), extra=other_call_fields(block))
                self.calls.append(complete_call(tool_call, self._sent.custom_tools))
            case {"type": "text" | "thinking" | "redacted_thinking" | "tool_use"}:
                raise malformed("has a block without what its type promises")
            case _:
                self.extras.add(other_block_extras(block))

    def _text(self, text: str, citations: JsonValue) -> None:
        start = self._text_length
        self._text_length += len(text)
        self.texts.append(text)
        if isinstance(citations, list) and (extras := citation_extras(citations, start, self._text_length)) is not None:
            self.extras.add(extras)

    def _thought(self, block: JsonObject) -> None:
        self.extras.add(Extras(reasoning_details=(reasoning_detail(block, self._reasoning_count),)))
        self._reasoning_count += 1


def service_tier(usage: JsonValue) -> str | None:
    """Return the service tier of a response, which the vendor reports in `usage`."""
    tier = usage.get("service_tier") if isinstance(usage, dict) else None
    return _TIERS.get(tier, tier) if isinstance(tier, str) else None


def _parsed_object(body: bytes) -> JsonObject:
    """Parse a JSON object. Raises UpstreamError."""
    value = parse_answer(body, "is not JSON")
    if not isinstance(value, dict):
        raise malformed("is not a JSON object")
    return value


def finish_reason(reason: str) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own reason if it is more precise.

    An unknown reason is returned unchanged. `pause_turn` is returned unchanged too: the vendor continues the text when
    the client sends the conversation again. Raises UpstreamError for reasons that mean failure.
    """
    return read_finish_reason(reason, _PLAIN, _PRECISE)


def stop_string(holder: JsonObject) -> str | None:
    """Return the stop string that ended the text."""
    matched = holder.get("stop_sequence")
    return matched if isinstance(matched, str) and matched else None


def refusal_text(holder: JsonObject) -> str | None:
    """Return the vendor's explanation of a refusal."""
    details = holder.get("stop_details")
    words = details.get("explanation") if isinstance(details, dict) else None
    return words if isinstance(words, str) and words else None


def final_text(sent: UpstreamRequest, text: str, finish: str, matched: str | None) -> str:
    """Return the text of a response as the client receives it.

    If the request has `unwrap_choice` and the response has ended normally, the choice is read out of the JSON object
    that contains it. If the gateway emulates the inclusion of stop strings, the stop string `matched` is appended. A
    choice that was cut off or refused is returned unchanged. Raises UpstreamError if the choice cannot be unwrapped.
    """
    if sent.unwrap_choice and finish == "stop":
        return unwrap_answer(text)
    return text + matched if matched is not None and STOP_STRING in sent.emulated else text


def usage_of(raw: JsonValue) -> Usage | None:
    """Return the token counts with OpenAI's meaning: prompt tokens include cached tokens. `None` if there are no
    counts."""
    if not isinstance(raw, dict):
        return None
    prompt, output = count_of(raw.get("input_tokens")), count_of(raw.get("output_tokens"))
    if prompt is None or output is None:
        return None
    read, written = count_of(raw.get("cache_read_input_tokens")), count_of(raw.get("cache_creation_input_tokens"))
    prompt_details: dict[str, int] = {}
    if read is not None:
        prompt_details["cached_tokens"] = read
        prompt += read
    if written is not None:
        prompt_details["cache_write_tokens"] = written
        prompt += written
    prompt_details.update(_counts(raw.get("cache_creation")))
    completion_details = _counts(raw.get("server_tool_use"))
    split = raw.get("output_tokens_details")
    for name, count in _counts(split).items():
        completion_details["reasoning_tokens" if name == "thinking_tokens" else name] = count
    tier = billed_tier(raw.get("speed"), raw.get("service_tier"))
    return reported_usage(prompt, output, prompt_details, completion_details, other_usage_fields(raw), tier)


def _counts(split: JsonValue) -> dict[str, int]:
    """Return the token counts in an object, under the vendor's names."""
    fields = split.items() if isinstance(split, dict) else ()
    return {name: count for name, value in fields if (count := count_of(value)) is not None}
