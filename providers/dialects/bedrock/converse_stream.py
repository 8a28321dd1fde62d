"""ConverseStream's events to chunks of the common shape.

`messageStop` says why the model stopped; a stream is complete with `metadata`, which comes after it.

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
    AnswerExtras,
    joined_base64,
    own_members,
    redacted_detail,
    thinking_format,
    thought_detail,
)
from providers.dialects.shared.custom_tools import InputReader
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.read_json import load_json, malformed
from providers.json_types import JsonObject, JsonValue

Events = Iterable[StreamEvent]


@dataclass(slots=True)
class _OpenCall:
    """An incomplete call: its index among the calls (the vendor counts all blocks), and whether arguments came. The
    arguments of a custom tool are read by `text`."""

    index: int
    begun: bool = False
    text: InputReader | None = None


@dataclass(slots=True)
class _OpenBlock:
    """What a block holds until it ends: where its text began, its citations, and a block that is no text or call."""

    start: int
    citations: list[JsonValue] = field(default_factory=list)
    kind: str = ""
    begun: JsonObject = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    content: list[JsonValue] = field(default_factory=list)


class ConverseReader:
    """See providers.dialects.shared.decode_stream.Reader."""

    __slots__ = ("_blocks", "_calls", "_count", "_end", "_format", "_held", "_said", "_sent", "_usage", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._format = thinking_format(sent)
        self._calls: dict[int, _OpenCall] = {}
        self._blocks: dict[int, _OpenBlock] = {}
        self._count = 0
        self._said = 0
        self._end: JsonObject = {}
        self._held: list[str] = []
        self._usage: Usage | None = None

    def read(self, name: str, payload: bytes) -> Events:
        """See Reader. Unknown events are ignored."""
        handle = _EVENTS.get(name)
        return NOTHING if handle is None else handle(self, event_object(payload))

    def _delta(self, event: JsonObject) -> Events:
        delta = event.get("delta")
        # Before the patterns, which cost more: nearly every token comes this way.
        if type(delta) is dict and type(text := delta.get("text")) is str:
            return self._text(event.get("contentBlockIndex"), text) if text else NOTHING
        match delta:
            case {"toolUse": {"input": str(piece)}}:
                return self._arguments(event.get("contentBlockIndex"), piece) if piece else NOTHING
            case {"reasoningContent": dict(thinking)}:
                return self._thinking(_index(event), thinking)
            case {"text": piece} if piece:
                raise malformed("holds a text that is none")
            case dict(other) if other:
                return self._hold(_index(event), other)
            case _:
                return NOTHING

    def _hold(self, index: int, piece: JsonObject) -> Events:
        """Hold a piece of a block that is known only when it ends; one of an unknown kind is passed on."""
        match piece:
            case {"citation": dict(citation)}:
                self._block(index).citations.append(citation)
            case {"toolResult": list(content)}:
                self._block(index).content += content
            case {"image": {"source": {"bytes": str(data)}}}:
                self._block(index).pieces.append(data)
            case _:
                return _passed_on({name: value for name, value in piece.items() if name not in _TYPED})
        return NOTHING

    def _text(self, index: JsonValue, text: str) -> Events:
        if isinstance(index, int) and index not in self._blocks:
            self._blocks[index] = _OpenBlock(self._said)
        self._said += len(text)
        if self._sent.unwrap_choice:
            self._held.append(text)
            return NOTHING
        return (Chunk(text=text),)

    def _thinking(self, index: int, piece: JsonObject) -> Events:
        match piece:
            case {"text": str(thought)} if thought:
                detail = thought_detail(self._format, index, thought, None)
                return (Chunk(reasoning=thought, extras=Extras((detail,))),)
            case {"signature": str(signature)} if signature:
                return (Chunk(extras=Extras((thought_detail(self._format, index, None, signature),))),)
            case {"redactedContent": str(data)} if data:
                return (Chunk(extras=Extras((redacted_detail(self._format, index, data),))),)
            case _:
                return NOTHING

    def _block(self, index: int) -> _OpenBlock:
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _OpenBlock(self._said)
        return block

    def _arguments(self, index: JsonValue, piece: str) -> Events:
        call = self._calls.get(index) if isinstance(index, int) else None
        if call is None:
            block = self._blocks.get(index) if isinstance(index, int) else None
            if block is None or not block.kind:
                raise malformed("holds arguments of a call that has not begun, or has ended")
            block.pieces.append(piece)
            return NOTHING
        call.begun = True
        if call.text is not None:
            text = call.text.add(piece)
            return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=text, kind="custom"),)),) if text else NOTHING
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=piece),)),)

    def _block_start(self, event: JsonObject) -> Events:
        start = event.get("start")
        match start:
            case {"toolUse": dict(call)} if call.get("type") != SERVER_TOOL:
                return self._begin_call(event.get("contentBlockIndex"), call)
            case dict() if start:
                kind, begun = next(iter(start.items()))
                block = self._block(_index(event))
                block.kind, block.begun = kind, begun if isinstance(begun, dict) else {}
                return NOTHING
            case _:
                return NOTHING

    def _begin_call(self, index: JsonValue, call: JsonObject) -> Events:
        identity, name = call.get("toolUseId"), call.get("name")
        if not isinstance(index, int) or not isinstance(identity, str) or not isinstance(name, str):
            raise malformed("begins a tool call without index, id or name")
        if index in self._calls:
            raise malformed("begins a tool call within another")
        own = self._sent.tool_names.get(name, name)
        opened = self._calls[index] = _OpenCall(self._count)
        self._count += 1
        if own in self._sent.custom_tools:
            opened.text = InputReader()
            return (Chunk(tool_calls=(ToolCallDelta(opened.index, identity, own, kind="custom"),)),)
        return (Chunk(tool_calls=(ToolCallDelta(opened.index, identity, own),)),)

    def _block_stop(self, event: JsonObject) -> Events:
        index = event.get("contentBlockIndex")
        if not isinstance(index, int):
            return NOTHING
        call, block = self._calls.pop(index, None), self._blocks.pop(index, None)
        if call is not None:
            return _end_call(call)
        return NOTHING if block is None else self._end_block(block)

    def _end_block(self, block: _OpenBlock) -> Events:
        """Show what a block held: it is known only when it ends."""
        extras = AnswerExtras()
        extras.cite(block.citations, block.start, self._said)
        match block.kind:
            case "image":
                source: JsonObject = {"source": {"bytes": joined_base64(block.pieces)}} if block.pieces else {}
                extras.show({**block.begun, **source})
            case "toolUse":
                extras.pass_on("toolUse", {**block.begun, "input": _parsed("".join(block.pieces))})
            case "toolResult":
                extras.pass_on("toolResult", {**block.begun, "content": _joined(block.content)})
            case "":
                pass
            case kind:
                extras.pass_on(kind, block.begun)
        shown = extras.whole()
        return NOTHING if shown is None else (Chunk(extras=shown),)

    def _message_stop(self, event: JsonObject) -> Events:
        """Hold the finish back until the stream is complete: a stream that breaks must not look finished."""
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
        own = own_members(self._end, event)
        ended.append(
            Chunk(
                text=final_text(self._sent, "".join(self._held), finish, matched),
                finish_reason=finish,
                native_finish_reason=native,
                matched_stop=matched,
                service_tier=tier_of(event),
                extras=Extras(answer=own) if own else None,
            )
        )
        if usage is not None:
            ended.append(usage)
        self.complete = True
        return ended

    def usage_so_far(self) -> Usage | None:
        """See UsageReporter."""
        return self._usage


_TYPED = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "citation"})
"""Kinds of pieces that have a form; one of them in another form is passed over."""


def _index(event: JsonObject) -> int:
    index = event.get("contentBlockIndex")
    return index if isinstance(index, int) else 0


def _passed_on(piece: JsonObject) -> Events:
    extras = AnswerExtras()
    for kind, value in piece.items():
        extras.pass_on(kind, value)
    shown = extras.whole()
    return NOTHING if shown is None else (Chunk(extras=shown),)


def _end_call(call: _OpenCall) -> Events:
    """End a call; one without arguments gets an empty object, and one of a custom tool its text."""
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
    """Return a result's pieces with texts that follow each other joined."""
    whole: list[JsonValue] = []
    texts: list[str] = []
    for piece in content:
        if isinstance(piece, dict) and isinstance(text := piece.get("text"), str):
            texts.append(text)
            continue
        if texts:
            whole.append({"text": "".join(texts)})
            texts = []
        whole.append(piece)
    return [*whole, {"text": "".join(texts)}] if texts else whole


_EVENTS: Mapping[str, Callable[[ConverseReader, JsonObject], Events]] = {
    "contentBlockDelta": ConverseReader._delta,
    "contentBlockStart": ConverseReader._block_start,
    "contentBlockStop": ConverseReader._block_stop,
    "messageStop": ConverseReader._message_stop,
    "metadata": ConverseReader._metadata,
}
