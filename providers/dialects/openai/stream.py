"""Streamed answers of the OpenAI family, completions and chat, as chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import orjson

from providers.completion import Chunk, Completion, Extras, StreamEvent, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.openai.answer import (
    READ_IN_CALL,
    called_in,
    calls_in,
    decode_object,
    shown_id,
    signature_of,
    signs,
)
from providers.dialects.openai.cited_marks import MarkFinder, Source, sources_of
from providers.dialects.openai.read import (
    content_of,
    finish_reason,
    lift_members,
    matched_stop,
    message_of,
    native_finish_reason,
    only_text_of,
    reasoning_of,
    usage_of,
)
from providers.dialects.openai.read_extras import (
    KNOWN_IN_EVENT,
    PLAIN_IN_EVENT,
    ends_block,
    extras_of,
    repeated_in,
    unknown_in,
)
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.read_json import (
    call_id,
    index_of,
    is_json,
    json_object,
    load_json,
    malformed,
    parse_answer,
    unwrap_answer,
)
from providers.dialects.shared.read_logprobs import logprobs_of
from providers.dialects.shared.stream_reader import cut
from providers.emulation.collect_stream import Gatherer, to_chunks
from providers.failure import Failure, FailureKind, UpstreamError
from providers.framing.parse_sse import DataLines, EventTooLarge, SSEParser
from providers.json_types import JsonObject, JsonValue

MAX_BODY = 32 * 1024 * 1024
"""Bytes at most of a body that is JSON although the request was for a stream."""


@dataclass(slots=True)
class _ToolCallState:
    """A tool call in progress: its dense number and the vendor's id, empty where there is none."""

    number: int
    identity: str


@dataclass(slots=True)
class _ChoiceState:
    """State of one choice: `held` is text kept for its end, `count` the number of its tool calls, `calls` the latest
    call of each of the vendor's indices, `written` the length of its text, `blocks` the number of its complete blocks
    of thinking, `marks` what finds citations in its text."""

    index: int
    finished: bool = False
    refused: bool = False
    written: int = 0
    blocks: int = 0
    marks: MarkFinder | None = None
    held: list[str] = field(default_factory=list)
    count: int = 0
    calls: dict[int, _ToolCallState] = field(default_factory=dict)


