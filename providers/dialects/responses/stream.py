"""Reader of the Responses API's stream events, which become chunks of the common shape.

Some events repeat the text of earlier deltas. Only text that no delta had is read from them, because not every server
sends both. A stream is complete when the response is complete.

Sources: `openai` 3.54.0 type `ResponseStreamEvent`, November 2026.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from providers.completion import CallKind, Chunk, ContentLogprobs, StreamEvent, ToolCall, ToolCallDelta, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.responses.answer import (
    PART_SEPARATOR,
    ResponseParts,
    call_of,
    check_response,
    failure_of,
    finish_of,
    format_of,
    tier_of,
    tokens_in,
    usage_of,
)
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.read_json import malformed, unwrap_answer
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue

Events = Sequence[StreamEvent]

_END_MARK = b"[DONE]"


@dataclass(slots=True)
class _CallInProgress:
    """A call in progress: its index among the calls, its kind, and whether a delta of its arguments has arrived."""

    index: int
    kind: CallKind
    begun: bool


class ResponsesReader:
    """Reader of a stream's events; see providers.dialects.shared.decode_stream.NamingReader."""

    __slots__ = (
        *(
            "_calls",
            "_detail_count",
            "_done_items",
            "_held_texts",
            "_item_starts",
            "_profile",
            "_items_with_text",
            "_sent",
            "_reasoning_position",
            "_usage",
        ),
        *("_searches", "_text_length", "complete", "kind"),
    )

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self.kind = ""
        self._sent = sent
        self._profile = sent.target.profile
        self._calls: dict[int, _CallInProgress] = {}
        # Output indexes of items that have had a text or reasoning, and of items that are done.
        self._items_with_text: set[int] = set()
        self._done_items: set[int] = set()
        self._reasoning_position: tuple[JsonValue, ...] = ()
        # The characters of text and the number of calls before each item.
        self._item_starts: dict[int, tuple[int, int]] = {}
        self._text_length = self._detail_count = 0
        # The text of a choice inside a JSON object, which can only be read when it is complete.
        self._held_texts: list[str] | None = [] if sent.unwrap_choice else None
        self._usage: Usage | None = None
        # Searches of the vendor's own tools, which are counted in the usage.
        self._searches: list[JsonValue] = []

    def read(self, name: str, payload: bytes) -> Events:
        """Translate one event. Events of unknown types are ignored: they belong to the vendor's own tools, or are
        new."""
        if payload == _END_MARK:
            return NOTHING
        event = event_object(payload)
        kind = event.get("type", name)
        if not isinstance(kind, str):
            return NOTHING
        self.kind = kind
        handle = _EVENTS.get(kind)
        return NOTHING if handle is None else handle(self, event)

    def _text(self, event: JsonObject) -> Events:
        text = event.get("delta")
        if not isinstance(text, str) or not text:
            return NOTHING
        self._note_text_start(_index_of(event))
        self._text_length += len(text)
        if self._held_texts is not None:
            self._held_texts.append(text)
            return NOTHING
        if listed := event.get("logprobs"):
            tokens = tokens_in(listed)
            return (Chunk(text=text, logprobs=ContentLogprobs(tokens) if tokens else None),)
        return (Chunk(text=text),)

    def _refusal(self, event: JsonObject) -> Events:
        words = event.get("delta")
        if not isinstance(words, str) or not words:
            return NOTHING
        self._note_text_start(_index_of(event))
        self._text_length += len(words)
        return (Chunk(text=words, refusal=words),)

    def _note_text_start(self, index: int) -> None:
        """Note that an item has a text."""
        if index not in self._items_with_text:
            self._items_with_text.add(index)
            self._item_starts.setdefault(index, (self._text_length, len(self._calls)))

    def _reasoning(self, event: JsonObject) -> Events:
        text = event.get("delta")
        if not isinstance(text, str) or not text:
            return NOTHING
        index = _index_of(event)
        position = (index, _index_number(event.get("summary_index")), _index_number(event.get("content_index")))
        gap = PART_SEPARATOR if self._reasoning_position and position != self._reasoning_position else ""
        self._reasoning_position = position
        self._items_with_text.add(index)
        return (Chunk(reasoning=gap + text),)

    def _arguments(self, event: JsonObject) -> Events:
        delta, call = event.get("delta"), self._calls.get(_index_of(event))
        if call is None or not isinstance(delta, str) or not delta:
            return NOTHING
        call.begun = True
        return (Chunk(tool_calls=(ToolCallDelta(call.index, arguments=delta, kind=call.kind),)),)

    def _item_added(self, event: JsonObject) -> Events:
        item, index = event.get("item"), _index_of(event)
        if not isinstance(item, dict):
            return NOTHING
        self._item_starts.setdefault(index, (self._text_length, len(self._calls)))
        call = call_of(item)
        return NOTHING if call is None else self._call(index, call)

    def _item_done(self, event: JsonObject) -> Events:
        item, index = event.get("item"), _index_of(event)
        if not isinstance(item, dict) or index in self._done_items:
            return NOTHING
        self._done_items.add(index)
        call = call_of(item)
        if call is None:
            return self._unsent_parts(index, item)
        start_chunks = self._call(index, call) if index not in self._calls else NOTHING
        open_call = self._calls[index]
        if open_call.begun:
            return start_chunks
        open_call.begun = True
        # Clients parse the arguments as JSON, and some servers send no empty object.
        rest = call.arguments or ("{}" if call.kind == "function" else "")
        delta = ToolCallDelta(open_call.index, arguments=rest, kind=call.kind)
        return (*start_chunks, Chunk(tool_calls=(delta,))) if rest else start_chunks

    def _call(self, index: int, call: ToolCall) -> Events:
        if index in self._calls:
            raise malformed("begins the same call twice")
        number = len(self._calls)
        self._calls[index] = _CallInProgress(number, call.kind, bool(call.arguments))
        name = self._sent.tool_names.get(call.name, call.name)
        delta = ToolCallDelta(number, call.id, name, call.arguments, call.kind, call.extra)
        return (Chunk(tool_calls=(delta,)),)

    def _unsent_parts(self, index: int, item: JsonObject) -> Events:
        """Return the contents of an item that had no deltas, and the extras of any item, which are never in deltas."""
        characters, call_count = self._item_starts.get(index, (self._text_length, len(self._calls)))
        parts = ResponseParts(format_of(self._profile), characters, call_count, self._detail_count)
        parts.add(item)
        self._searches += parts.searches
        self._detail_count, extras = parts.detail_count, parts.extras()
        reasoning, words = PART_SEPARATOR.join(parts.reasoning_texts), "".join(parts.refusals)
        text = "".join(parts.texts) or words
        if index in self._items_with_text or not (reasoning or text):
            return NOTHING if extras is None else (Chunk(extras=extras),)
        self._items_with_text.add(index)
        self._text_length += len(text)
        if reasoning:
            reasoning = PART_SEPARATOR + reasoning if self._reasoning_position else reasoning
            self._reasoning_position = (index,)
        logprobs = ContentLogprobs(tuple(parts.logprobs)) if parts.logprobs else None
        if self._held_texts is not None and not words:
            self._held_texts.append(text)
            text = ""
        return (Chunk(text=text, logprobs=logprobs, refusal=words or None, reasoning=reasoning or None, extras=extras),)

    def _ended(self, event: JsonObject) -> Events:
        response = event.get("response")
        if not isinstance(response, dict):
            raise malformed("ends without its response")
        output = response.get("output")
        # ChatGPT's own servers and some gateways send an empty list here, although the items have arrived.
        self._usage = usage = usage_of(response if output else {**response, "output": self._searches})
        check_response(self._profile, response)
        ended: list[StreamEvent] = []
        for index, item in enumerate(output if isinstance(output, list) else ()):
            ended += self._item_done({"item": item, "output_index": index})
        status = response.get("status") or self.kind.rpartition(".")[2]
        finish, native = finish_of({**response, "status": status}, bool(self._calls))
        text = "".join(self._held_texts or ())
        if text and finish == "stop":
            text = unwrap_answer(text)
        tier = tier_of(response)
        ended.append(Chunk(text=text, finish_reason=finish, native_finish_reason=native, service_tier=tier))
        if usage is not None:
            ended.append(usage)
        self.complete = True
        return ended

    def usage_so_far(self) -> Usage | None:
        return self._usage

    def _failed(self, event: JsonObject) -> Events:
        response = event.get("response")
        self._usage = usage_of(response) if isinstance(response, dict) else None
        # Perplexity has the error in the event itself.
        error = (response.get("error") if isinstance(response, dict) else None) or event.get("error")
        raise UpstreamError(failure_of(self._profile, error if isinstance(error, dict) else {}))

    def _error(self, event: JsonObject) -> Events:
        """Read an error, whose fields stand in the event itself or, from some servers, in an object of their own."""
        inner = event.get("error")
        fields = {name: value for name, value in event.items() if name != "type"}
        raise UpstreamError(failure_of(self._profile, inner if isinstance(inner, dict) else fields))


def _index_of(event: JsonObject) -> int:
    return _index_number(event.get("output_index"))


def _index_number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


_EVENTS: Mapping[str, Callable[[ResponsesReader, JsonObject], Events]] = {
    "response.output_text.delta": ResponsesReader._text,
    "response.refusal.delta": ResponsesReader._refusal,
    "response.reasoning_summary_text.delta": ResponsesReader._reasoning,
    "response.reasoning_text.delta": ResponsesReader._reasoning,
    "response.function_call_arguments.delta": ResponsesReader._arguments,
    "response.custom_tool_call_input.delta": ResponsesReader._arguments,
    "response.output_item.added": ResponsesReader._item_added,
    "response.output_item.done": ResponsesReader._item_done,
    "response.completed": ResponsesReader._ended,
    "response.incomplete": ResponsesReader._ended,
    "response.failed": ResponsesReader._failed,
    "response.cancelled": ResponsesReader._failed,
    "error": ResponsesReader._error,
}
