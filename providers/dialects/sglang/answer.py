"""Answers of SGLang's own endpoint, whole and streamed, to the common completion shape.

Every event of a stream repeats the whole text so far, unless the server was started to send only what is new. Which
one it is shows by the event's count of all tokens and the number of tokens in it.

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
    "id": "the gateway's answer has an id of its own",
    "input_token_logprobs": "read where they are wanted",
    "input_top_logprobs": "read where they are wanted",
    "output_token_logprobs": "read where they are wanted",
    "output_top_logprobs": "read where they are wanted",
}
"""Members of `meta_info` that are not passed on under their names, and why. Nor are `output_ids`, which every event
has: they are the ids of the text's tokens."""

_KNOWN = frozenset({"finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"}).union(
    NOT_PASSED
)
_HALF = "\ufffd"
"""The placeholder for a character whose bytes are incomplete; a later event has the character in its place."""


@dataclass(frozen=True, slots=True)
class _SglangCall:
    """What decoding needs of the call.

    `prompts` are the texts of the prompts, None for one in token ids, `n` is the number of choices of each; `scored`
    says that log probabilities are wanted, `echo` that those of the prompt are too.
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


# Whole answers ------------------------------------------------------------------------------------------------------


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    answer = parse_answer(body)
    call = _call(sent)
    results = [_checked(sent, result) for result in (answer if isinstance(answer, list) else [answer])]
    choices = [_choice(sent, call, result, index) for index, result in enumerate(results)]
    return Completion(tuple(choices), _usage(call, [_meta(result) for result in results]))


def _choice(sent: UpstreamRequest, call: _SglangCall, result: JsonObject, index: int) -> Choice:
    meta = _meta(result)
    end = _end(sent, meta)
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


def _checked(sent: UpstreamRequest, result: JsonValue) -> JsonObject:
    """Return a result that is no error. Raises UpstreamError."""
    if not isinstance(result, dict):
        raise malformed("is not a JSON object")
    if is_error(result):
        raise UpstreamError(failure_in_body(sent.target.profile, result))
    return result


def _meta(result: JsonObject) -> JsonObject:
    meta = result.get("meta_info")
    return meta if isinstance(meta, dict) else {}


def _end(sent: UpstreamRequest, meta: JsonObject) -> Chunk | None:
    """Return the finish of a choice, None while it goes on. Raises UpstreamError for an aborted one.

    An unknown reason is passed on.
    """
    reason = meta.get("finish_reason")
    if not isinstance(reason, dict):
        return None
    kind, matched = reason.get("type"), reason.get("matched")
    if not isinstance(kind, str):
        raise malformed("does not say why it ended")
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
    """Return the engine's own members of a choice that has ended, such as its latency."""
    own = unknown_in(meta, _KNOWN)
    return None if own is None else Extras(choice=own)


def _usage(call: _SglangCall, metas: Sequence[JsonObject]) -> Usage | None:
    """Return the sum of the counts of all choices, each prompt once; None if a count is missing."""
    firsts = metas[:: call.n]
    prompt, completion = _sum(firsts, "prompt_tokens"), _sum(metas, "completion_tokens")
    cached, reasoning = _sum(firsts, "cached_tokens"), _sum(metas, "reasoning_tokens")
    of_prompt = None if cached is None else {"cached_tokens": cached}
    of_answer = None if reasoning is None else {"reasoning_tokens": reasoning}
    return reported_usage(prompt, completion, of_prompt, of_answer)


def _sum(metas: Sequence[JsonObject], name: str) -> int | None:
    counts = [count for meta in metas if (count := count_of(meta.get(name))) is not None]
    return sum(counts) if len(counts) == len(metas) else None


