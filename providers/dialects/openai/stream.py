"""Decodes streamed responses of the OpenAI family, completions and chat, into chunks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import orjson

from providers.completion import Chunk, Extras, StreamEvent, TextRun
from providers.dialect import RunDecoder, UpstreamRequest
from providers.dialects.openai.answer import calls_in, decode_object, signature_of, signs
from providers.dialects.openai.cited_marks import Source, sources_of
from providers.dialects.openai.read import (
    content_of,
    finish_reason,
    lift_fields,
    matched_stop,
    message_of,
    native_finish_reason,
    only_end_of,
    only_text_of,
    reasoning_of,
    usage_of,
)
from providers.dialects.openai.read_extras import (
    KNOWN_IN_EVENT,
    PLAIN_IN_EVENT,
    ends_block,
    extras_of,
    has_only_vendor_fields,
    repeated_in,
    with_vendor_fields,
)
from providers.dialects.openai.streamed_calls import (
    StreamedChoice,
    adds_content,
    check_text,
    ends_of_calls,
    may_end,
    state_of_choice,
)
from providers.dialects.openai.text_runs import MAX_RUN_BYTES, SharedFields, TextRuns
from providers.dialects.shared.decode_stream import CharacterJoiner, cut
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.read_json import (
    SplitCharacter,
    is_json,
    json_object,
    load_json,
    malformed,
    parse_event,
    unknown_in,
)
from providers.dialects.shared.read_logprobs import logprobs_of
from providers.emulation.collect_stream import to_chunks
from providers.emulation.merge_choices import require_choices
from providers.failure import UpstreamError
from providers.framing.parse_sse import DataLines, EventTooLarge, SSEParser
from providers.framing.text_frames import Around
from providers.json_types import JsonObject, JsonValue

MAX_BODY = 32 * 1024 * 1024
"""The most bytes of a body that is JSON although the request was for a stream."""

_MOST_WAITING = 4
"""The most chunks that wait for the first content of a stream."""

_MOST_STORED = 256 * 1024
"""The most bytes of an event whose vendor fields are stored, to compare them with the next event's."""


