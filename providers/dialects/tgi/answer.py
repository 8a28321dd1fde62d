"""Decodes the responses of TGI's own endpoints, streamed or not, into the common completion shape.

A stream counts the prompt's tokens in its last event. A non-streaming response counts them only in a header, which
decoders do not see. Therefore calls request streams, except calls for the prompt's log probabilities, which no stream
has.

Sources: huggingface/text-generation-inference `docs/openapi.json` (`GenerateResponse`, `StreamResponse`, `Details`,
`StreamDetails`, `Token`, `PrefillToken`, `ErrorResponse`), `router/src/lib.rs`, January 2026.
"""

from collections.abc import Iterable, Iterator, Mapping

import orjson

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    FinishReason,
    LegacyLogprobs,
    StreamEvent,
    TokenLogprob,
    Usage,
    count_of,
    reported_usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.shared.decode_stream import NOTHING, NativeStream, event_object
from providers.dialects.shared.errors import failure_in_body
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import json_object, malformed
from providers.dialects.shared.read_logprobs import logprob, objects_in
from providers.emulation.collect_stream import Gatherer
from providers.emulation.logprob_slices import join_logprobs
from providers.emulation.logprobs import Offsets, to_legacy
from providers.emulation.stop_strings import StopScanner
from providers.failure import UpstreamError
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.request_fields import STOP_STRING

STREAM_PATH, WHOLE_PATH = "/generate_stream", "/generate"

_FINISH: Mapping[str, FinishReason] = {"eos_token": "stop", "stop_sequence": "stop", "length": "length"}
_STATUSES: Mapping[str, int] = {
    "validation": 422,
    "empty_input": 422,
    "template_error": 422,
    "tool_error": 422,
    "generation": 424,
    "overloaded": 429,
    "healthcheck": 503,
}
"""The status that each error type has outside of a stream. Inside a stream the status is 200."""


