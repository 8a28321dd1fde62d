"""Streamed answers of the OpenAI family, completions and chat, as chunks."""

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
    lift_members,
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
    repeated_in,
    says_nothing,
    with_members,
)
from providers.dialects.openai.streamed_calls import (
    StreamedChoice,
    adds_to_answer,
    check_text,
    choice_of,
    ends_of_calls,
    may_end,
)
from providers.dialects.openai.text_runs import MOST_LED, SameMembers, TextRuns
from providers.dialects.shared.decode_stream import Characters, cut
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
from providers.emulation.merge_choices import as_asked
from providers.failure import UpstreamError
from providers.framing.parse_sse import DataLines, EventTooLarge, SSEParser
from providers.framing.text_frames import Around
from providers.json_types import JsonObject, JsonValue

MAX_BODY = 32 * 1024 * 1024
"""Bytes at most of a body that is JSON although the request was for a stream."""

_MOST_WAITING = 4
"""Chunks at most that wait for a stream's content."""

_MOST_KEPT = 256 * 1024
"""Bytes at most of an event whose own members are kept after it."""


class OpenAIStream(RunDecoder):
    """See providers.dialect.StreamDecoder and RunDecoder.

    The stream is complete at `[DONE]`, or at the end of the body when every choice has its finish reason: Perplexity,
    TGI and others leave the terminator out. The class is its own reader, for the cost of each chunk.
    """

    __slots__ = (
        *("_answer", "_body", "_characters", "_choices", "_done", "_lifting", "_own", "_runs"),
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
        self._characters: Characters | None = None
        self._started = False
        self._tier: JsonValue = None
        self._signs = signs(sent)
        self._own: JsonObject = {}
        self._sources: Sequence[Source] = ()
        self._waiting: list[Chunk] | None = []
        self._runs = TextRuns(self._sse, self._choices)
        # Since the last run, of this form, nothing else has come: the next one is read as such without further checks.
        self._same: SameMembers | None = None
        # An event may need more than to be passed on.
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
                chunk = self._plain(body, len(frame))
                yield from self._pieces(body, len(frame)) if chunk is None else (chunk,)
                if self._waiting is None and not self._slow and (chunk is None or chunk.finish_reason is None):
                    self._runs.note(frame, body)
        except EventTooLarge:
            raise malformed("has an event that is too large") from None

    def lead(self, data: bytes) -> tuple[TextRun, bytes] | None:
        same = self._same
        if same is not None:
            literals, end = same.form.read(data)
            if end == len(data) <= MOST_LED:
                run = same.run(literals)
                if run is not None:
                    same.choice.written += run.characters
                    return run, b""
        if not self._runs.ready or self._slow or self._done or (found := self._runs.lead(data)) is None:
            return None
        run, rest, self._same = found
        self._same.choice.written += run.characters
        self._tier = self._same.tier or self._tier
        return run, rest

    def around(self) -> Around | None:
        return None if self._same is None else self._same.form.around

    def passed(self, characters: int) -> None:
        if self._same is not None:
            self._same.choice.written += characters

    def finish(self) -> Iterator[StreamEvent]:
        if self._body is not None:
            yield from self._whole(bytes(self._body))
            return
        for _, frame in self._sse.finish():
            if frame == b"[DONE]" or is_json(frame):  # whole, but for its blank line; else the end cut it off
                yield from self.read(frame)
        if not self._done and not self._all_finished():
            raise cut()
        self._done = True

    def _all_finished(self) -> bool:
        return bool(self._choices) and all(state.finished for state in self._choices.values())

    def read(self, frame: bytes) -> Iterator[StreamEvent]:
        """Translate one event's data, of whatever framing; nothing after the end. Raises UpstreamError."""
        return self._pieces(self._event(frame), len(frame))

    def _plain(self, body: JsonObject, size: int) -> Chunk | None:
        """Return the chunk of an event of `size` bytes that holds text of one choice alone, as nearly all do, or its
        end; else None."""
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
        """Return the chunk of an event that ends a choice as most end; None for others. 4 us less than `_pieces`."""
        reason = only_end_of(raw)
        if not reason or self._waiting is not None or state.calls.count or repeated_in(body):
            return None
        state.finished = True
        if len(self._choices) == 1:
            self._runs.ready = False  # until another choice has a text
        self._answer, self._tier = body.get("id"), body.get("service_tier") or self._tier
        fingerprint, tier = body.get("system_fingerprint"), self._tier if type(self._tier) is str else None
        fingerprint = fingerprint if type(fingerprint) is str else None
        return Chunk(state.index, finish_reason=reason, system_fingerprint=fingerprint, service_tier=tier)

    def _pieces(self, body: JsonObject, size: int) -> Iterator[StreamEvent]:
        """Yield what an event of `size` bytes comes to."""
        choices = body.get("choices")
        if "error" in body or not choices:
            if "error" in body and (usage := usage_of(body, self._tier)) is not None:
                yield usage
            yield from self._ends_or_error(body)
        own = None if KNOWN_IN_EVENT.issuperset(body) else self._own_members(body, size)
        if choices:
            if not isinstance(choices, list):
                raise malformed("has choices that are not a list")
            self._answer = body.get("id")
            self._tier = body.get("service_tier") or self._tier
            for raw in choices:
                chunk = self._chunk(raw, body)
                if chunk is not None:
                    if own is not None:
                        chunk, own = with_members(chunk, own), None
                    yield from (chunk,) if self._waiting is None else self._begin(chunk, self._waiting, size)
        if own is not None:
            chunk = Chunk(extras=Extras(answer=own))
            yield from (chunk,) if self._waiting is None else self._begin(chunk, self._waiting, size)
        if body.get("usage") is not None and (usage := usage_of(body, self._tier)) is not None:
            yield usage

    def _event(self, frame: bytes, name: str = "") -> JsonObject:
        """Parse a frame's object; empty for the `null` that begins some streams of llama.cpp, and for the terminator
        and what follows it. Raises UpstreamError for a terminator before the end, and for an event called an error."""
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
            body = self._mended(frame)
        if body is None:
            return {}
        if not isinstance(body, dict):
            raise malformed("has an event that is not a JSON object")
        if name == "error" and not body.get("choices"):
            raise UpstreamError(failure_in_body(self._sent.target.profile, {"error": body, **body}))
        return body if self._lifting is None else lift_members(self._lifting, body)

    def _mended(self, frame: bytes) -> JsonValue:
        """Parse an event that is no JSON as it is. Raises UpstreamError."""
        try:
            return parse_event(frame)
        except SplitCharacter:
            self._characters = Characters()
            self._slow = True
            self._runs.stop()
            return self._characters.parse(frame)
        except orjson.JSONDecodeError:
            raise malformed("has an event that is not valid JSON") from None

    def _begin(self, chunk: Chunk, waiting: list[Chunk], size: int) -> Iterator[Chunk]:
        """Yield a chunk of a stream that has not begun. The first chunk commits the gateway to the vendor, so what a
        vendor says of itself (Groq's `x_groq`, Azure's filter of the prompt) waits for content."""
        if size <= _MOST_KEPT and len(waiting) < _MOST_WAITING and says_nothing(chunk):
            waiting.append(chunk)
            self._slow = True
            return
        self._waiting = None
        self._slow = self._sent.unwrap_choice or bool(self._sources) or self._characters is not None
        yield from waiting
        yield chunk

    def _ends_or_error(self, body: JsonObject) -> Iterable[Chunk]:
        """Return what the terminator is the end of. Raises UpstreamError for an event that is an error."""
        if is_error(body):
            raise UpstreamError(failure_in_body(self._sent.target.profile, body))
        return ends_of_calls(self._choices.values()) if self._done else ()

    def _repeats_own(self, body: JsonObject, size: int) -> bool:
        """Return whether all that the vendor has of its own in an event was in the event before."""
        if "error" in body or size > _MOST_KEPT:
            return False
        return unknown_in(body, KNOWN_IN_EVENT) in (None, self._own)

    def _own_members(self, body: JsonObject, size: int) -> JsonObject | None:
        """Return the vendor's own members of an event that differ from those of the event before: Perplexity repeats
        its sources in each."""
        own = unknown_in(body, KNOWN_IN_EVENT)
        if own is None:
            return None
        before, self._own = self._own, own if size <= _MOST_KEPT else {}
        if self._own != before:
            self._runs.forget()
        if fresh := {name: value for name, value in own.items() if before.get(name) != value}:
            self._sources = sources_of(fresh) or self._sources
            self._slow = self._slow or bool(self._sources)
        return fresh or None

    def _chunk(self, raw: JsonValue, body: JsonObject) -> Chunk | None:
        """Return what an event adds to one choice; None for nothing (a role, what follows the end)."""
        if not isinstance(raw, dict):
            raise malformed("has a choice that is not an object")
        index = raw.get("index")
        state = self._choices.get(index) if type(index) is int else None
        if state is None and (state := choice_of(raw, self._choices, self._sent)) is None:
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
            if adds_to_answer(raw):
                raise malformed("goes on after the end of a choice")
            return None if extras is None else Chunk(state.index, extras=extras)
        return self._full(state, raw, message, extras, body, fingerprint)

    def _full(
        self,
        state: StreamedChoice,
        raw: JsonObject,
        message: JsonObject,
        extras: Extras | None,
        body: JsonObject,
        fingerprint: str | None,
    ) -> Chunk | None:
        said = message.get("refusal")
        refusal = said if isinstance(said, str) and said else None
        state.refused = state.refused or refusal is not None
        text = content_of(raw, message)
        if state.written == len(text) > 0 and raw.get("finish_reason") and message is raw.get("message"):
            text, message = "", {}  # the whole message at its end, as some send it: it has been said
        calls = state.calls.read(calls_in(message), self._answer)
        reasoning, signature = reasoning_of(message), signature_of(self._sent, message)
        reason, native = finish_reason(raw.get("finish_reason"), state.calls.count > 0)
        # An empty one is xAI's end of calls, and beside each piece of them no end (see `finish_reason`).
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

    def _whole(self, data: bytes) -> Iterator[StreamEvent]:
        """Decode a whole body in place of a stream, one chunk a choice; one that is no JSON was cut off."""
        if not is_json(data):
            raise cut()
        completion = decode_object(self._sent, json_object(data))
        try:
            yield from to_chunks(as_asked(completion, self._sent.choices))
        except ValueError as problem:
            raise malformed(f"has {problem}") from None
        self._done = True
