"""Decodes the responses of SGLang's own endpoint, streamed or not, into the common completion shape.

Every event of a stream repeats the complete text so far, unless the server is configured to send only new text. The two
are distinguished by an event's count of all tokens so far and its number of token ids.

Sources: `sglang` 0.5.23 `api/v1/api_types.py` (`GenerateResponse`, `GenerateMetaInfo`, `GenerateStreamError`),
`srt/managers/tokenizer_manager.py`, `srt/entrypoints/http_server.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    FinishReason,
    LegacyLogprobs,
    Logprobs,
    StreamEvent,
    TokenLogprob,
    Usage,
    as_estimate,
    count_of,
    reported_usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.sglang.repeated_parts import RepeatedParts, cumulative_object
from providers.dialects.shared.decode_stream import NOTHING, cut
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import index_of, malformed, parse_answer, unknown_in
from providers.dialects.shared.read_logprobs import logprob
from providers.emulation.logprob_slices import join_logprobs
from providers.emulation.logprobs import Offsets, to_legacy
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue

_FINISH: Mapping[str, FinishReason] = {"stop": "stop", "length": "length"}
NOT_PASSED: Mapping[str, str] = {
    "id": "the gateway's response has its own id",
    "input_token_logprobs": "read if the client requests them",
    "input_top_logprobs": "read if the client requests them",
    "output_token_logprobs": "read if the client requests them",
    "output_top_logprobs": "read if the client requests them",
}
"""Fields of `meta_info` that are not passed on under their names, with the reasons. The `output_ids` of each event,
which are the token ids of the text, are not passed on either."""

_KNOWN = frozenset({"finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"}).union(
    NOT_PASSED
)
_INCOMPLETE_CHARACTER = "\ufffd"
"""The placeholder for a character whose bytes are incomplete. A later event has the character instead."""


@dataclass(frozen=True, slots=True)
class _SglangCall:
    """The settings of a call that are needed to decode its response.

    `prompts` are the texts of the prompts, with `None` for a prompt that is a list of token ids. `n` is the number of
    choices per prompt. `scored` is true if the client requests the log probabilities of the choices, `echo` if it
    requests the prompt with its log probabilities.
    """

    prompts: tuple[str | None, ...]
    n: int
    scored: bool
    echo: bool

    @property
    def choices(self) -> int:
        return len(self.prompts) * self.n

    @property
    def text_only(self) -> bool:
        return not (self.scored or self.echo)


def _call(sent: UpstreamRequest) -> _SglangCall:
    body = orjson.loads(sent.body)
    text, ids = body.get("text"), body.get("input_ids")
    prompts: tuple[str | None, ...]
    if text is not None:
        prompts = tuple(text) if isinstance(text, list) else (text,)
    else:
        prompts = (None,) * (len(ids) if isinstance(ids[0], list) else 1)
    n = body["sampling_params"].get("n", 1)
    return _SglangCall(prompts, n, bool(body.get("return_logprob")), "logprob_start_len" in body)


# Non-streaming responses ---------------------------------------------------------------------------------------------


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    answer = parse_answer(body)
    call = _call(sent)
    results = [_result_object(sent, result) for result in (answer if isinstance(answer, list) else [answer])]
    choices = [_choice(sent, call, result, index) for index, result in enumerate(results)]
    return Completion(tuple(choices), _usage(call, [_meta(result) for result in results]))


def _choice(sent: UpstreamRequest, call: _SglangCall, result: JsonObject, index: int) -> Choice:
    meta = _meta(result)
    end = _finish_chunk(sent, meta)
    text = result.get("text")
    if not isinstance(text, str) or end is None:
        raise malformed("has no text or no finish reason")
    state = _SglangChoice(index)
    chunks = [*state.echoed(call, meta), state.chunk_of(call, text, meta)]
    found = [chunk.logprobs for chunk in chunks if chunk.logprobs is not None]
    return Choice(
        index=index,
        text="".join([chunk.text for chunk in chunks]),
        finish_reason=end.finish_reason or "stop",
        native_finish_reason=end.native_finish_reason,
        logprobs=join_logprobs(found),
        matched_stop=end.matched_stop,
        extras=_extras(meta),
    )


def _result_object(sent: UpstreamRequest, result: JsonValue) -> JsonObject:
    """Return the result as a JSON object. Raises UpstreamError if the result is an error."""
    if not isinstance(result, dict):
        raise malformed("is not a JSON object")
    if is_error(result):
        raise UpstreamError(failure_in_body(sent.target.profile, result))
    return result


def _meta(result: JsonObject) -> JsonObject:
    meta = result.get("meta_info")
    return meta if isinstance(meta, dict) else {}


def _finish_chunk(sent: UpstreamRequest, meta: JsonObject) -> Chunk | None:
    """Return a chunk with the finish reason of a choice, which may be unknown to the gateway; `None` before the end.
    Raises UpstreamError if the choice was aborted."""
    reason = meta.get("finish_reason")
    if not isinstance(reason, dict):
        return None
    kind, matched = reason.get("type"), reason.get("matched")
    if not isinstance(kind, str):
        raise malformed("has no finish reason")
    if kind == "abort":
        error: JsonObject = {"message": reason.get("message"), "status_code": reason.get("status_code")}
        raise UpstreamError(failure_in_body(sent.target.profile, {"error": error}))
    finish, native = read_finish_reason(kind, _FINISH)
    return Chunk(
        finish_reason=finish,
        native_finish_reason=native,
        matched_stop=matched if isinstance(matched, str | int) and not isinstance(matched, bool) else None,
    )


def _extras(meta: JsonObject) -> Extras | None:
    """Return the engine's own fields of a choice that has ended, such as its latency."""
    own = unknown_in(meta, _KNOWN)
    return None if own is None else Extras(choice=own)


