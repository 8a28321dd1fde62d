"""Reads Anthropic's stream events and translates them into chunks of the common shape.

Sources: `anthropic` 2.12.0 type `RawMessageStreamEvent`; "Streaming messages" page, November 2026.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from providers.completion import Chunk, Extras, StreamEvent, TextRun, ToolCallDelta, Usage, as_estimate, count_of
from providers.conversation import UNKNOWN_FORMAT
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.answer import (
    final_text,
    finish_reason,
    refusal_text,
    service_tier,
    stop_string,
    usage_of,
)
from providers.dialects.anthropic.answer_parts import (
    citation_extras,
    other_block_extras,
    other_call_fields,
    other_message_fields,
    reasoning_delta,
    reasoning_detail,
    signature_delta,
)
from providers.dialects.anthropic.errors import failure_of
from providers.dialects.shared.custom_tools import InputReader
from providers.dialects.shared.decode_stream import NOTHING
from providers.dialects.shared.decode_text_chunks import MarkedEvent
from providers.dialects.shared.read_json import arguments_text, malformed, parse_event, parse_json
from providers.failure import UpstreamError
from providers.framing.text_frames import MARK
from providers.json_types import JsonObject, JsonValue

Events = Sequence[StreamEvent]

MAX_HELD_BYTES = 32 * 2**20
"""The maximum size, in bytes, of events that are held until their block ends."""


@dataclass(slots=True)
class _OpenToolCall:
    """A tool call in progress. `index` counts only calls; the vendor's index counts all blocks. `arguments` are the
    arguments in the block's start; the first delta empties them. `text` reads the arguments of a custom tool."""

    index: int
    arguments: str
    text: InputReader | None = None


@dataclass(slots=True)
class _OpenText:
    """A text block in progress: its start in the response's text, and its citations, which precede the text."""

    start: int
    citations: list[JsonValue]


@dataclass(slots=True)
class _OpenThinking:
    """A `thinking` block in progress: its index among the `thinking` blocks, and whether its signature has arrived."""

    index: int
    signed: bool = False


@dataclass(slots=True)
class _OpenOther:
    """A block without a common form, with the deltas of its string fields."""

    block: JsonObject
    deltas: dict[str, list[str]] = field(default_factory=dict)

    def add(self, delta: JsonObject) -> None:
        for name, value in delta.items():
            if isinstance(value, str) and name != "type":
                self.deltas.setdefault(name, []).append(value)
            elif name != "type":
                self.block[name] = value

    def whole(self) -> JsonObject:
        joined: JsonObject = {name: "".join(deltas) for name, deltas in self.deltas.items()}
        input_json = joined.pop("partial_json", None)
        if isinstance(input_json, str) and input_json:
            try:
                joined["input"] = parse_json(input_json.encode())
            except orjson.JSONDecodeError:
                joined["input"] = input_json
        return {**self.block, **joined}


_OpenBlock = _OpenToolCall | _OpenText | _OpenThinking | _OpenOther


