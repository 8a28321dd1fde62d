"""Reads ConverseStream's events and translates them into chunks of the common shape.

`messageStop` gives the stop reason. The event `metadata` follows and completes the stream.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shape `ConverseStreamOutput`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from providers.completion import Chunk, Extras, StreamEvent, ToolCallDelta, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.answer import final_text
from providers.dialects.bedrock.converse_answer import SERVER_TOOL, finish_reason, stop_string, tier_of, usage_of
from providers.dialects.bedrock.converse_blocks import (
    ResponseExtras,
    joined_base64,
    other_response_fields,
    reasoning_detail,
    reasoning_format,
    redacted_detail,
)
from providers.dialects.shared.custom_tools import InputReader
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.read_json import load_json, malformed
from providers.json_types import JsonObject, JsonValue

Events = Iterable[StreamEvent]


@dataclass(slots=True)
class _OpenCall:
    """A tool call in progress.

    `index` counts only calls; the vendor's index counts all blocks. `begun` is true if arguments have arrived. `text`
    reads the arguments of a custom tool.
    """

    index: int
    begun: bool = False
    text: InputReader | None = None


@dataclass(slots=True)
class _OpenBlock:
    """The parts of a block that are held until the block ends.

    `start` is the offset of its text in the response's text. `kind`, `begun`, `deltas` and `content` describe a block
    that is neither text nor a tool call.
    """

    start: int
    citations: list[JsonValue] = field(default_factory=list)
    kind: str = ""
    begun: JsonObject = field(default_factory=dict)
    deltas: list[str] = field(default_factory=list)
    content: list[JsonValue] = field(default_factory=list)


class ConverseReader:
    """Reader of a stream's events; see providers.dialects.shared.decode_stream.Reader."""

    __slots__ = (
        "_blocks",
        "_call_count",
        "_calls",
        "_end",
        "_format",
        "_held_texts",
        "_sent",
        "_text_length",
        "_usage",
        "complete",
    )

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._format = reasoning_format(sent)
        self._calls: dict[int, _OpenCall] = {}
        self._blocks: dict[int, _OpenBlock] = {}
        self._call_count = 0
        self._text_length = 0
        self._end: JsonObject = {}
        self._held_texts: list[str] = []
        self._usage: Usage | None = None

    def read(self, name: str, payload: bytes) -> Events:
        """Translate one event. Unknown events are ignored."""
        handle = _EVENTS.get(name)
        return NOTHING if handle is None else handle(self, event_object(payload))

    def _delta(self, event: JsonObject) -> Events:
        delta = event.get("delta")
        # Nearly every token takes this branch, so this check comes before the slower patterns.
        if type(delta) is dict and type(text := delta.get("text")) is str:
            return self._text(event.get("contentBlockIndex"), text) if text else NOTHING
        match delta:
            case {"toolUse": {"input": str(delta_text)}}:
                return self._arguments(event.get("contentBlockIndex"), delta_text) if delta_text else NOTHING
            case {"reasoningContent": dict(thinking)}:
                return self._reasoning(_index(event), thinking)
            case {"text": text} if text:
                raise malformed("holds a text that is not a string")
            case dict(other) if other:
                return self._hold(_index(event), other)
            case _:
                return NOTHING

    def _hold(self, index: int, delta: JsonObject) -> Events:
        """Hold a delta of a block that can only be translated when the block ends. A delta of an unknown kind is
        returned unchanged."""
        match delta:
            case {"citation": dict(citation)}:
                self._block(index).citations.append(citation)
            case {"toolResult": list(content)}:
                self._block(index).content += content
            case {"image": {"source": {"bytes": str(data)}}}:
                self._block(index).deltas.append(data)
            case _:
                return _unknown_delta({name: value for name, value in delta.items() if name not in _TYPED})
        return NOTHING

    def _text(self, index: JsonValue, text: str) -> Events:
        if isinstance(index, int) and index not in self._blocks:
            self._blocks[index] = _OpenBlock(self._text_length)
        self._text_length += len(text)
        if self._sent.unwrap_choice:
            self._held_texts.append(text)
            return NOTHING
        return (Chunk(text=text),)

    def _reasoning(self, index: int, delta: JsonObject) -> Events:
        match delta:
            case {"text": str(thought)} if thought:
                detail = reasoning_detail(self._format, index, thought, None)
                return (Chunk(reasoning=thought, extras=Extras((detail,))),)
            case {"signature": str(signature)} if signature:
                return (Chunk(extras=Extras((reasoning_detail(self._format, index, None, signature),))),)
            case {"redactedContent": str(data)} if data:
                return (Chunk(extras=Extras((redacted_detail(self._format, index, data),))),)
            case _:
                return NOTHING

    def _block(self, index: int) -> _OpenBlock:
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _OpenBlock(self._text_length)
        return block

    def _arguments(self, index: JsonValue, delta: str) -> Events:
        call = self._calls.get(index) if isinstance(index, int) else None
        if call is None:
            block = self._blocks.get(index) if isinstance(index, int) else None
            if block is None or not block.kind:
                raise malformed("holds arguments of a call that has not begun, or has ended")
            block.deltas.append(delta)
            return NOTHING
        call.begun = True
        if call.text is not None:
            text = call.text.add(delta)
            return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=text, kind="custom"),)),) if text else NOTHING
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=delta),)),)

    def _block_start(self, event: JsonObject) -> Events:
        start = event.get("start")
        match start:
            case {"toolUse": dict(call)} if call.get("type") != SERVER_TOOL:
                return self._begin_call(event.get("contentBlockIndex"), call)
            case dict() if start:
                kind, block_start = next(iter(start.items()))
                block = self._block(_index(event))
                block.kind, block.begun = kind, block_start if isinstance(block_start, dict) else {}
                return NOTHING
            case _:
                return NOTHING

    def _begin_call(self, index: JsonValue, call: JsonObject) -> Events:
        identity, name = call.get("toolUseId"), call.get("name")
        if not isinstance(index, int) or not isinstance(identity, str) or not isinstance(name, str):
            raise malformed("begins a tool call without index, id or name")
        if index in self._calls:
            raise malformed("begins a tool call within another")
        client_name = self._sent.tool_names.get(name, name)
        opened = self._calls[index] = _OpenCall(self._call_count)
        self._call_count += 1
        if client_name in self._sent.custom_tools:
            opened.text = InputReader()
            return (Chunk(tool_calls=(ToolCallDelta(opened.index, identity, client_name, kind="custom"),)),)
        return (Chunk(tool_calls=(ToolCallDelta(opened.index, identity, client_name),)),)

    def _block_stop(self, event: JsonObject) -> Events:
        index = event.get("contentBlockIndex")
        if not isinstance(index, int):
            return NOTHING
        call, block = self._calls.pop(index, None), self._blocks.pop(index, None)
        if call is not None:
            return _end_call(call)
        return NOTHING if block is None else self._end_block(block)

    def _end_block(self, block: _OpenBlock) -> Events:
        """Return the chunks of a held block at its end."""
        extras = ResponseExtras()
        extras.add_citations(block.citations, block.start, self._text_length)
        match block.kind:
            case "image":
                source: JsonObject = {"source": {"bytes": joined_base64(block.deltas)}} if block.deltas else {}
                extras.add_image({**block.begun, **source})
            case "toolUse":
                extras.add_block("toolUse", {**block.begun, "input": _parsed("".join(block.deltas))})
            case "toolResult":
                extras.add_block("toolResult", {**block.begun, "content": _joined(block.content)})
            case "":
                pass
            case kind:
                extras.add_block(kind, block.begun)
        extras_or_none = extras.whole()
        return NOTHING if extras_or_none is None else (Chunk(extras=extras_or_none),)

    def _message_stop(self, event: JsonObject) -> Events:
        """Hold the finish reason until the stream is complete, so that a stream that breaks off does not look
        finished."""
        self._end = event
        return NOTHING

    def _metadata(self, event: JsonObject) -> Events:
        self._usage = usage = usage_of(event.get("usage"), tier_of(event))
        reason = self._end.get("stopReason")
        if not isinstance(reason, str):
            raise malformed("ended without a stop reason")
        unended = [*self._calls, *self._blocks]
        ended = [chunk for index in unended for chunk in self._block_stop({"contentBlockIndex": index})]
        finish, native = finish_reason(reason)
        matched = stop_string(self._sent, self._end, reason)
        other = other_response_fields(self._end, event)
        ended.append(
            Chunk(
                text=final_text(self._sent, "".join(self._held_texts), finish, matched),
                finish_reason=finish,
                native_finish_reason=native,
                matched_stop=matched,
                service_tier=tier_of(event),
                extras=Extras(answer=other) if other else None,
            )
        )
        if usage is not None:
            ended.append(usage)
        self.complete = True
        return ended

    def usage_so_far(self) -> Usage | None:
        return self._usage


