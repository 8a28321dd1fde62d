"""Anthropic's stream events as chunks of the common shape.

Sources: `anthropic` 2.12.0 type `RawMessageStreamEvent`; "Streaming messages" page, November 2026.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from providers.completion import Chunk, StreamEvent, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.answer import (
    explanation,
    finish_reason,
    service_tier,
    stop_string,
    usage_of,
    whole_text,
)
from providers.dialects.anthropic.errors import failure_of
from providers.dialects.shared.read_json import arguments_text, malformed, parse_json
from providers.dialects.shared.stream_reader import NOTHING
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue

Events = Sequence[StreamEvent]


@dataclass(slots=True)
class _OpenToolCall:
    """A call in progress: its index among the calls (the vendor counts all blocks), and the arguments that the block
    began with, empty once a piece has come."""

    index: int
    arguments: str


class AnthropicReader:
    """Reader of a stream's events; see providers.dialects.shared.stream_reader.Reader. `message_stop` completes a
    stream."""

    __slots__ = ("_calls", "_count", "_end", "_held", "_said", "_sent", "_usage", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._calls: dict[int, _OpenToolCall] = {}
        self._count = 0
        self._usage: JsonObject = {}
        self._end: JsonObject = {}
        self._said = False
        self._held: list[str] = []

    def read(self, name: str, payload: bytes) -> Events:
        """See Reader. Events of unknown types are skipped: the vendor adds them."""
        try:
            event = parse_json(payload)
        except orjson.JSONDecodeError:
            if name and name not in _EVENTS:
                return NOTHING
            raise malformed("holds an event that is not JSON") from None
        if not isinstance(event, dict):
            return NOTHING
        kind = event.get("type", name)
        handle = _EVENTS.get(kind) if isinstance(kind, str) else None
        return NOTHING if handle is None else handle(self, event)

    def _delta(self, event: JsonObject) -> Events:
        delta = event.get("delta")
        if not isinstance(delta, dict):
            return NOTHING
        kind = delta.get("type")
        if kind == "text_delta":
            return self._text(delta.get("text"))
        if kind == "input_json_delta":
            return self._arguments(event.get("index"), delta.get("partial_json"))
        if kind == "thinking_delta":
            return _thought(delta.get("thinking"))
        return NOTHING

    def _arguments(self, index: JsonValue, piece: JsonValue) -> Events:
        call = self._calls.get(index) if isinstance(index, int) else None
        if call is None or not isinstance(piece, str) or not piece:
            return NOTHING
        call.arguments = ""
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=piece),)),)

    def _text(self, text: JsonValue) -> Events:
        if not isinstance(text, str) or not text:
            return NOTHING
        self._said = True
        if self._sent.unwrap_choice:
            self._held.append(text)
            return NOTHING
        return (Chunk(text=text),)

    def _block_start(self, event: JsonObject) -> Events:
        block, index = event.get("content_block"), event.get("index")
        if not isinstance(block, dict):
            return NOTHING
        kind = block.get("type")
        if kind == "text":
            return self._text(block.get("text"))
        if kind == "thinking":
            return _thought(block.get("thinking"))
        if kind != "tool_use":
            return NOTHING
        call, name = block.get("id"), block.get("name")
        if not isinstance(index, int) or not isinstance(call, str) or not isinstance(name, str):
            raise malformed("begins a tool call without index, id or name")
        opened = _OpenToolCall(self._count, arguments_text(block.get("input") or {}))
        self._calls[index] = opened
        self._count += 1
        return (Chunk(tool_calls=(ToolCallDelta(opened.index, call, self._sent.tool_names.get(name, name)),)),)

    def _block_stop(self, event: JsonObject) -> Events:
        index = event.get("index")
        call = self._calls.pop(index, None) if isinstance(index, int) else None
        if call is None or not call.arguments:
            return NOTHING
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=call.arguments),)),)

    def _message_start(self, event: JsonObject) -> Events:
        message = event.get("message")
        self._count_usage(message.get("usage") if isinstance(message, dict) else None)
        return NOTHING

    def _message_delta(self, event: JsonObject) -> Events:
        """Keep the finish until the stream is complete: one that breaks off must not look finished."""
        self._count_usage(event.get("usage"))
        delta = event.get("delta")
        if isinstance(delta, dict) and delta.get("stop_reason") is not None:
            self._end = delta
        return NOTHING

    def _count_usage(self, usage: JsonValue) -> None:
        """Update the counts, which are cumulative; an event repeats only some of them."""
        if isinstance(usage, dict):
            self._usage |= {name: count for name, count in usage.items() if count is not None}

    def _message_stop(self, event: JsonObject) -> Events:
        reason = self._end.get("stop_reason")
        if not isinstance(reason, str):
            raise malformed("ended without a stop reason")
        ended: list[StreamEvent] = [
            chunk for index in list(self._calls) for chunk in self._block_stop({"index": index})
        ]
        finish, native = finish_reason(reason)
        matched, refusal = stop_string(self._end), explanation(self._end)
        text = whole_text(self._sent, "".join(self._held), finish, matched)
        ended.append(
            Chunk(
                text=text if text or self._said else refusal or "",
                finish_reason=finish,
                native_finish_reason=native,
                refusal=refusal,
                matched_stop=matched,
                service_tier=service_tier(self._usage),
            )
        )
        usage = usage_of(self._usage)
        if usage is not None:
            ended.append(usage)
        self.complete = True
        return ended

    def _error(self, event: JsonObject) -> Events:
        raise UpstreamError(failure_of(event))


def _thought(text: JsonValue) -> Events:
    return (Chunk(reasoning=text),) if isinstance(text, str) and text else NOTHING


_EVENTS: Mapping[str, Callable[[AnthropicReader, JsonObject], Events]] = {
    "content_block_delta": AnthropicReader._delta,
    "content_block_start": AnthropicReader._block_start,
    "content_block_stop": AnthropicReader._block_stop,
    "message_start": AnthropicReader._message_start,
    "message_delta": AnthropicReader._message_delta,
    "message_stop": AnthropicReader._message_stop,
    "error": AnthropicReader._error,
}
