"""Whole answers of Anthropic's Messages API in the common completion shape, and the parts that streams share.

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
    call_extra,
    cited,
    message_members,
    other_block,
    usage_rest,
    whole_thought,
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
    """Decode a whole 2xx body. Raises UpstreamError."""
    message = _parsed_object(body)
    if message.get("type") == "error":
        raise UpstreamError(failure_of(message))
    blocks, reason = message.get("content"), message.get("stop_reason")
    if not isinstance(blocks, list) or not isinstance(reason, str):
        raise malformed("has no content or no stop reason")
    parts = _WholeParts(sent)
    for block in blocks:
        parts.add(block)
    text, refusal = "".join(parts.texts), explanation(message)
    finish, native = finish_reason(reason)
    matched = stop_string(message)
    choice = Choice(
        index=0,
        text=whole_text(sent, text, finish, matched) or refusal or "",
        finish_reason=finish,
        native_finish_reason=native,
        refusal=refusal,
        reasoning="".join(parts.thoughts) or None,
        tool_calls=tuple(parts.calls),
        matched_stop=matched,
        extras=parts.extras.whole(),
    )
    usage = message.get("usage")
    return Completion((choice,), usage_of(usage), None, service_tier(usage), message_members(message) or None)


class _WholeParts:
    """Collects the parts of a whole answer from its blocks."""

    __slots__ = ("_length", "_sent", "_thinking", "calls", "extras", "texts", "thoughts")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._length = self._thinking = 0
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCall] = []
        self.extras = GrowingExtras()

    def add(self, block: JsonValue) -> None:
        """Add a block. Raises UpstreamError for one without what its type promises."""
        if not isinstance(block, dict):
            raise malformed("has a block that is not an object")
        match block:
            case {"type": "text", "text": str(text)}:
                self._text(text, block.get("citations"))
            case {"type": "thinking", "thinking": str(thought)}:
                self.thoughts.append(thought)
                self._thought(block)
            case {"type": "redacted_thinking", "data": str()}:
                self._thought(block)
            case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(given)}:
                client = self._sent.tool_names.get(name, name)
                made = ToolCall(call, client, arguments_text(given), extra=call_extra(block))
                self.calls.append(complete_call(made, self._sent.custom_tools))
            case {"type": "text" | "thinking" | "redacted_thinking" | "tool_use"}:
                raise malformed("has a block without what its type promises")
            case _:
                self.extras.add(other_block(block))

    def _text(self, text: str, citations: JsonValue) -> None:
        start = self._length
        self._length += len(text)
        self.texts.append(text)
        if isinstance(citations, list) and (extras := cited(citations, start, self._length)) is not None:
            self.extras.add(extras)

    def _thought(self, block: JsonObject) -> None:
        self.extras.add(Extras(reasoning_details=(whole_thought(block, self._thinking),)))
        self._thinking += 1


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
    fresh, output = count_of(raw.get("input_tokens")), count_of(raw.get("output_tokens"))
    if fresh is None or output is None:
        return None
    read, written = count_of(raw.get("cache_read_input_tokens")), count_of(raw.get("cache_creation_input_tokens"))
    details: dict[str, int] = {}
    if read is not None:
        details["cached_tokens"] = read
        fresh += read
    if written is not None:
        details["cache_write_tokens"] = written
        fresh += written
    details.update(_counts(raw.get("cache_creation")))
    reasoning = _counts(raw.get("server_tool_use"))
    split = raw.get("output_tokens_details")
    for name, count in _counts(split).items():
        reasoning["reasoning_tokens" if name == "thinking_tokens" else name] = count
    tier = billed_tier(raw.get("speed"), raw.get("service_tier"))
    return reported_usage(fresh, output, details, reasoning, usage_rest(raw), tier)


def _counts(split: JsonValue) -> dict[str, int]:
    """Return the counts in an object of them, under the vendor's names."""
    members = split.items() if isinstance(split, dict) else ()
    return {name: count for name, value in members if (count := count_of(value)) is not None}