_TYPED = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "citation"})
"""Kinds of deltas that have a known form. A delta of one of these kinds in another form is skipped."""


def _index(event: JsonObject) -> int:
    index = event.get("contentBlockIndex")
    return index if isinstance(index, int) else 0


def _unknown_delta(delta: JsonObject) -> Events:
    extras = ResponseExtras()
    for kind, value in delta.items():
        extras.add_block(kind, value)
    shown = extras.whole()
    return NOTHING if shown is None else (Chunk(extras=shown),)


def _end_call(call: _OpenCall) -> Events:
    """End a tool call. A call without arguments gets an empty object; a call of a custom tool gets the rest of its
    text."""
    if call.text is not None:
        text = call.text.rest()
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=text, kind="custom"),)),) if text else NOTHING
    return NOTHING if call.begun else (Chunk(tool_calls=(ToolCallDelta(call.index, arguments="{}"),)),)


def _parsed(text: str) -> JsonValue:
    try:
        return load_json(text.encode(errors="replace")) if text else {}
    except orjson.JSONDecodeError:
        return text


def _joined(content: list[JsonValue]) -> list[JsonValue]:
    """Return a result's content with adjacent texts joined."""
    joined: list[JsonValue] = []
    texts: list[str] = []
    for entry in content:
        if isinstance(entry, dict) and isinstance(text := entry.get("text"), str):
            texts.append(text)
            continue
        if texts:
            joined.append({"text": "".join(texts)})
            texts = []
        joined.append(entry)
    return [*joined, {"text": "".join(texts)}] if texts else joined


_EVENTS: Mapping[str, Callable[[ConverseReader, JsonObject], Events]] = {
    "contentBlockDelta": ConverseReader._delta,
    "contentBlockStart": ConverseReader._block_start,
    "contentBlockStop": ConverseReader._block_stop,
    "messageStop": ConverseReader._message_stop,
    "metadata": ConverseReader._metadata,
}