# Streams ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _SglangChoice:
    """The progress of one choice in a stream.

    `known` is its text in pieces, `waiting` the end of the text that was not passed on, `passed` the number of
    characters that were. `tokens` counts its tokens, `entries` its entries with log probabilities.
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
        """Return the prompt with its log probabilities, once, where the client wants it before the choice's text."""
        if not call.echo or self.offsets is not None:
            return []
        self.offsets = Offsets()
        tokens, tops = _list(meta, "input_token_logprobs"), _list(meta, "input_top_logprobs")
        entries = [_entry(entry) for entry in tokens]
        text = call.prompts[self.index // call.n]
        if text is None:
            text = "".join([token for token, _ in entries])
        elif entries and not text.startswith(entries[0][0]):
            # The tokenizer's begin mark is no part of the client's prompt.
            entries, tops = entries[1:], tops[1:]
        texts = tuple([token for token, _ in entries])
        logprobs = LegacyLogprobs(
            texts,
            tuple([number for _, number in entries]),
            tuple([_listed(tops[place]) if place < len(tops) else None for place in range(len(entries))]),
            self.offsets.of_texts(texts),
        )
        return [Chunk(self.index, text, logprobs=logprobs if texts else None)]

    def repeats(self, text: str) -> bool:
        """Return whether a text begins with all that was passed on, in time linear in the text's length."""
        if len(text) < self.passed:
            return False
        self.known = ["".join(self.known)]
        return text.startswith(self.known[0][: self.passed])

    def add(self, text: str) -> None:
        """Append a piece to the text."""
        self.known.append(text)
        self.waiting.append(text)

    def replace(self, text: str) -> None:
        """Set the whole text so far."""
        self.known, self.waiting = [text], [text[self.passed :]]

    def take_complete(self) -> str:
        """Pass on and return the waiting text, without a character whose bytes are incomplete."""
        last = self.waiting[-1]
        piece = last.rstrip(_HALF) if last.endswith(_HALF) else last
        if not piece:
            return ""
        taken = piece if len(self.waiting) == 1 else "".join([*self.waiting[:-1], piece])
        half = last[len(piece) :]
        self.waiting = [half] if half else []
        self.passed += len(taken)
        return taken

    def rest(self) -> str:
        """Return the waiting text at the choice's end."""
        return "".join(self.waiting)

    def chunk_of(self, call: _SglangCall, piece: str, meta: JsonObject, new_only: bool = False) -> Chunk:
        """Return a chunk of the text and the new entries with log probabilities."""
        return Chunk(
            self.index, piece, logprobs=self._scores(meta, 0 if new_only else self.entries) if call.scored else None
        )

    def _scores(self, meta: JsonObject, first: int) -> Logprobs | None:
        """Return the entries from `first` on; those before it were passed on."""
        entries, tops = _list(meta, "output_token_logprobs"), _list(meta, "output_top_logprobs")
        fresh = [
            _token(entry, tops[place] if place < len(tops) else None)
            for place, entry in enumerate(entries[first:], first)
        ]
        if not fresh:
            return None
        self.entries += len(fresh)
        content = ContentLogprobs(tuple(fresh))
        return content if self.offsets is None else to_legacy(content, self.offsets)


class SglangReader:
    """See providers.dialects.shared.decode_stream.Reader. Complete at `[DONE]`, if every choice has a finish."""

    __slots__ = ("_call", "_ended", "_last", "_repeated", "_sent", "_states", "_text_only", "_whole", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._call = _call(sent)
        self._text_only = self._call.text_only
        self._states: dict[int, _SglangChoice] = {}
        self._repeated = RepeatedParts()
        # The choice of the last event, if that had the choice's whole text so far.
        self._whole: _SglangChoice | None = None
        self._ended = 0
        # Held back until the terminator: a stream that breaks must not look finished.
        self._last: list[StreamEvent] = []

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """See Reader."""
        if payload == b"[DONE]":
            if not self._all_ended():
                raise cut()
            self.complete = True
            return self._last
        repeated = self._repeated
        result = _checked(self._sent, cumulative_object(repeated.without(payload)))
        index = index_of(result, 0)
        state = self._states.get(index)
        if state is None:
            if not 0 <= index < self._call.choices:
                raise malformed("has a choice that was not asked for")
            state = self._states[index] = _SglangChoice(index)
        ids = result.get("output_ids")
        count = repeated.count + len(ids) if isinstance(ids, list) else None
        repeated.know(count or 0)
        return NOTHING if state.ended else self._chunks(state, result, count, payload)

    def _chunks(
        self, state: _SglangChoice, result: JsonObject, ids: int | None, payload: bytes
    ) -> Iterable[StreamEvent]:
        meta, text = _meta(result), result.get("text")
        end = None if meta.get("finish_reason") is None else _end(self._sent, meta)
        new_only = _counted_new_only(state, ids, meta)
        goes_on = self._repeated.text
        if goes_on and (new_only is not False or self._whole is not state):
            # What the event shares with the one before is text of its own.
            goes_on, text = False, cumulative_object(payload).get("text")
        text = text if isinstance(text, str) else ""
        if new_only is None:
            new_only = not state.repeats(text)
        if goes_on or new_only:
            state.add(text)
        else:
            state.replace(text)
        # Not one that has lost what was passed on: how it goes on is not new.
        self._whole = state if goes_on or (not new_only and len(text) >= state.passed) else None
        state.meta = meta
        piece = state.take_complete() if end is None else state.rest()
        if end is None and self._text_only:
            return (Chunk(state.index, piece),) if piece else NOTHING
        chunks = [*state.echoed(self._call, meta), state.chunk_of(self._call, piece, meta, new_only)]
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
        """See UsageReporter."""
        metas = [self._states[index].meta for index in sorted(self._states)]
        return as_estimate(_usage(self._call, metas)) if len(metas) == self._call.choices else None

    def _all_ended(self) -> bool:
        return self._ended == self._call.choices


def _counted_new_only(state: _SglangChoice, ids: int | None, meta: JsonObject) -> bool | None:
    """Return whether an event with so many ids has only what is new, instead of the whole text so far; None where the
    counts do not say."""
    count = meta.get("completion_tokens")
    count = count if isinstance(count, int) else state.tokens
    fresh, state.tokens = count - state.tokens, count
    return ids <= fresh if ids is not None and fresh < count else None


# Log probabilities --------------------------------------------------------------------------------------------------


def _list(meta: JsonObject, name: str) -> list[JsonValue]:
    found = meta.get(name)
    return found if isinstance(found, list) else []


def _entry(raw: JsonValue) -> tuple[str, float | None]:
    """Return text and log probability of a triple; the first token of a prompt has none."""
    match raw:
        case [number, _, text, *_]:
            return text if isinstance(text, str) else "", None if number is None else logprob(number)
        case _:
            raise malformed("has a log probability that is no triple")


def _token(raw: JsonValue, tops: JsonValue) -> TokenLogprob:
    text, number = _entry(raw)
    entries = map(_entry, tops) if isinstance(tops, list) else ()
    return TokenLogprob(text, logprob(number), None, tuple([TokenLogprob(name, logprob(one)) for name, one in entries]))


def _listed(tops: JsonValue) -> Mapping[str, float] | None:
    """Return the alternatives of a token of the prompt; the first one has none."""
    if not isinstance(tops, list):
        return None
    return {text: logprob(number) for text, number in map(_entry, tops)}