class OpenAIStream:
    """See providers.dialect.StreamDecoder.

    The stream is complete at `[DONE]`, or at the end of the body when every choice has its finish reason: Perplexity,
    TGI and others leave the terminator out. The class is its own reader, for the cost of each chunk.
    """

    __slots__ = (
        "_answer",
        "_body",
        "_choices",
        "_done",
        "_lifting",
        "_own",
        "_scans",
        "_sent",
        "_signs",
        "_sources",
        "_sse",
        "_started",
        "_tier",
    )

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        profile = sent.target.profile
        self._sse = DataLines() if profile.line_frames else SSEParser()
        self._lifting = profile if profile.own_member is not None or profile.usage_in_choices else None
        self._choices: dict[int, _ChoiceState] = {}
        self._answer: JsonValue = None
        self._body: bytearray | None = None
        self._started = False
        self._tier: JsonValue = None
        self._signs = signs(sent)
        self._own: JsonObject = {}
        self._sources: Sequence[Source] = ()
        # Text is read further than to be passed on.
        self._scans = sent.unwrap_choice
        self._done = False

    @property
    def complete(self) -> bool:
        """See StreamDecoder."""
        return self._done

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if not self._started:
            data = data.lstrip()
            if not data:
                return
            self._started = True
            if data[:1] in (b"{", b"["):
                self._body = bytearray()
        if self._body is not None:
            self._body += data
            if len(self._body) > MAX_BODY:
                raise malformed("is too large")
            return
        try:
            for _, frame in self._sse.feed(data):
                body = self._event(frame)
                chunk = self._plain(body)
                if chunk is None:
                    yield from self._pieces(body)
                else:
                    yield chunk
        except EventTooLarge:
            raise malformed("has an event that is too large") from None

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if self._body is not None:
            yield from self._whole(bytes(self._body))
            return
        for _, frame in self._sse.finish():
            yield from self._last_frame(frame)
        if not self._done and not self._all_finished():
            raise cut()
        self._done = True

    def _all_finished(self) -> bool:
        return bool(self._choices) and all(state.finished for state in self._choices.values())

    def _last_frame(self, frame: bytes) -> Iterator[StreamEvent]:
        """Read a frame without its blank line if it is whole; skip one that the end cut off."""
        if frame == b"[DONE]" or is_json(frame):
            yield from self.read(frame)

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Translate one event's data, of whatever framing; nothing after the end. Raises UpstreamError."""
        return self._pieces(self._event(frame))

    def _plain(self, body: JsonObject) -> Chunk | None:
        """Return the chunk of an event that holds text of one choice alone, as nearly all do; None for the others."""
        choices = body.get("choices")
        if type(choices) is not list or len(choices) != 1 or not PLAIN_IN_EVENT.issuperset(body):
            return None
        raw = choices[0]
        if self._scans or type(raw) is not dict or body.get("usage") is not None:
            return None
        text, index = only_text_of(raw), raw.get("index")
        state = self._choices.get(index) if text and type(index) is int else None
        if state is None or state.finished:
            return None
        state.written += len(text)
        if "service_tier" in body:
            self._tier = body["service_tier"] or self._tier
        fingerprint = body.get("system_fingerprint")
        return Chunk(index, text, system_fingerprint=fingerprint if type(fingerprint) is str else None)

    def _pieces(self, body: JsonObject) -> Iterator[StreamEvent]:
        choices = body.get("choices")
        if "error" in body or not choices:
            self._check_error(body)
        own = None if KNOWN_IN_EVENT.issuperset(body) else self._own_members(body)
        if choices:
            if not isinstance(choices, list):
                raise malformed("has choices that are not a list")
            self._answer = body.get("id")
            self._tier = body.get("service_tier") or self._tier
            for raw in choices:
                chunk = self._chunk(raw, body)
                if chunk is not None:
                    if own is not None:
                        chunk, own = _with_members(chunk, own), None
                    yield chunk
        if own is not None:
            yield Chunk(extras=Extras(answer=own))
        if body.get("usage") is not None:
            usage = usage_of(body)
            if usage is not None:
                yield usage

    def _event(self, frame: bytes) -> JsonObject:
        """Parse a frame's object; empty for the `null` that begins some streams of llama.cpp, and for the terminator
        and what follows it. Raises UpstreamError for a terminator before the end."""
        if self._done or not frame:
            return {}
        try:
            body = load_json(frame)
        except orjson.JSONDecodeError:
            if frame.startswith(b"[DONE]"):
                if not self._all_finished():
                    raise cut() from None
                self._done = True
                return {}
            body = parse_answer(frame, "has an event that is not valid JSON")
        if body is None:
            return {}
        if not isinstance(body, dict):
            raise malformed("has an event that is not a JSON object")
        return body if self._lifting is None else lift_members(self._lifting, body)

    def _check_error(self, body: JsonObject) -> None:
        """Raise UpstreamError for an event that is an error."""
        if is_error(body):
            raise UpstreamError(failure_in_body(self._sent.target.profile, body))

    def _own_members(self, body: JsonObject) -> JsonObject | None:
        """Return the vendor's own members of an event that differ from those of the event before: Perplexity repeats
        its sources in each."""
        own = unknown_in(body, KNOWN_IN_EVENT)
        if own is None:
            return None
        before, self._own = self._own, own
        if fresh := {name: value for name, value in own.items() if before.get(name) != value}:
            self._sources = sources_of(fresh) or self._sources
            self._scans = self._scans or bool(self._sources)
        return fresh or None

    def _chunk(self, raw: JsonValue, body: JsonObject) -> Chunk | None:
        """Return what an event adds to one choice; None for nothing (a role, what follows the end)."""
        if not isinstance(raw, dict):
            raise malformed("has a choice that is not an object")
        index = raw.get("index")
        if type(index) is not int:
            index = index_of(raw, 0)
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _ChoiceState(index)
        fingerprint = body.get("system_fingerprint")
        fingerprint = fingerprint if isinstance(fingerprint, str) else None
        if (text := only_text_of(raw)) and not (state.finished or self._scans):
            state.written += len(text)
            return Chunk(index, text, system_fingerprint=fingerprint)
        message = message_of(raw)
        extras = extras_of(raw, message, state.written, state.blocks, self._signs)
        if extras is not None:
            state.blocks += sum(map(ends_block, extras.reasoning_details))
        if state.finished:
            return None if extras is None else Chunk(index, extras=extras)
        return self._full(state, raw, message, extras, body, fingerprint)

    def _full(
        self,
        state: _ChoiceState,
        raw: JsonObject,
        message: JsonObject,
        extras: Extras | None,
        body: JsonObject,
        fingerprint: str | None,
    ) -> Chunk | None:
        refusal = message.get("refusal")
        if not isinstance(refusal, str) or not refusal:
            refusal = None
        state.refused = state.refused or refusal is not None
        text = content_of(raw, message)
        calls = tuple([self._call(state, entry, position) for position, entry in enumerate(calls_in(message))])
        reason, native = finish_reason(raw.get("finish_reason"), state.count > 0)
        if text and reason is not None:
            self._check_text(text)
        logprobs = logprobs_of(raw.get("logprobs"), text)
        if self._sent.unwrap_choice:
            text = _held(state, text, reason)
        if self._sources:
            extras = self._cited(state, extras, text, reason is not None)
        if reason is not None and (repeated := repeated_in(body)):
            extras = replace(extras or Extras(), answer=repeated)
        reasoning, signature = reasoning_of(message), signature_of(self._sent, message)
        if not (text or reason or refusal or reasoning or calls or logprobs or signature or extras):
            return None
        state.written += len(text)
        state.finished = reason is not None
        return Chunk(
            index=state.index,
            text=text or refusal or "",
            finish_reason=reason,
            native_finish_reason=native_finish_reason(raw, reason, native) if reason else None,
            logprobs=logprobs,
            refusal=refusal,
            reasoning=reasoning,
            tool_calls=calls,
            matched_stop=matched_stop(raw) if reason else None,
            system_fingerprint=fingerprint,
            signature=signature,
            service_tier=self._tier if reason and isinstance(self._tier, str) else None,
            extras=extras,
        )

    def _cited(self, state: _ChoiceState, extras: Extras | None, text: str, last: bool) -> Extras | None:
        """Return the extras with citations for the marks in the text, where the sources came before it."""
        if state.marks is None:
            if state.written:
                return extras
            state.marks = MarkFinder()
        found = state.marks.cite(text, self._sources, last)
        return replace(extras or Extras(), annotations=found) if found else extras

    def _check_text(self, text: str) -> None:
        """Raise UpstreamError for a text that is an error; LocalAI sends one in a frame with the finish reason."""
        pattern = self._sent.target.profile.error_text
        if pattern is not None and pattern.search(text):
            raise UpstreamError(
                Failure(FailureKind.NONCONFORMING, "The upstream wrote an error in the answer's place.")
            )

    def _call(self, state: _ChoiceState, entry: JsonValue, position: int) -> ToolCallDelta:
        """Return one piece of a call.

        A call begins with a new index, or with a name and another id at a known one, or with a name where neither has
        an id: the indices of some vendors are all 0 (Gemini's whole calls), and old vLLM gives every piece an id of its
        own. A missing index is the position in the list.
        """
        kind, called, arguments = called_in(entry)
        if not isinstance(entry, dict):
            raise malformed("has a tool call that is not an object")
        given, identity, name = entry.get("index"), entry.get("id"), called.get("name")
        native = given if isinstance(given, int) else position
        identity = identity if isinstance(identity, str) else ""
        call = state.calls.get(native)
        if call is not None and (not name or (identity == call.identity if identity else call.identity != "")):
            extra = unknown_in(entry, READ_IN_CALL)
            return ToolCallDelta(call.number, arguments=arguments, kind=kind, extra=extra)
        if not isinstance(name, str) or not name:
            raise malformed("has a tool call without a function's name")
        call = state.calls[native] = _ToolCallState(state.count, identity)
        shown = shown_id(self._sent, entry, identity or self._made_id(state))
        state.count += 1
        shown_name = self._sent.tool_names.get(name, name)
        return ToolCallDelta(call.number, shown, shown_name, arguments, kind, unknown_in(entry, READ_IN_CALL))

    def _made_id(self, state: _ChoiceState) -> str:
        return call_id(self._answer, state.index, state.count)

    def _whole(self, data: bytes) -> Iterator[StreamEvent]:
        """Decode a whole body in place of a stream, one chunk a choice; one that is no JSON was cut off."""
        if not is_json(data):
            raise cut()
        yield from to_chunks(decode_object(self._sent, json_object(data)))
        self._done = True


def is_stream(body: bytes) -> bool:
    """Return whether a body is a stream of events although the request was for a whole answer."""
    return body[:64].lstrip().startswith((b"data:", b"event:", b":"))


def decode_stream(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode the whole answer of a stream. Raises UpstreamError."""
    decoder = OpenAIStream(sent)
    events = [*decoder.feed(body), *decoder.finish()]
    gatherer = Gatherer(len({event.index for event in events if isinstance(event, Chunk)}))
    for event in events:
        gatherer.add(event)
    try:
        return gatherer.completion()
    except ValueError:
        raise malformed("has choices whose numbers leave a gap") from None


def _with_members(chunk: Chunk, own: JsonObject) -> Chunk:
    """Return the first chunk of an event with the vendor's own members of the event."""
    extras = chunk.extras or Extras()
    return replace(chunk, extras=replace(extras, answer={**own, **(extras.answer or {})}))


def _held(state: _ChoiceState, text: str, reason: str | None) -> str:
    """Hold a choice inside a JSON object back until its end, then return the bare choice; a text that was cut off or
    refused is returned as it is."""
    state.held.append(text)
    if reason is None:
        return ""
    whole = "".join(state.held)
    return unwrap_answer(whole) if reason == "stop" and not state.refused else whole