class AnthropicReader:
    """Reader of a stream's events; see providers.dialects.shared.decode_stream.Reader. The event `message_stop`
    completes a stream."""

    marks = (b'"text_delta"', b'"input_json_delta"', b'"thinking_delta"')

    __slots__ = (
        *("_blocks", "_call_count", "_end", "_event_size", "_has_text", "_held_bytes", "_held_texts", "_newest"),
        *("_other_fields", "_sent", "_text_length", "_thinking_count", "_usage", "complete", "kind"),
    )

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self.kind = ""
        self._sent = sent
        self._blocks: dict[int, _OpenBlock] = {}
        self._call_count = self._thinking_count = 0
        self._newest = -1
        # The code points of text so far, the bytes of the current event, and the bytes of all held events.
        self._text_length = self._event_size = self._held_bytes = 0
        self._usage: JsonObject = {}
        self._other_fields: JsonObject = {}
        self._end: JsonObject = {}
        self._has_text = False
        self._held_texts: list[str] = []

    def read(self, name: str, payload: bytes) -> Events:
        """Translate one event. Unknown event types are skipped, because the vendor adds new ones."""
        try:
            event = parse_event(payload)
        except orjson.JSONDecodeError:
            if name and name not in _EVENTS:
                return NOTHING
            raise malformed("holds an event that is not JSON") from None
        if type(event) is not dict:
            return NOTHING
        self._event_size = len(payload)
        kind = event.get("type", name) or ("error" if "error" in event else "")
        if type(kind) is not str:
            return NOTHING
        self.kind = kind
        handle = _EVENTS.get(kind)
        return NOTHING if handle is None else handle(self, event)

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        """Return the event with its text replaced by a mark; see
        providers.dialects.shared.decode_text_chunks.TextReader. No other field of such an event is read."""
        delta, index = event.get("delta"), event.get("index")
        if event.get("type") != "content_block_delta" or not isinstance(delta, dict) or self._sent.unwrap_choice:
            return None
        if delta.get("type") == "text_delta" and self._has_begun(index):
            return MarkedEvent("text", {**event, "delta": {**delta, "text": MARK}})
        block = self._blocks.get(index) if isinstance(index, int) else None
        name = "thinking" if isinstance(block, _OpenThinking) else "partial_json"
        marked_event: JsonObject = {**event, "delta": {**delta, name: MARK}}
        if isinstance(block, _OpenThinking) and delta.get("type") == "thinking_delta":
            detail = reasoning_delta(block.index, MARK).reasoning_details[0]
            return MarkedEvent(name, marked_event, "reasoning", block.index, detail)
        if isinstance(block, _OpenToolCall) and block.text is None and delta.get("type") == "input_json_delta":
            return MarkedEvent(name, marked_event, "arguments", block.index)
        return None

    def take(self, run: TextRun) -> bool:
        if run.part == "text":
            self._has_text = True
            self._text_length += run.characters
            return True
        kind = _OpenThinking if run.part == "reasoning" else _OpenToolCall
        blocks = [each for each in self._blocks.values() if type(each) is kind and each.index == run.call]
        for block in blocks:
            if isinstance(block, _OpenToolCall):
                block.arguments = ""
        return bool(blocks)

    def _delta(self, event: JsonObject) -> Events:
        delta = event.get("delta")
        if not isinstance(delta, dict):
            return NOTHING
        kind = delta.get("type")
        index = event.get("index")
        if kind == "text_delta":
            if delta.get("text") and not self._has_begun(index):
                raise malformed("holds a text of a block that has not begun")
            return self._text(delta.get("text"))
        block = self._blocks.get(index) if isinstance(index, int) else None
        match block, delta:
            case _OpenToolCall(), {"partial_json": str(text)} if text:
                return self._arguments(block, text)
            case None | _OpenText() | _OpenThinking(), {"type": "input_json_delta", "partial_json": str(text)} if text:
                raise malformed("holds arguments of a call that has not begun, or has ended")
            case _, {"type": "thinking_delta", "thinking": str(text)} if text:
                return _reasoning_events(block, text)
            case _OpenThinking(), {"type": "signature_delta", "signature": str(signature)} if signature:
                block.signed = True
                return (Chunk(extras=signature_delta(block.index, signature)),)
            case _OpenText(), {"type": "citations_delta", "citation": citation}:
                self._count_held()
                block.citations.append(citation)
            case _OpenOther(), _:
                self._count_held()
                block.add(delta)
            case _:
                pass
        return NOTHING

    def _has_begun(self, index: JsonValue) -> bool:
        """Return whether the block with this index has begun. An event without an index belongs to the open block."""
        return not isinstance(index, int) or index <= self._newest

    def _arguments(self, call: _OpenToolCall, json_text: str) -> Events:
        call.arguments = ""
        if call.text is None:
            return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=json_text),)),)
        text = call.text.add(json_text)
        if not call.text.begun:
            self._count_held()
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=text, kind="custom"),)),) if text else NOTHING

    def _count_held(self) -> None:
        """Add the size of the current event to the held bytes. Raises UpstreamError above MAX_HELD_BYTES."""
        self._held_bytes += self._event_size
        if self._held_bytes > MAX_HELD_BYTES:
            raise malformed("holds more citations and blocks of tools than are read")

    def _text(self, text: JsonValue) -> Events:
        if not isinstance(text, str) or not text:
            if text:
                raise malformed("holds a text that is not a string")
            return NOTHING
        self._has_text = True
        self._text_length += len(text)
        if self._sent.unwrap_choice:
            self._held_texts.append(text)
            return NOTHING
        return (Chunk(text=text),)

    def _block_start(self, event: JsonObject) -> Events:
        block, index = event.get("content_block"), event.get("index")
        if not isinstance(block, dict):
            return NOTHING
        kind = block.get("type")
        if isinstance(index, int) and index > self._newest:
            self._newest = index
        if kind == "tool_use":
            return self._call(block, index)
        if kind == "redacted_thinking":
            self._thinking_count += 1
            return (Chunk(extras=Extras(reasoning_details=(reasoning_detail(block, self._thinking_count - 1),))),)
        opened = self._opened(block)
        if isinstance(index, int):
            self._blocks[index] = opened
        if isinstance(opened, _OpenText):
            return self._text(block.get("text"))
        return _initial_events(opened, block) if isinstance(opened, _OpenThinking) else NOTHING

    def _opened(self, block: JsonObject) -> _OpenText | _OpenThinking | _OpenOther:
        match block.get("type"):
            case "text":
                citations = block.get("citations")
                return _OpenText(self._text_length, [*citations] if isinstance(citations, list) else [])
            case "thinking":
                self._thinking_count += 1
                return _OpenThinking(self._thinking_count - 1)
            case _:
                self._count_held()
                return _OpenOther(block)

    def _call(self, block: JsonObject, index: JsonValue) -> Events:
        call, name = block.get("id"), block.get("name")
        if not isinstance(index, int) or not isinstance(call, str) or not isinstance(name, str):
            raise malformed("begins a tool call without index, id or name")
        before = self._blocks.get(index)
        if isinstance(before, _OpenToolCall):
            raise malformed("begins a tool call within another")
        opened = _OpenToolCall(self._call_count, arguments_text(block.get("input") or {}))
        self._blocks[index] = opened
        self._call_count += 1
        client = self._sent.tool_names.get(name, name)
        if client in self._sent.custom_tools:
            opened.text = InputReader()
            return (Chunk(tool_calls=(ToolCallDelta(opened.index, call, client, kind="custom"),)),)
        return (Chunk(tool_calls=(ToolCallDelta(opened.index, call, client, extra=other_call_fields(block)),)),)

    def _block_stop(self, event: JsonObject) -> Events:
        index = event.get("index")
        match self._blocks.pop(index, None) if isinstance(index, int) else None:
            case _OpenToolCall(number, arguments, InputReader() as reader):
                text = reader.add(arguments) + reader.rest()
                return (Chunk(tool_calls=(ToolCallDelta(number, arguments=text, kind="custom"),)),) if text else NOTHING
            case _OpenToolCall(number, arguments) if arguments:
                return (Chunk(tool_calls=(ToolCallDelta(number, arguments=arguments),)),)
            case _OpenThinking(number, signed=False):
                return (Chunk(extras=reasoning_delta(number, "", UNKNOWN_FORMAT)),)
            case _OpenText(start, citations) if citations:
                extras = citation_extras(citations, start, self._text_length)
                return NOTHING if extras is None else (Chunk(extras=extras),)
            case _OpenOther() as other:
                return (Chunk(extras=other_block_extras(other.whole())),)
            case _:
                return NOTHING

    def _message_start(self, event: JsonObject) -> Events:
        """Read the message, which may already hold blocks that an earlier turn deferred."""
        message = event.get("message")
        if not isinstance(message, dict):
            return NOTHING
        if self._blocks:
            raise malformed("begins a second time before a block has ended")
        self._count_usage(message.get("usage"))
        self._other_fields |= other_message_fields(message)
        if message.get("stop_reason") is not None:
            # A message that begins with a stop reason may already be complete.
            self._end = message
        blocks = message.get("content")
        events: list[StreamEvent] = []
        for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
            events += self._block_start({"index": index, "content_block": block})
            events += self._block_stop({"index": index})
        return events

    def _message_delta(self, event: JsonObject) -> Events:
        """Hold the finish reason until the stream is complete. A broken stream must not look finished."""
        self._count_usage(event.get("usage"))
        self._other_fields |= other_message_fields({name: value for name, value in event.items() if name != "delta"})
        delta = event.get("delta")
        if isinstance(delta, dict):
            self._other_fields |= other_message_fields(delta)
        if isinstance(delta, dict) and delta.get("stop_reason") is not None:
            self._end = delta
        return NOTHING

    def _count_usage(self, usage: JsonValue) -> None:
        """Update the usage. Counts are cumulative, and an event repeats only some counts. A value that is not a count
        is ignored."""
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if value is not None and not (name.endswith("_tokens") and count_of(value) is None):
                self._usage[name] = value

    def usage_so_far(self) -> Usage | None:
        """Return the usage so far. The vendor sends the prompt's counts first, and the completion's counts in the last
        event but one."""
        usage = usage_of({"output_tokens": 0, **self._usage})
        return usage if self._end else as_estimate(usage)

    def _message_stop(self, event: JsonObject) -> Events:
        reason = self._end.get("stop_reason")
        if not isinstance(reason, str):
            raise malformed("ended without a stop reason")
        ended: list[StreamEvent] = [
            chunk for index in list(self._blocks) for chunk in self._block_stop({"index": index})
        ]
        self._other_fields |= other_message_fields(event)
        if self._other_fields:
            ended.append(Chunk(extras=Extras(answer=self._other_fields)))
        finish, native = finish_reason(reason)
        matched, refusal = stop_string(self._end), refusal_text(self._end)
        text = final_text(self._sent, "".join(self._held_texts), finish, matched)
        ended.append(
            Chunk(
                text=text if text or self._has_text else refusal or "",
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


def _initial_events(opened: _OpenThinking, block: JsonObject) -> Events:
    """Return the events for the content in a `thinking` block's start. The content is either empty or complete."""
    thought, signature = block.get("thinking"), block.get("signature")
    events = [*_reasoning_events(opened, thought)] if isinstance(thought, str) and thought else []
    if isinstance(signature, str) and signature:
        opened.signed = True
        events.append(Chunk(extras=signature_delta(opened.index, signature)))
    return events


def _reasoning_events(block: _OpenBlock | None, text: str) -> Events:
    extras = reasoning_delta(block.index, text) if isinstance(block, _OpenThinking) else None
    return (Chunk(reasoning=text, extras=extras),)


_EVENTS: Mapping[str, Callable[[AnthropicReader, JsonObject], Events]] = {
    "content_block_delta": AnthropicReader._delta,
    "content_block_start": AnthropicReader._block_start,
    "content_block_stop": AnthropicReader._block_stop,
    "message_start": AnthropicReader._message_start,
    "message_delta": AnthropicReader._message_delta,
    "message_stop": AnthropicReader._message_stop,
    "error": AnthropicReader._error,
}
