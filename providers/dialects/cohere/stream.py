"""Cohere's event stream to chunks of the common shape. A stream is complete with `message-end`.

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
    own_members,
    plan_detail,
    thought_detail,
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
    """See providers.dialects.shared.decode_stream.Reader."""

    marks = (b'"text":',)

    __slots__ = (
        "_answer",
        "_bare",
        "_calls",
        "_count",
        "_held",
        "_led",
        "_said",
        "_sent",
        "_starts",
        "_stop",
        "_texts",
        "_usage",
        "complete",
    )

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._answer: JsonValue = None
        self._calls: dict[int, int] = {}
        self._count = 0
        self._held: list[str] = []
        self._said = 0
        self._led = 0
        self._stop = only_stop(sent)
        self._starts: dict[int, int] = {}
        # The names and pieces of arguments of custom tools' calls, by the vendor's index: shown as one text.
        self._texts: dict[int, list[str]] = {}
        # The numbers of the calls of functions that have no arguments so far.
        self._bare: set[int] = set()
        self._usage: Usage | None = None

    def read(self, name: str, payload: bytes) -> Events:
        """See Reader. Unknown events are ignored, even if they are no JSON."""
        if name and name not in _EVENTS and not is_json(payload):
            return NOTHING
        event = event_object(payload)
        kind = event.get("type", name)
        handle = _EVENTS.get(kind) if isinstance(kind, str) else None
        if handle is not None:
            return handle(self, event)
        if "type" not in event and isinstance(event.get("message"), str):
            # The envelope of an HTTP error inside a stream.
            raise UpstreamError(failure_in_body(self._sent.target.profile, event))
        return NOTHING

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        """See providers.dialects.shared.decode_text_chunks.TextReader."""
        content = _message(event).get("content")
        if event.get("type") != "content-delta" or not isinstance(content, dict) or self._sent.unwrap_choice:
            return None
        if "logprobs" in event or "thinking" in content:
            return None
        self._led = _index(event)
        message: JsonObject = {**_message(event), "content": {**content, "text": MARK}}
        return MarkedEvent("text", {**event, "delta": {**_delta(event), "message": message}})

    def take(self, run: TextRun) -> bool:
        """See TextReader."""
        self._starts.setdefault(self._led, self._said)
        self._said += run.characters
        return True

    def _message_start(self, event: JsonObject) -> Events:
        self._answer = event.get("id")
        return NOTHING

    def _content(self, event: JsonObject) -> Events:
        """Read the begin or a delta of a content part; thinking has a key of its own."""
        content, index = _message(event).get("content"), _index(event)
        holder = content if isinstance(content, dict) else {}
        text, thought = holder.get("text"), holder.get("thinking")
        entry = event.get("logprobs")
        logprobs = logprobs_of([entry] if isinstance(entry, dict) else entry)
        shown = text if isinstance(text, str) else ""
        if text and not isinstance(text, str):
            raise malformed("holds a text that is none")
        if isinstance(text, str):
            self._starts.setdefault(index, self._said)
            self._said += len(shown)
        if self._sent.unwrap_choice:
            self._held.append(shown)
            shown = ""
        reasoning = thought if isinstance(thought, str) and thought else None
        if not (shown or reasoning or logprobs):
            return _unknown_part(holder)
        extras = Extras((thought_detail(index, reasoning),)) if reasoning else None
        return (Chunk(text=shown, reasoning=reasoning, logprobs=logprobs, extras=extras),)

    def _plan(self, event: JsonObject) -> Events:
        plan = _message(event).get("tool_plan")
        if not isinstance(plan, str) or not plan:
            return NOTHING
        return (Chunk(reasoning=plan, extras=Extras((plan_detail(plan),))),)

    def _citation(self, event: JsonObject) -> Events:
        extras = citation_extras(_message(event).get("citations"), self._starts)
        return NOTHING if extras is None else (Chunk(extras=extras),)

    def _call_start(self, event: JsonObject) -> Events:
        """Begin a call. The vendor's indices may have gaps; those of the common shape have none."""
        number = self._count
        call = call_of(self._sent, _message(event).get("tool_calls"), call_id(self._answer, 0, number))
        index = event.get("index")
        key = index if isinstance(index, int) else number
        if key in self._calls:
            raise malformed("begins a tool call within another")
        self._calls[key] = number
        self._count += 1
        if call.name in self._sent.custom_tools:
            self._texts[number] = [call.arguments]
            return (Chunk(tool_calls=(ToolCallDelta(number, call.id, call.name, kind="custom"),)),)
        if not call.arguments:
            self._bare.add(number)
        return (Chunk(tool_calls=(ToolCallDelta(number, call.id, call.name, call.arguments),)),)

    def _call_delta(self, event: JsonObject) -> Events:
        index = event.get("index")
        number = self._calls.get(index) if isinstance(index, int) else None
        match _message(event).get("tool_calls"):
            case {"function": {"arguments": str(piece)}} if piece:
                if number is None:
                    raise malformed("holds arguments of a call that has not begun, or has ended")
                if number in self._texts:
                    self._texts[number].append(piece)
                    return NOTHING
                self._bare.discard(number)
                return (Chunk(tool_calls=(ToolCallDelta(number, arguments=piece),)),)
            case _:
                return NOTHING

    def _call_end(self, event: JsonObject) -> Events:
        """See `_rest_of`."""
        index = event.get("index")
        number = self._calls.pop(index, None) if isinstance(index, int) else None
        return NOTHING if number is None else self._rest_of(number)

    def _rest_of(self, number: int) -> Events:
        """Return the chunks at the end of a call: the text of a custom tool's call, which is known only when its
        arguments are complete, and an empty object as the arguments of a function's call that had none."""
        if number in self._bare:
            self._bare.remove(number)
            return (Chunk(tool_calls=(ToolCallDelta(number, arguments="{}"),)),)
        pieces = self._texts.pop(number, None)
        if pieces is None:
            return NOTHING
        text = input_text("".join(pieces))
        return (Chunk(tool_calls=(ToolCallDelta(number, arguments=text, kind="custom"),)),)

    def _message_end(self, event: JsonObject) -> Events:
        delta = _delta(event)
        self._usage = usage = usage_of(delta.get("usage"))
        finish, native = finish_reason(delta.get("finish_reason"), delta.get("error"))
        text = "".join(self._held)
        if self._sent.unwrap_choice and finish == "stop":
            text = unwrap_answer(text)
        self.complete = True
        matched = matched_stop(self._stop, delta.get("finish_reason"))
        own = own_members(delta)
        end = Chunk(
            text=text,
            finish_reason=finish,
            native_finish_reason=native,
            matched_stop=matched,
            extras=Extras(answer=own) if own else None,
        )
        unended = [chunk for number in sorted({*self._texts, *self._bare}) for chunk in self._rest_of(number)]
        return (*unended, end) if usage is None else (*unended, end, usage)

    def usage_so_far(self) -> Usage | None:
        """See UsageReporter."""
        return self._usage


def _delta(event: JsonObject) -> JsonObject:
    delta = event.get("delta")
    return delta if isinstance(delta, dict) else {}


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


def _unknown_part(part: JsonObject) -> Events:
    """Pass on a part of the content of a type that has no common form."""
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
    "tool-plan-delta": CohereReader._plan,
    "tool-call-start": CohereReader._call_start,
    "tool-call-delta": CohereReader._call_delta,
    "tool-call-end": CohereReader._call_end,
    "citation-start": CohereReader._citation,
    "message-end": CohereReader._message_end,
}
