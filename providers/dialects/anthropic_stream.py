"""Anthropic's event stream to chunks of the common shape, fed in pieces of any size.

Never a whole answer, and never a success that the vendor did not declare: only `message_stop` ends a stream well.

Sources: `anthropic` 2.12.0 type `RawMessageStreamEvent`; "Streaming messages" page, November 2026.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from providers.completion import Chunk, StreamEvent, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic_answer import (
    compact,
    explanation,
    finish_reason,
    malformed,
    service_tier,
    stop_string,
    usage_of,
    whole_text,
)
from providers.dialects.anthropic_errors import failure_of
from providers.dialects.openai_read import parsed
from providers.failure import ENDED_EARLY, Failure, FailureKind, UpstreamError
from providers.sse import EventTooLarge, SSEParser
from providers.unified import JsonObject, JsonValue

Events = Sequence[StreamEvent]
_NOTHING: Events = ()


@dataclass(slots=True)
class _Call:
    """An open call: its place among the calls (the vendor counts all blocks); its arguments if no piece brings them."""

    index: int
    arguments: str


class AnthropicStream:
    """See providers.dialect.StreamDecoder."""

    __slots__ = ("_calls", "_count", "_end", "_held", "_parser", "_said", "_sent", "_usage", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._parser = SSEParser()
        self._calls: dict[int, _Call] = {}
        self._count = 0
        self._usage: JsonObject = {}
        self._end: JsonObject = {}
        self._said = False
        self._held: list[str] = []

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        try:
            for name, payload in self._parser.feed(data):
                if self.complete:
                    return
                yield from self.read(name, payload)
        except EventTooLarge as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if not self.complete:
            try:
                for name, payload in self._parser.finish():
                    yield from self.read(name, payload)
            except UpstreamError as error:
                # An event that the end cut in two is no JSON; what it says is that the answer was cut.
                if error.failure.kind is not FailureKind.MALFORMED:
                    raise
        if not self.complete:
            raise UpstreamError(Failure(FailureKind.TRUNCATED, ENDED_EARLY, ours=True))

    def read(self, name: str, payload: bytes) -> Events:
        """One event, out of whatever framing it came in. Raises UpstreamError."""
        try:
            event = parsed(payload)
        except orjson.JSONDecodeError:
            if name and name not in _EVENTS:
                return _NOTHING
            raise malformed("holds an event that is not JSON") from None
        if not isinstance(event, dict):
            return _NOTHING
        kind = event.get("type", name)
        handle = _EVENTS.get(kind) if isinstance(kind, str) else None
        return _NOTHING if handle is None else handle(self, event)

    def _delta(self, event: JsonObject) -> Events:
        delta = event.get("delta")
        if not isinstance(delta, dict):
            return _NOTHING
        kind = delta.get("type")
        if kind == "text_delta":
            return self._text(delta.get("text"))
        if kind == "input_json_delta":
            return self._arguments(event.get("index"), delta.get("partial_json"))
        if kind == "thinking_delta":
            return _thought(delta.get("thinking"))
        return _NOTHING

    def _arguments(self, index: JsonValue, piece: JsonValue) -> Events:
        call = self._calls.get(index) if isinstance(index, int) else None
        if call is None or not isinstance(piece, str) or not piece:
            return _NOTHING
        call.arguments = ""
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=piece),)),)

    def _text(self, text: JsonValue) -> Events:
        if not isinstance(text, str) or not text:
            return _NOTHING
        self._said = True
        if self._sent.unwrap_choice:
            self._held.append(text)
            return _NOTHING
        return (Chunk(text=text),)

    def _block_start(self, event: JsonObject) -> Events:
        block, index = event.get("content_block"), event.get("index")
        if not isinstance(block, dict):
            return _NOTHING
        kind = block.get("type")
        if kind == "text":
            return self._text(block.get("text"))
        if kind == "thinking":
            return _thought(block.get("thinking"))
        if kind != "tool_use":
            return _NOTHING
        call, name = block.get("id"), block.get("name")
        if not isinstance(index, int) or not isinstance(call, str) or not isinstance(name, str):
            raise malformed("begins a tool call without index, id or name")
        opened = _Call(self._count, compact(block.get("input") or {}))
        self._calls[index] = opened
        self._count += 1
        return (Chunk(tool_calls=(ToolCallDelta(opened.index, call, self._sent.tool_names.get(name, name)),)),)

    def _block_stop(self, event: JsonObject) -> Events:
        index = event.get("index")
        call = self._calls.pop(index, None) if isinstance(index, int) else None
        if call is None or not call.arguments:
            return _NOTHING
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=call.arguments),)),)

    def _message_start(self, event: JsonObject) -> Events:
        message = event.get("message")
        self._count_usage(message.get("usage") if isinstance(message, dict) else None)
        return _NOTHING

    def _message_delta(self, event: JsonObject) -> Events:
        """The finish is kept until the stream has ended well: a stream that breaks must not look finished."""
        self._count_usage(event.get("usage"))
        delta = event.get("delta")
        if isinstance(delta, dict) and delta.get("stop_reason") is not None:
            self._end = delta
        return _NOTHING

    def _count_usage(self, usage: JsonValue) -> None:
        """Counts are cumulative, and an event repeats only some of them."""
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
    return (Chunk(reasoning=text),) if isinstance(text, str) and text else _NOTHING


_EVENTS: Mapping[str, Callable[[AnthropicStream, JsonObject], Events]] = {
    "content_block_delta": AnthropicStream._delta,
    "content_block_start": AnthropicStream._block_start,
    "content_block_stop": AnthropicStream._block_stop,
    "message_start": AnthropicStream._message_start,
    "message_delta": AnthropicStream._message_delta,
    "message_stop": AnthropicStream._message_stop,
    "error": AnthropicStream._error,
}