def _usage(call: _SglangCall, metas: Sequence[JsonObject]) -> Usage | None:
    """Return the sum of the token counts of all choices, each prompt counted once; `None` if a count is missing."""
    firsts = metas[:: call.n]
    prompt, completion = _sum_counts(firsts, "prompt_tokens"), _sum_counts(metas, "completion_tokens")
    cached, reasoning = _sum_counts(firsts, "cached_tokens"), _sum_counts(metas, "reasoning_tokens")
    of_prompt = None if cached is None else {"cached_tokens": cached}
    of_answer = None if reasoning is None else {"reasoning_tokens": reasoning}
    return reported_usage(prompt, completion, of_prompt, of_answer)


def _sum_counts(metas: Sequence[JsonObject], name: str) -> int | None:
    counts = [count for meta in metas if (count := count_of(meta.get(name))) is not None]
    return sum(counts) if len(counts) == len(metas) else None


# Streams ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _SglangChoice:
    """The progress of one choice in a stream.

    `known` is the text of the choice so far, as chunks. `waiting` is the part at the end of that text that has not been
    passed on, as chunks. `passed` is the number of characters that have been passed on. `tokens` is the number of
    tokens of the choice. `entries` is the number of its log probability entries that have been passed on.
    """

    index: int
    known: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    passed: int = 0
    tokens: int = 0
    entries: int = 0
    offsets: Offsets | None = None
    meta: JsonObject = field(default_factory=dict)
    ended: bool = False

    def echoed(self, call: _SglangCall, meta: JsonObject) -> list[Chunk]:
        """Return the prompt with its log probabilities if an echo is requested; nothing after the first call."""
        if not call.echo or self.offsets is not None:
            return []
        self.offsets = Offsets()
        tokens, tops = _list_in(meta, "input_token_logprobs"), _list_in(meta, "input_top_logprobs")
        entries = [_entry(entry) for entry in tokens]
        text = call.prompts[self.index // call.n]
        if text is None:
            text = "".join([token for token, _ in entries])
        elif entries and not text.startswith(entries[0][0]):
            # The tokenizer's begin token is not part of the client's prompt.
            entries, tops = entries[1:], tops[1:]
        texts = tuple([token for token, _ in entries])
        logprobs = LegacyLogprobs(
            texts,
            tuple([number for _, number in entries]),
            tuple([_alternatives(tops[at]) if at < len(tops) else None for at in range(len(entries))]),
            self.offsets.of_texts(texts),
        )
        return [Chunk(self.index, text, logprobs=logprobs if texts else None)]

    def repeats(self, text: str) -> bool:
        """Return whether `text` begins with all text that was passed on. The time is linear in the length of `text`."""
        if len(text) < self.passed:
            return False
        self.known = ["".join(self.known)]
        return text.startswith(self.known[0][: self.passed])

    def add(self, text: str) -> None:
        """Append a chunk to the text."""
        self.known.append(text)
        self.waiting.append(text)

    def replace(self, text: str) -> None:
        """Set the complete text so far."""
        self.known, self.waiting = [text], [text[self.passed :]]

    def take_complete(self) -> str:
        """Mark the waiting text as passed on and return it, without an incomplete character at its end."""
        last = self.waiting[-1]
        chunk_text = last.rstrip(_INCOMPLETE_CHARACTER) if last.endswith(_INCOMPLETE_CHARACTER) else last
        if not chunk_text:
            return ""
        taken = chunk_text if len(self.waiting) == 1 else "".join([*self.waiting[:-1], chunk_text])
        incomplete = last[len(chunk_text) :]
        self.waiting = [incomplete] if incomplete else []
        self.passed += len(taken)
        return taken

    def rest(self) -> str:
        """Return the waiting text at the choice's end."""
        return "".join(self.waiting)

    def chunk_of(self, call: _SglangCall, chunk_text: str, meta: JsonObject, new_only: bool = False) -> Chunk:
        """Return a chunk with this text and the new log probability entries."""
        return Chunk(
            self.index,
            chunk_text,
            logprobs=self._scores(meta, 0 if new_only else self.entries) if call.scored else None,
        )

    def _scores(self, meta: JsonObject, first: int) -> Logprobs | None:
        """Return the log probability entries from `first` on. The entries before it have been passed on."""
        entries, tops = _list_in(meta, "output_token_logprobs"), _list_in(meta, "output_top_logprobs")
        new_entries = [
            _token(entry, tops[position] if position < len(tops) else None)
            for position, entry in enumerate(entries[first:], first)
        ]
        if not new_entries:
            return None
        self.entries += len(new_entries)
        content = ContentLogprobs(tuple(new_entries))
        return content if self.offsets is None else to_legacy(content, self.offsets)


class SglangReader:
    """The `Reader` of SGLang's events. The stream is complete at `[DONE]` if every choice has a finish reason."""

    __slots__ = ("_call", "_ended", "_last", "_repeated", "_sent", "_states", "_text_only", "_whole", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._call = _call(sent)
        self._text_only = self._call.text_only
        self._states: dict[int, _SglangChoice] = {}
        self._repeated = RepeatedParts()
        # The choice of the last event, if that event had the choice's complete text so far.
        self._whole: _SglangChoice | None = None
        self._ended = 0
        # Held back until `[DONE]`, because a stream that breaks off earlier must not look finished.
        self._last: list[StreamEvent] = []

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if payload == b"[DONE]":
            if not self._all_ended():
                raise cut()
            self.complete = True
            return self._last
        repeated = self._repeated
        result = _result_object(self._sent, cumulative_object(repeated.without(payload)))
        index = index_of(result, 0)
        state = self._states.get(index)
        if state is None:
            if not 0 <= index < self._call.choices:
                raise malformed("has a choice that was not requested")
            state = self._states[index] = _SglangChoice(index)
        ids = result.get("output_ids")
        count = repeated.count + len(ids) if isinstance(ids, list) else None
        repeated.know(count or 0)
        return NOTHING if state.ended else self._chunks(state, result, count, payload)

    def _chunks(
        self, state: _SglangChoice, result: JsonObject, ids: int | None, payload: bytes
    ) -> Iterable[StreamEvent]:
        meta, text = _meta(result), result.get("text")
        end = None if meta.get("finish_reason") is None else _finish_chunk(self._sent, meta)
        new_only = _counted_new_only(state, ids, meta)
        continues = self._repeated.text
        if continues and (new_only is not False or self._whole is not state):
            # The event does not repeat the text so far, so the prefix that was left out is new text.
            continues, text = False, cumulative_object(payload).get("text")
        text = text if isinstance(text, str) else ""
        if new_only is None:
            new_only = not state.repeats(text)
        if continues or new_only:
            state.add(text)
        else:
            state.replace(text)
        # If an event has less text than was passed on, the choice is not kept: the text that follows is not new.
        self._whole = state if continues or (not new_only and len(text) >= state.passed) else None
        state.meta = meta
        chunk_text = state.take_complete() if end is None else state.rest()
        if end is None and self._text_only:
            return (Chunk(state.index, chunk_text),) if chunk_text else NOTHING
        chunks = [*state.echoed(self._call, meta), state.chunk_of(self._call, chunk_text, meta, new_only)]
        events: list[StreamEvent] = [chunk for chunk in chunks if chunk.text or chunk.logprobs]
        if end is not None:
            last = chunks[-1]
            if events and events[-1] is last:
                events.pop()
            events.append(replace(end, index=state.index, text=last.text, logprobs=last.logprobs, extras=_extras(meta)))
            state.ended = True
            self._ended += 1
            if self._all_ended():
                usage = _usage(self._call, [self._states[index].meta for index in sorted(self._states)])
                self._last = events if usage is None else [*events, usage]
                return []
        return events

    def usage_so_far(self) -> Usage | None:
        metas = [self._states[index].meta for index in sorted(self._states)]
        return as_estimate(_usage(self._call, metas)) if len(metas) == self._call.choices else None

    def _all_ended(self) -> bool:
        return self._ended == self._call.choices


def _counted_new_only(state: _SglangChoice, ids: int | None, meta: JsonObject) -> bool | None:
    """Return whether an event with `ids` token ids has only new text instead of the complete text so far. Return `None`
    if the counts do not decide that. Updates the token count of `state`."""
    count = meta.get("completion_tokens")
    count = count if isinstance(count, int) else state.tokens
    new_tokens, state.tokens = count - state.tokens, count
    return ids <= new_tokens if ids is not None and new_tokens < count else None


# Log probabilities --------------------------------------------------------------------------------------------------


def _list_in(meta: JsonObject, name: str) -> list[JsonValue]:
    found = meta.get(name)
    return found if isinstance(found, list) else []


def _entry(raw: JsonValue) -> tuple[str, float | None]:
    """Return the text and log probability of an entry. The first token of a prompt has no log probability."""
    match raw:
        case [number, _, text, *_]:
            return text if isinstance(text, str) else "", None if number is None else logprob(number)
        case _:
            raise malformed("has a log probability that is not a triple")


def _token(raw: JsonValue, tops: JsonValue) -> TokenLogprob:
    text, number = _entry(raw)
    entries = map(_entry, tops) if isinstance(tops, list) else ()
    return TokenLogprob(text, logprob(number), None, tuple([TokenLogprob(name, logprob(one)) for name, one in entries]))


def _alternatives(tops: JsonValue) -> Mapping[str, float] | None:
    """Return the alternatives of a token of the prompt; `None` for the first token, which has no alternatives."""
    if not isinstance(tops, list):
        return None
    return {text: logprob(number) for text, number in map(_entry, tops)}