def is_stream(sent: UpstreamRequest) -> bool:
    """Return whether the response to a call is a stream, by the call's path."""
    return sent.url.endswith(STREAM_PATH)


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body, which may be a stream. Raises UpstreamError."""
    if not is_stream(sent):
        return _decode_whole(sent, json_object(body))
    stream, gatherer = NativeStream(SSEParser(), TgiReader(sent)), Gatherer(1)
    for events in (stream.feed(body), stream.finish()):
        for event in events:
            gatherer.add(event)
    return gatherer.completion()


class _TgiCall:
    """The settings of a call that are needed to decode its response."""

    __slots__ = ("inputs", "scanner", "scored", "top")

    def __init__(self, sent: UpstreamRequest) -> None:
        body = orjson.loads(sent.body)
        parameters = body.get("parameters", {})
        self.inputs: str = body["inputs"]
        self.scored = "top_n_tokens" in parameters
        stops = tuple(parameters.get("stop", ()))
        self.scanner = StopScanner(stops, STOP_STRING in sent.emulated) if stops else None


class TgiReader:
    """The `Reader` of TGI's events."""

    __slots__ = ("_call", "_profile", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._call = _TgiCall(sent)
        self._profile = sent.target.profile

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """Translate one event. An event is one token; the last event also repeats the complete text."""
        event = event_object(payload)
        _check_error(self._profile, event)
        token = event.get("token")
        text = _visible_text(token) if isinstance(token, dict) else ""
        logprobs = None
        if self._call.scored and isinstance(token, dict) and not token.get("special"):
            logprobs = ContentLogprobs((_token_logprob(token, event.get("top_tokens")),))
        if event.get("generated_text") is None:
            chunk = Chunk(text=text, logprobs=logprobs)
            return self._scanned(chunk) if text or logprobs else NOTHING
        details = event.get("details")
        finish, native = _finish(details)
        self.complete = True
        ended = list(self._scanned(Chunk(0, text, finish, native, logprobs)))
        usage = _usage(details)
        return ended if usage is None else [*ended, usage]

    def _scanned(self, chunk: Chunk) -> Iterator[StreamEvent]:
        scanner = self._call.scanner
        return iter((chunk,)) if scanner is None else iter(scanner.feed(chunk))


def _decode_whole(sent: UpstreamRequest, answer: JsonObject) -> Completion:
    """Return the echoed prompt and the generated text with their log probabilities. Raises UpstreamError."""
    _check_error(sent.target.profile, answer)
    text, details = answer.get("generated_text"), answer.get("details")
    if not isinstance(text, str) or not isinstance(details, dict):
        raise malformed("has no text or no details")
    call = _TgiCall(sent)
    finish, native = _finish(details)
    tokens, tops = objects_in(details.get("tokens")), details.get("top_tokens")
    listed = tops if isinstance(tops, list) else []
    scored = [
        _token_logprob(token, listed[position] if position < len(listed) else None)
        for position, token in enumerate(tokens)
        if not token.get("special")
    ]
    chunk = Chunk(0, text, finish, native, ContentLogprobs(tuple(scored)))
    if call.scanner is not None:
        (chunk,) = call.scanner.feed(chunk)
    prompt = objects_in(details.get("prefill"))
    generated = details.get("generated_tokens")
    choice = Choice(
        index=0,
        text=call.inputs + chunk.text,
        finish_reason=chunk.finish_reason or finish,
        native_finish_reason=chunk.native_finish_reason,
        logprobs=_joined_logprobs(call.inputs, prompt, chunk.logprobs),
        matched_stop=chunk.matched_stop,
    )
    usage = reported_usage(len(prompt) or None, count_of(generated))
    return Completion((choice,), usage)


def _joined_logprobs(inputs: str, prompt: list[JsonObject], answer: object) -> LegacyLogprobs | None:
    """Return the four arrays of log probabilities for prompt and generated text, without the tokenizer's begin
    token."""
    if prompt and not inputs.startswith(_token_text(prompt[0])):
        prompt = prompt[1:]
    texts = tuple([_token_text(token) for token in prompt])
    offsets = Offsets()
    numbers = [token.get("logprob") for token in prompt]
    echoed = LegacyLogprobs(
        texts,
        tuple([None if number is None else logprob(number) for number in numbers]),
        tuple([None for _ in prompt]),
        offsets.of_texts(texts),
    )
    if not isinstance(answer, ContentLogprobs) or not answer.content:
        return echoed
    whole = join_logprobs((echoed, to_legacy(answer, offsets)))
    return whole if isinstance(whole, LegacyLogprobs) else None


def _check_error(profile: Profile, event: JsonObject) -> None:
    """Raise UpstreamError if the event is an error, with the status that its type has outside of a stream."""
    if event.get("error"):
        kind = event.get("error_type")
        status = _STATUSES.get(kind, 500) if isinstance(kind, str) else 500
        raise UpstreamError(failure_in_body(profile, {**event, "status_code": status}))


def _token_text(token: JsonObject) -> str:
    text = token.get("text")
    return text if isinstance(text, str) else ""


def _visible_text(token: JsonObject) -> str:
    """Return the text that a token adds to the response. Special tokens add nothing."""
    return "" if token.get("special") else _token_text(token)


def _token_logprob(token: JsonObject, tops: JsonValue) -> TokenLogprob:
    listed = tuple([TokenLogprob(_token_text(top), logprob(top.get("logprob"))) for top in objects_in(tops)])
    return TokenLogprob(_token_text(token), logprob(token.get("logprob")), None, listed)


def _finish(details: JsonValue) -> tuple[str, str | None]:
    """Return the common finish reason, and the engine's own reason if that is unknown."""
    reason = details.get("finish_reason") if isinstance(details, dict) else None
    return read_finish_reason(reason, _FINISH) if isinstance(reason, str) else ("stop", None)


def _usage(details: JsonValue) -> Usage | None:
    """Return the token counts at the end of a stream. Servers before 2.3 do not count the prompt."""
    prompt = details.get("input_length") if isinstance(details, dict) else None
    generated = details.get("generated_tokens") if isinstance(details, dict) else None
    return reported_usage(count_of(prompt), count_of(generated))
