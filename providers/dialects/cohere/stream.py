"""Reads Cohere's stream events and translates them into chunks of the common shape. The event `message-end` completes a
stream.

Sources: `cohere` 7.3.1 type `V2ChatStreamResponse`.
"""

from collections.abc import Callable, Iterable, Mapping

from providers.completion import Chunk, Extras, StreamEvent, TextRun, ToolCallDelta, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.cohere.answer import (
    call_of,
    finish_reason,
    logprobs_of,
    matched_stop,
    only_stop,
    other_response_fields,
    plan_detail,
    reasoning_detail,
    usage_of,
)
from providers.dialects.cohere.citations import citation_extras
from providers.dialects.shared.custom_tools import input_text
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.decode_text_chunks import MarkedEvent
from providers.dialects.shared.errors import failure_in_body
from providers.dialects.shared.read_json import call_id, is_json, malformed, unwrap_answer
from providers.failure import UpstreamError
from providers.framing.text_frames import MARK
from providers.json_types import JsonObject, JsonValue

Events = Iterable[StreamEvent]


class CohereReader:
    """Reader of a stream's events; see providers.dialects.shared.decode_stream.Reader."""

    marks = (b'"text":',)

    __slots__ = (
        "_call_count",
        "_calls",
        "_calls_without_arguments",
        "_custom_arguments",
        "_held_texts",
        "_marked_item",
        "_only_stop",
        "_response_id",
        "_sent",
        "_starts",
        "_text_length",
        "_usage",
        "complete",
    )

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._response_id: JsonValue = None
        self._calls: dict[int, int] = {}
        self._call_count = 0
        self._held_texts: list[str] = []
        self._text_length = 0
        self._marked_item = 0
        self._only_stop = only_stop(sent)
        self._starts: dict[int, int] = {}
        # The arguments of the calls of custom tools, by the call's number. The arguments of a call are returned as one
        # text.
        self._custom_arguments: dict[int, list[str]] = {}
        # The numbers of the function calls that have no arguments so far.
        self._calls_without_arguments: set[int] = set()
        self._usage: Usage | None = None

    def read(self, name: str, payload: bytes) -> Events:
        """Translate one event. Unknown events are ignored, even if they are not JSON."""
        if name and name not in _EVENTS and not is_json(payload):
            return NOTHING
        event = event_object(payload)
        kind = event.get("type", name)
        handle = _EVENTS.get(kind) if isinstance(kind, str) else None
        if handle is not None:
            return handle(self, event)
        if "type" not in event and isinstance(event.get("message"), str):
            # An HTTP error's envelope, sent inside the stream.
            raise UpstreamError(failure_in_body(self._sent.target.profile, event))
        return NOTHING

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        """Return the event with its text replaced by a mark; see
        providers.dialects.shared.decode_text_chunks.TextReader."""
        content = _message(event).get("content")
        if event.get("type") != "content-delta" or not isinstance(content, dict) or self._sent.unwrap_choice:
            return None
        if "logprobs" in event or "thinking" in content:
            return None
        self._marked_item = _index(event)
        message: JsonObject = {**_message(event), "content": {**content, "text": MARK}}
        return MarkedEvent("text", {**event, "delta": {**_delta(event), "message": message}})

    def take(self, run: TextRun) -> bool:
        self._starts.setdefault(self._marked_item, self._text_length)
        self._text_length += run.characters
        return True

    def _message_start(self, event: JsonObject) -> Events:
        self._response_id = event.get("id")
        return NOTHING

    def _content(self, event: JsonObject) -> Events:
        """Read the start or a delta of a content item. Reasoning is in a key of its own."""
        content, index = _message(event).get("content"), _index(event)
        holder = content if isinstance(content, dict) else {}
        text, thought = holder.get("text"), holder.get("thinking")
        entry = event.get("logprobs")
        logprobs = logprobs_of([entry] if isinstance(entry, dict) else entry)
        new_text = text if isinstance(text, str) else ""
        if text and not isinstance(text, str):
            raise malformed("holds a text that is not a string")
        if isinstance(text, str):
            self._starts.setdefault(index, self._text_length)
            self._text_length += len(new_text)
        if self._sent.unwrap_choice:
            self._held_texts.append(new_text)
            new_text = ""
        reasoning = thought if isinstance(thought, str) and thought else None
        if not (new_text or reasoning or logprobs):
            return _unknown_part(holder)
        extras = Extras((reasoning_detail(index, reasoning),)) if reasoning else None
        return (Chunk(text=new_text, reasoning=reasoning, logprobs=logprobs, extras=extras),)

    def _plan_delta(self, event: JsonObject) -> Events:
        plan = _message(event).get("tool_plan")
        if not isinstance(plan, str) or not plan:
            return NOTHING
        return (Chunk(reasoning=plan, extras=Extras((plan_detail(plan),))),)

    def _citation(self, event: JsonObject) -> Events:
        extras = citation_extras(_message(event).get("citations"), self._starts)
        return NOTHING if extras is None else (Chunk(extras=extras),)

    def _call_start(self, event: JsonObject) -> Events:
        """Begin a tool call. The vendor's indices may have gaps; the indices of the common shape have no gaps."""
        number = self._call_count
        call = call_of(self._sent, _message(event).get("tool_calls"), call_id(self._response_id, 0, number))
        index = event.get("index")
        key = index if isinstance(index, int) else number
        if key in self._calls:
            raise malformed("begins a tool call within another")
        self._calls[key] = number
        self._call_count += 1
        if call.name in self._sent.custom_tools:
            self._custom_arguments[number] = [call.arguments]
            return (Chunk(tool_calls=(ToolCallDelta(number, call.id, call.name, kind="custom"),)),)
        if not call.arguments:
            self._calls_without_arguments.add(number)
        return (Chunk(tool_calls=(ToolCallDelta(number, call.id, call.name, call.arguments),)),)

    def _call_delta(self, event: JsonObject) -> Events:
        index = event.get("index")
        number = self._calls.get(index) if isinstance(index, int) else None
        match _message(event).get("tool_calls"):
            case {"function": {"arguments": str(delta)}} if delta:
                if number is None:
                    raise malformed("holds arguments of a call that has not begun, or has ended")
                if number in self._custom_arguments:
                    self._custom_arguments[number].append(delta)
                    return NOTHING
                self._calls_without_arguments.discard(number)
                return (Chunk(tool_calls=(ToolCallDelta(number, arguments=delta),)),)
            case _:
                return NOTHING

    def _call_end(self, event: JsonObject) -> Events:
        index = event.get("index")
        number = self._calls.pop(index, None) if isinstance(index, int) else None
        return NOTHING if number is None else self._rest_of(number)

    def _rest_of(self, number: int) -> Events:
        """Return the chunks at the end of a call.

        The text of a custom tool's call can only be read when the arguments are complete. A function call without
        arguments gets an empty object.
        """
        if number in self._calls_without_arguments:
            self._calls_without_arguments.remove(number)
            return (Chunk(tool_calls=(ToolCallDelta(number, arguments="{}"),)),)
        deltas = self._custom_arguments.pop(number, None)
        if deltas is None:
            return NOTHING
        text = input_text("".join(deltas))
        return (Chunk(tool_calls=(ToolCallDelta(number, arguments=text, kind="custom"),)),)

    def _message_end(self, event: JsonObject) -> Events:
        delta = _delta(event)
        self._usage = usage = usage_of(delta.get("usage"))
        finish, native = finish_reason(delta.get("finish_reason"), delta.get("error"))
        text = "".join(self._held_texts)
        if self._sent.unwrap_choice and finish == "stop":
            text = unwrap_answer(text)
        self.complete = True
        matched = matched_stop(self._only_stop, delta.get("finish_reason"))
        other = other_response_fields(delta)
        end = Chunk(
            text=text,
            finish_reason=finish,
            native_finish_reason=native,
            matched_stop=matched,
            extras=Extras(answer=other) if other else None,
        )
        unended = [
            chunk
            for number in sorted({*self._custom_arguments, *self._calls_without_arguments})
            for chunk in self._rest_of(number)
        ]
        return (*unended, end) if usage is None else (*unended, end, usage)

    def usage_so_far(self) -> Usage | None:
        return self._usage


def _delta(event: JsonObject) -> JsonObject:
    delta = event.get("delta")
    return delta if isinstance(delta, dict) else {}


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


def _unknown_part(part: JsonObject) -> Events:
    """Return a content item of an unknown type unchanged."""
    if part.get("type") in (None, "text", "thinking"):
        return NOTHING
    return (Chunk(extras=Extras(message={"content_blocks": [part]})),)


def _message(event: JsonObject) -> JsonObject:
    message = _delta(event).get("message")
    return message if isinstance(message, dict) else {}


_EVENTS: Mapping[str, Callable[[CohereReader, JsonObject], Events]] = {
    "message-start": CohereReader._message_start,
    "content-start": CohereReader._content,
    "content-delta": CohereReader._content,
    "tool-plan-delta": CohereReader._plan_delta,
    "tool-call-start": CohereReader._call_start,
    "tool-call-delta": CohereReader._call_delta,
    "tool-call-end": CohereReader._call_end,
    "citation-start": CohereReader._citation,
    "message-end": CohereReader._message_end,
}
