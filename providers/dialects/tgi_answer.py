"""Answers of TGI's own endpoints, streamed and whole, to the common completion shape. Never a request.

Prompts are counted at the end of a stream only; of a whole answer a header tells, which no decoder sees. So answers are
asked for as streams, and whole where the prompt's log probabilities are wanted, which no stream has.

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
)
from providers.dialect import UpstreamRequest
from providers.dialects.native_stream import NOTHING, NativeStream, event_object
from providers.dialects.openai_errors import failure_in_body
from providers.dialects.openai_read import json_object, logprob, malformed
from providers.dialects.tgi_fields import KEEP
from providers.failure import UpstreamError
from providers.finish import own_word
from providers.gather import Gatherer
from providers.logprob_pieces import joined
from providers.logprobs import Offsets, to_legacy
from providers.profiles import Profile
from providers.sse import SSEParser
from providers.stops import StopScanner
from providers.unified import JsonObject, JsonValue

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
"""The status that each type of error has outside a stream, where it is 200 whatever went wrong."""


def is_stream(sent: UpstreamRequest) -> bool:
    """Whether the answer of a call is a stream; the path decides."""
    return sent.url.endswith(STREAM_PATH)


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """A whole 2xx body of either form. Raises UpstreamError."""
    if not is_stream(sent):
        return _whole(sent, json_object(body))
    stream, gatherer = NativeStream(SSEParser(), TgiReader(sent)), Gatherer(1)
    for events in (stream.feed(body), stream.finish()):
        for event in events:
            gatherer.add(event)
    return gatherer.completion()


class _Asked:
    """What decoding needs of the call that was sent."""

    __slots__ = ("inputs", "scanner", "scored", "top")

    def __init__(self, sent: UpstreamRequest) -> None:
        body = orjson.loads(sent.body)
        parameters = body.get("parameters", {})
        self.inputs: str = body["inputs"]
        self.scored = "top_n_tokens" in parameters
        stops = tuple(parameters.get("stop", ()))
        self.scanner = StopScanner(stops, KEEP in sent.emulated) if stops else None


class TgiReader:
    """See providers.dialects.native_stream.Reader."""

    __slots__ = ("_asked", "_profile", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._asked = _Asked(sent)
        self._profile = sent.target.profile

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """See Reader: one token. The last event repeats the whole text, which has come by then."""
        event = event_object(payload)
        _check_error(self._profile, event)
        token = event.get("token")
        text = _text(token) if isinstance(token, dict) else ""
        logprobs = None
        if self._asked.scored and isinstance(token, dict) and not token.get("special"):
            logprobs = ContentLogprobs((_scored(token, event.get("top_tokens")),))
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
        scanner = self._asked.scanner
        return iter((chunk,)) if scanner is None else iter(scanner.feed(chunk))


def _whole(sent: UpstreamRequest, answer: JsonObject) -> Completion:
    """An answer with the prompt before it, each with its log probabilities. Raises UpstreamError."""
    _check_error(sent.target.profile, answer)
    text, details = answer.get("generated_text"), answer.get("details")
    if not isinstance(text, str) or not isinstance(details, dict):
        raise malformed("has no text or no details")
    asked = _Asked(sent)
    finish, native = _finish(details)
    tokens, tops = _objects(details.get("tokens")), details.get("top_tokens")
    listed = tops if isinstance(tops, list) else []
    scored = [
        _scored(token, listed[place] if place < len(listed) else None)
        for place, token in enumerate(tokens)
        if not token.get("special")
    ]
    chunk = Chunk(0, text, finish, native, ContentLogprobs(tuple(scored)))
    if asked.scanner is not None:
        (chunk,) = asked.scanner.feed(chunk)
    prompt = _objects(details.get("prefill"))
    generated = details.get("generated_tokens")
    choice = Choice(
        index=0,
        text=asked.inputs + chunk.text,
        finish_reason=chunk.finish_reason or finish,
        native_finish_reason=chunk.native_finish_reason,
        logprobs=_with_prompt(asked.inputs, prompt, chunk.logprobs),
        matched_stop=chunk.matched_stop,
    )
    usage = Usage(len(prompt), generated) if isinstance(generated, int) and prompt else None
    return Completion((choice,), usage)


def _with_prompt(inputs: str, prompt: list[JsonObject], answer: object) -> LegacyLogprobs | None:
    """The four arrays of prompt and answer. A mark before the text is left out: it is no part of what was given."""
    if prompt and not inputs.startswith(_piece(prompt[0])):
        prompt = prompt[1:]
    texts = tuple([_piece(token) for token in prompt])
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
    whole = joined((echoed, to_legacy(answer, offsets)))
    return whole if isinstance(whole, LegacyLogprobs) else None


def _objects(raw: JsonValue) -> list[JsonObject]:
    return [entry for entry in raw if isinstance(entry, dict)] if isinstance(raw, list) else []


def _check_error(profile: Profile, event: JsonObject) -> None:
    """Raises UpstreamError for an error, with the status that its type has outside a stream."""
    if event.get("error"):
        kind = event.get("error_type")
        status = _STATUSES.get(kind, 500) if isinstance(kind, str) else 500
        raise UpstreamError(failure_in_body(profile, {**event, "status_code": status}))


def _piece(token: JsonObject) -> str:
    text = token.get("text")
    return text if isinstance(text, str) else ""


def _text(token: JsonObject) -> str:
    """What a token adds to the text; marks of the model's own add nothing."""
    return "" if token.get("special") else _piece(token)


def _scored(token: JsonObject, tops: JsonValue) -> TokenLogprob:
    listed = tuple([TokenLogprob(_piece(top), logprob(top.get("logprob"))) for top in _objects(tops)])
    return TokenLogprob(_piece(token), logprob(token.get("logprob")), None, listed)


def _finish(details: JsonValue) -> tuple[str, str | None]:
    """The common reason, and the engine's word where it is none of those known."""
    reason = details.get("finish_reason") if isinstance(details, dict) else None
    if not isinstance(reason, str):
        return "stop", None
    return _FINISH.get(reason) or own_word(reason), None if reason in _FINISH else reason


def _usage(details: JsonValue) -> Usage | None:
    """The counts of a stream's end; servers of before 2.3 do not tell that of the prompt."""
    prompt = details.get("input_length") if isinstance(details, dict) else None
    generated = details.get("generated_tokens") if isinstance(details, dict) else None
    return Usage(prompt, generated) if isinstance(prompt, int) and isinstance(generated, int) else None