class OpenAIStream(RunDecoder):
    """The `RunDecoder` of the OpenAI family's streams.

    The stream is complete at `[DONE]`, or at the end of the body if every choice has its finish reason: Perplexity, TGI
    and others leave out the terminator. The class is its own reader, which saves time per chunk.
    """

    __slots__ = (
        *("_answer", "_body", "_characters", "_choices", "_done", "_lifting", "_vendor_fields", "_runs"),
        *("_same", "_sent", "_signs", "_slow", "_sources", "_sse", "_started", "_tier", "_waiting"),
    )

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        profile = sent.target.profile
        self._sse = DataLines() if profile.line_frames else SSEParser()
        self._lifting = profile if profile.own_member is not None or profile.usage_in_choices else None
        self._choices: dict[int, StreamedChoice] = {}
        self._answer: JsonValue = None
        self._body: bytearray | None = None
        self._characters: CharacterJoiner | None = None
        self._started = False
        self._tier: JsonValue = None
        self._signs = signs(sent)
        self._vendor_fields: JsonObject = {}
        self._sources: Sequence[Source] = ()
        self._waiting: list[Chunk] | None = []
        self._runs = TextRuns(self._sse, self._choices)
        # The shared fields of the last run, if nothing else has arrived since: the next run is then read without
        # further checks.
        self._same: SharedFields | None = None
        # Whether an event may need more work than being passed on.
        self._slow = sent.unwrap_choice
        self._done = False

    @property
    def complete(self) -> bool:
        return self._done

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        self._same = None
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
            for name, frame in self._sse.feed(data):
                body = self._event(frame, name)
                chunk = self._plain_chunk(body, len(frame))
                yield from self._translate(body, len(frame)) if chunk is None else (chunk,)
                if self._waiting is None and not self._slow and (chunk is None or chunk.finish_reason is None):
                    self._runs.note(frame, body)
        except EventTooLarge:
            raise malformed("has an event that is too large") from None

    def read_run(self, data: bytes) -> tuple[TextRun, bytes] | None:
        same = self._same
        if same is not None:
            literals, end = same.form.read(data)
            if end == len(data) <= MAX_RUN_BYTES:
                run = same.run(literals)
                if run is not None:
                    same.choice.written += run.characters
                    return run, b""
        if not self._runs.ready or self._slow or self._done or (found := self._runs.read_run(data)) is None:
            return None
        run, rest, self._same = found
        self._same.choice.written += run.characters
        self._tier = self._same.tier or self._tier
        return run, rest

    def run_frame(self) -> Around | None:
        return None if self._same is None else self._same.form.around

    def note_run(self, characters: int) -> None:
        if self._same is not None:
            self._same.choice.written += characters

    def finish(self) -> Iterator[StreamEvent]:
        if self._body is not None:
            yield from self._decode_body(bytes(self._body))
            return
        for _, frame in self._sse.finish():
            if frame == b"[DONE]" or is_json(frame):  # complete except for its blank line; otherwise the end cut it off
                yield from self.read(frame)
        if not self._done and not self._all_finished():
            raise cut()
        self._done = True

    def _all_finished(self) -> bool:
        return bool(self._choices) and all(state.finished for state in self._choices.values())

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Translate the data of one event, in any framing. Yields nothing after the end. Raises UpstreamError."""
        return self._translate(self._event(frame), len(frame))

    def _plain_chunk(self, body: JsonObject, size: int) -> Chunk | None:
        """Return the chunk of an event of `size` bytes that holds only text of one choice, as nearly all events do, or
        only the end of one choice; otherwise `None`."""
        choices = body.get("choices")
        if type(choices) is not list or len(choices) != 1:
            return None
        if not (PLAIN_IN_EVENT.issuperset(body) or self._repeats_own(body, size)):
            return None
        raw = choices[0]
        if self._slow or type(raw) is not dict or body.get("usage") is not None:
            return None
        index = raw.get("index")
        state = self._choices.get(index) if type(index) is int else None
        if state is None or state.finished:
            return None
        text = only_text_of(raw)
        if not text:
            return self._plain_end(state, raw, body)
        self._waiting = None
        state.written += len(text)
        if "service_tier" in body:
            self._tier = body["service_tier"] or self._tier
        fingerprint = body.get("system_fingerprint")
        return Chunk(state.index, text, system_fingerprint=fingerprint if type(fingerprint) is str else None)

    def _plain_end(self, state: StreamedChoice, raw: JsonObject, body: JsonObject) -> Chunk | None:
        """Return the chunk of an event that ends a choice in the most common form; otherwise `None`. This method takes
        4 us less than `_translate`."""
        reason = only_end_of(raw)
        if not reason or self._waiting is not None or state.calls.count or repeated_in(body):
            return None
        state.finished = True
        if len(self._choices) == 1:
            self._runs.ready = False  # until an event has text of another choice
        self._answer, self._tier = body.get("id"), body.get("service_tier") or self._tier
        fingerprint, tier = body.get("system_fingerprint"), self._tier if type(self._tier) is str else None
        fingerprint = fingerprint if type(fingerprint) is str else None
        return Chunk(state.index, finish_reason=reason, system_fingerprint=fingerprint, service_tier=tier)

    def _translate(self, body: JsonObject, size: int) -> Iterator[StreamEvent]:
        """Yield the events in the common form for a vendor's event of `size` bytes."""
        choices = body.get("choices")
        if "error" in body or not choices:
            if "error" in body and (usage := usage_of(body, self._tier)) is not None:
                yield usage
            yield from self._last_chunks(body)
        own = None if KNOWN_IN_EVENT.issuperset(body) else self._new_vendor_fields(body, size)
        if choices:
            if not isinstance(choices, list):
                raise malformed("has choices that are not a list")
            self._answer = body.get("id")
            self._tier = body.get("service_tier") or self._tier
            for raw in choices:
                chunk = self._chunk(raw, body)
                if chunk is not None:
                    if own is not None:
                        chunk, own = with_vendor_fields(chunk, own), None
                    yield from (chunk,) if self._waiting is None else self._begin(chunk, self._waiting, size)
        if own is not None:
            chunk = Chunk(extras=Extras(answer=own))
            yield from (chunk,) if self._waiting is None else self._begin(chunk, self._waiting, size)
        if body.get("usage") is not None and (usage := usage_of(body, self._tier)) is not None:
            yield usage

    def _event(self, frame: bytes, name: str = "") -> JsonObject:
        """Return the JSON object of a frame. The object is empty for the `null` that begins some streams of llama.cpp,
        for the terminator, and for everything after it. Raises UpstreamError for a terminator before the end, and for
        an event named `error`."""
        if self._done or not frame:
            return {}
        if frame.startswith(b"[DONE]"):
            if not may_end(self._choices.values()):
                raise cut()
            self._done = True
            return {}
        try:
            body = load_json(frame) if self._characters is None else self._characters.parse(frame)
        except orjson.JSONDecodeError:
            body = self._parse_leniently(frame)
        if body is None:
            return {}
        if not isinstance(body, dict):
            raise malformed("has an event that is not a JSON object")
        if name == "error" and not body.get("choices"):
            raise UpstreamError(failure_in_body(self._sent.target.profile, {"error": body, **body}))
        return body if self._lifting is None else lift_fields(self._lifting, body)

    def _parse_leniently(self, frame: bytes) -> JsonValue:
        """Parse an event that is not valid JSON, such as one with a split character. Raises UpstreamError."""
        try:
            return parse_event(frame)
        except SplitCharacter:
            self._characters = CharacterJoiner()
            self._slow = True
            self._runs.stop()
            return self._characters.parse(frame)
        except orjson.JSONDecodeError:
            raise malformed("has an event that is not valid JSON") from None

    def _begin(self, chunk: Chunk, waiting: list[Chunk], size: int) -> Iterator[Chunk]:
        """Yield a chunk of a stream that has not begun. The first chunk commits the gateway to the vendor. Therefore
        chunks with only the vendor's own fields (Groq's `x_groq`, Azure's filter of the prompt) wait for content."""
        if size <= _MOST_STORED and len(waiting) < _MOST_WAITING and has_only_vendor_fields(chunk):
            waiting.append(chunk)
            self._slow = True
            return
        self._waiting = None
        self._slow = self._sent.unwrap_choice or bool(self._sources) or self._characters is not None
        yield from waiting
        yield chunk

    def _last_chunks(self, body: JsonObject) -> Iterable[Chunk]:
        """Return the last chunks of the choices that the terminator ends. Raises UpstreamError if the event is an
        error."""
        if is_error(body):
            raise UpstreamError(failure_in_body(self._sent.target.profile, body))
        return ends_of_calls(self._choices.values()) if self._done else ()

    def _repeats_own(self, body: JsonObject, size: int) -> bool:
        """Return whether all of the vendor's own fields in an event were in the previous event."""
        if "error" in body or size > _MOST_STORED:
            return False
        return unknown_in(body, KNOWN_IN_EVENT) in (None, self._vendor_fields)

    def _new_vendor_fields(self, body: JsonObject, size: int) -> JsonObject | None:
        """Return the vendor's own fields of an event that differ from the previous event. Perplexity repeats its
        sources in each event."""
        own = unknown_in(body, KNOWN_IN_EVENT)
        if own is None:
            return None
        before, self._vendor_fields = self._vendor_fields, own if size <= _MOST_STORED else {}
        if self._vendor_fields != before:
            self._runs.forget()
        if new_fields := {name: value for name, value in own.items() if before.get(name) != value}:
            self._sources = sources_of(new_fields) or self._sources
            self._slow = self._slow or bool(self._sources)
        return new_fields or None

    def _chunk(self, raw: JsonValue, body: JsonObject) -> Chunk | None:
        """Return the chunk that an event adds to one choice; `None` if it adds nothing (a role, or anything after the
        end)."""
        if not isinstance(raw, dict):
            raise malformed("has a choice that is not an object")
        index = raw.get("index")
        state = self._choices.get(index) if type(index) is int else None
        if state is None and (state := state_of_choice(raw, self._choices, self._sent)) is None:
            return None
        fingerprint = body.get("system_fingerprint")
        fingerprint = fingerprint if isinstance(fingerprint, str) else None
        if (text := only_text_of(raw)) and not (state.finished or self._sources or self._sent.unwrap_choice):
            state.written += len(text)
            return Chunk(state.index, text, system_fingerprint=fingerprint)
        message = message_of(raw)
        extras = extras_of(raw, message, state.written, state.blocks, self._signs)
        if extras is not None:
            state.blocks += sum(map(ends_block, extras.reasoning_details))
        if state.finished:
            if adds_content(raw):
                raise malformed("goes on after the end of a choice")
            return None if extras is None else Chunk(state.index, extras=extras)
        return self._full_chunk(state, raw, message, extras, body, fingerprint)

    def _full_chunk(
        self,
        state: StreamedChoice,
        raw: JsonObject,
        message: JsonObject,
        extras: Extras | None,
        body: JsonObject,
        fingerprint: str | None,
    ) -> Chunk | None:
        refusal_value = message.get("refusal")
        refusal = refusal_value if isinstance(refusal_value, str) and refusal_value else None
        state.refused = state.refused or refusal is not None
        text = content_of(raw, message)
        if state.written == len(text) > 0 and raw.get("finish_reason") and message is raw.get("message"):
            text, message = "", {}  # some vendors repeat the complete message at the end: its text has been passed on
        calls = state.calls.read(calls_in(message), self._answer)
        reasoning, signature = reasoning_of(message), signature_of(self._sent, message)
        reason, native = finish_reason(raw.get("finish_reason"), state.calls.count > 0)
        # An empty finish reason is xAI's end of calls. Beside a delta of a call it is not an end (see `finish_reason`).
        state.may_end = reason is not None and not raw["finish_reason"] and bool(calls or text or reasoning)
        reason = None if state.may_end else reason
        if reason is not None:
            calls += state.calls.rest()
        if text and reason is not None:
            check_text(self._sent.target.profile, text)
        logprobs = logprobs_of(raw.get("logprobs"), text)
        if self._sent.unwrap_choice:
            text = state.hold(text, reason)
        if self._sources:
            extras = state.cited(extras, text, self._sources, reason is not None)
        if reason is not None and (repeated := repeated_in(body)):
            extras = replace(extras or Extras(), answer=repeated)
        if not (text or reason or refusal or reasoning or calls or logprobs or signature or extras):
            return None
        state.written += len(text)
        state.finished = reason is not None
        chunk = Chunk(
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
        return chunk if reason is None or self._characters is None else self._characters.end(chunk)

    def _decode_body(self, data: bytes) -> Iterator[StreamEvent]:
        """Decode a complete body that came instead of a stream, as one chunk per choice. A body that is not valid JSON
        counts as cut off."""
        if not is_json(data):
            raise cut()
        completion = decode_object(self._sent, json_object(data))
        try:
            yield from to_chunks(require_choices(completion, self._sent.choices))
        except ValueError as problem:
            raise malformed(f"has {problem}") from None
        self._done = True
