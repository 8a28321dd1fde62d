"""ConverseStream's events to chunks of the common shape.

`messageStop` says why the model stopped; a stream is complete with `metadata`, which comes after it.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shape `ConverseStreamOutput`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from providers.completion import Chunk, StreamEvent, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.answer import whole_text
from providers.dialects.bedrock.converse_answer import SERVER_TOOL, finish_reason, stop_string, usage_of
from providers.dialects.shared.read_json import malformed
from providers.dialects.shared.stream_reader import NOTHING, event_object
from providers.json_types import JsonObject, JsonValue

Events = Iterable[StreamEvent]


@dataclass(slots=True)
class _OpenCall:
    """An incomplete call: its index among the calls (the vendor counts all blocks), and whether arguments came."""

    index: int
    begun: bool = False


class ConverseReader:
    """See providers.dialects.shared.stream_reader.Reader."""

    __slots__ = ("_calls", "_count", "_end", "_held", "_sent", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._calls: dict[int, _OpenCall] = {}
        self._count = 0
        self._end: JsonObject = {}
        self._held: list[str] = []

    def read(self, name: str, payload: bytes) -> Events:
        """See Reader. Unknown events are ignored."""
        handle = _EVENTS.get(name)
        return NOTHING if handle is None else handle(self, event_object(payload))

    def _delta(self, event: JsonObject) -> Events:
        match event.get("delta"):
            case {"text": str(text)} if text:
                if self._sent.unwrap_choice:
                    self._held.append(text)
                    return NOTHING
                return (Chunk(text=text),)
            case {"toolUse": {"input": str(piece)}} if piece:
                return self._arguments(event.get("contentBlockIndex"), piece)
            case {"reasoningContent": {"text": str(thought)}} if thought:
                return (Chunk(reasoning=thought),)
            case _:
                return NOTHING

    def _arguments(self, index: JsonValue, piece: str) -> Events:
        call = self._calls.get(index) if isinstance(index, int) else None
        if call is None:
            return NOTHING
        call.begun = True
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=piece),)),)

    def _block_start(self, event: JsonObject) -> Events:
        start, index = event.get("start"), event.get("contentBlockIndex")
        call = start.get("toolUse") if isinstance(start, dict) else None
        if not isinstance(call, dict) or call.get("type") == SERVER_TOOL:
            return NOTHING
        identity, name = call.get("toolUseId"), call.get("name")
        if not isinstance(index, int) or not isinstance(identity, str) or not isinstance(name, str):
            raise malformed("begins a tool call without index, id or name")
        opened = self._calls[index] = _OpenCall(self._count)
        self._count += 1
        return (Chunk(tool_calls=(ToolCallDelta(opened.index, identity, self._sent.tool_names.get(name, name)),)),)

    def _block_stop(self, event: JsonObject) -> Events:
        """End a call; one without arguments gets an empty object."""
        index = event.get("contentBlockIndex")
        call = self._calls.pop(index, None) if isinstance(index, int) else None
        if call is None or call.begun:
            return NOTHING
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments="{}"),)),)

    def _message_stop(self, event: JsonObject) -> Events:
        """Hold the finish back until the stream is complete: a stream that breaks must not look finished."""
        self._end = event
        return NOTHING

    def _metadata(self, event: JsonObject) -> Events:
        reason = self._end.get("stopReason")
        if not isinstance(reason, str):
            raise malformed("ended without a stop reason")
        ended = [chunk for index in list(self._calls) for chunk in self._block_stop({"contentBlockIndex": index})]
        finish, native = finish_reason(reason)
        matched = stop_string(self._sent, self._end, reason)
        ended.append(
            Chunk(
                text=whole_text(self._sent, "".join(self._held), finish, matched),
                finish_reason=finish,
                native_finish_reason=native,
                matched_stop=matched,
            )
        )
        usage = usage_of(event.get("usage"))
        if usage is not None:
            ended.append(usage)
        self.complete = True
        return ended


_EVENTS: Mapping[str, Callable[[ConverseReader, JsonObject], Events]] = {
    "contentBlockDelta": ConverseReader._delta,
    "contentBlockStart": ConverseReader._block_start,
    "contentBlockStop": ConverseReader._block_stop,
    "messageStop": ConverseReader._message_stop,
    "metadata": ConverseReader._metadata,
}
