"""Decodes the responses of watsonx.ai to raw prompts and to chats, and classifies its errors.

Sources: IBM Cloud API reference "watsonx.ai" (`TextGenResponse`, `TextGenResult`, `TextGenTokenInfo`, `ApiErrors`);
ibm-watsonx-ai 1.8.1 `fm_model_inference.py`: errors in streams are events named `error`. November 2026.
"""

from collections.abc import Iterable, Iterator, Mapping

import orjson

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    FinishReason,
    StreamEvent,
    TokenLogprob,
    Usage,
    count_of,
    partial_usage,
    reported_usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.openai.stream import OpenAIStream
from providers.dialects.shared import errors as openai_errors
from providers.dialects.shared.decode_stream import NOTHING, event_object, failing
from providers.dialects.shared.errors import failure_in_body, parse_error
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import is_json, json_object, malformed, unknown_in
from providers.dialects.shared.read_logprobs import logprob, objects_in
from providers.failure import Failure, UpstreamError
from providers.framing.parse_sse import EventTooLarge, SSEParser
from providers.json_types import JsonObject
from providers.profile import Profile

_UNFINISHED = "not_finished"
_FINISH: Mapping[str, FinishReason] = {
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "token_limit": "length",
}
_FINISH_SHOWN: Mapping[str, FinishReason] = {"time_limit": "length", "moderation": "content_filter"}
"""Finish reasons that are more specific than the common reasons. The client sees both."""


def classify(profile: Profile, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return the failure that a response outside 2xx means. `headers` has lower-case names."""
    answer = parse_error(body)
    if isinstance(answer, dict):
        body = orjson.dumps(_first_error(answer))
    return openai_errors.classify(profile, status, headers, body)


def _first_error(answer: JsonObject) -> JsonObject:
    """Return the response with the first of its `errors` also as `error`, which is the key of the OpenAI family."""
    errors = answer.get("errors")
    return {**answer, "error": errors[0]} if isinstance(errors, list) and errors else answer


def _raise_error(sent: UpstreamRequest, name: str, answer: JsonObject) -> None:
    if name == "error" or answer.get("errors"):
        raise UpstreamError(failure_in_body(sent.target.profile, _first_error(answer)))


# Raw prompts --------------------------------------------------------------------------------------------------------


def decode_text(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    _raise_error(sent, "", answer)
    result = _result(answer)
    finish, native = _finish(result)
    if finish is None:
        raise malformed("has a result that is not finished")
    prompt, generated = _counts(result)
    logprobs = _logprobs(result) if _requests_logprobs(sent) else None
    choice = Choice(0, _text(result), finish, native, logprobs, extras=_extras(result))
    usage = reported_usage(prompt, generated)
    return Completion((choice,), usage, extra=unknown_in(answer, _KNOWN))


_KNOWN = frozenset({"results", "errors", "model_id", "created_at"})
"""Fields that the gateway reads or sets itself. Other fields are passed on, such as `system` with its warnings."""

_KNOWN_IN_RESULT = frozenset(
    {"generated_text", "generated_tokens", "stop_reason", "input_token_count", "generated_token_count"}
)


def _extras(result: JsonObject, answer: JsonObject | None = None) -> Extras | None:
    """Return the vendor's own fields of a result, such as `moderations`, and of the event of a stream that holds it."""
    own, whole = unknown_in(result, _KNOWN_IN_RESULT), unknown_in(answer or {}, _KNOWN)
    return None if own is None and whole is None else Extras(choice=own, answer=whole)


class WatsonxReader:
    """The `Reader` of watsonx.ai's events for a raw prompt."""

    __slots__ = ("_generated", "_prompt", "_sent", "_with_logprobs", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._with_logprobs = _requests_logprobs(sent)
        self._prompt: int | None = None
        self._generated: int | None = None

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """Translate one event. One event has the prompt's token count, the others have 0. The count of generated tokens
        grows."""
        answer = event_object(payload)
        _raise_error(self._sent, name, answer)
        if not answer.get("results"):
            return NOTHING
        result = _result(answer)
        prompt, generated = _counts(result)
        self._prompt = prompt if self._prompt is None else max(self._prompt, prompt or 0)
        self._generated = generated if self._generated is None else max(self._generated, generated or 0)
        text, logprobs = _text(result), _logprobs(result) if self._with_logprobs else None
        finish, native = _finish(result)
        extras = _extras(result, answer)
        if finish is None:
            return (Chunk(text=text, logprobs=logprobs, extras=extras),) if text or logprobs else NOTHING
        self.complete = True
        chunk = Chunk(0, text, finish, native, logprobs, extras=extras)
        usage = reported_usage(self._prompt, self._generated)
        return (chunk,) if usage is None else (chunk, usage)

    def usage_so_far(self) -> Usage | None:
        return partial_usage(self._prompt, self._generated)


def _result(answer: JsonObject) -> JsonObject:
    results = answer.get("results")
    if not isinstance(results, list) or not results or not isinstance(results[0], dict):
        raise malformed("has no results")
    return results[0]


def _text(result: JsonObject) -> str:
    text = result.get("generated_text")
    if not isinstance(text, str):
        raise malformed("has no text")
    return text


def _counts(result: JsonObject) -> tuple[int | None, int | None]:
    return count_of(result.get("input_token_count")), count_of(result.get("generated_token_count"))


def _finish(result: JsonObject) -> tuple[str | None, str | None]:
    """Return the common finish reason, and the vendor's own reason if that is more specific.

    The common reason is `None` while the text has not ended. Raises UpstreamError if the reason means failure.
    """
    stop_reason = result.get("stop_reason")
    reason = stop_reason.lower() if isinstance(stop_reason, str) else _UNFINISHED
    return (None, None) if reason == _UNFINISHED else read_finish_reason(reason, _FINISH, _FINISH_SHOWN)


def _requests_logprobs(sent: UpstreamRequest) -> bool:
    """Return whether the call requests log probabilities. This searches the whole body, so call it once per
    response."""
    return b'"token_logprobs":true' in sent.body


def _logprobs(result: JsonObject) -> ContentLogprobs | None:
    tokens = objects_in(result.get("generated_tokens"))
    return ContentLogprobs(tuple([_token_with_tops(token) for token in tokens])) if tokens else None


def _token_with_tops(token: JsonObject) -> TokenLogprob:
    tops = tuple([_token_logprob(top) for top in objects_in(token.get("top_tokens"))])
    one = _token_logprob(token)
    return TokenLogprob(one.token, one.logprob, None, tops)


def _token_logprob(token: JsonObject) -> TokenLogprob:
    return TokenLogprob(str(token.get("text", "")), logprob(token.get("logprob")))


# Chats --------------------------------------------------------------------------------------------------------------


class WatsonxChatStream:
    """A `StreamDecoder` of OpenAI's chunks in named events."""

    __slots__ = ("_events", "_inner", "_sent")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._events = SSEParser()
        self._inner = OpenAIStream(sent)

    @property
    def complete(self) -> bool:
        return self._inner.complete

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        event = self._events.only(data)
        try:
            return self._read(data) if event is None else self._event(*event)
        except UpstreamError as error:
            return failing(error)

    def _read(self, data: bytes) -> Iterator[StreamEvent]:
        try:
            for name, payload in self._events.feed(data):
                yield from self._event(name, payload)
        except EventTooLarge as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[StreamEvent]:
        for name, payload in self._events.finish():
            # The last event is not JSON if the body was cut off within it.
            if is_json(payload):
                yield from self._event(name, payload)
        yield from self._inner.finish()

    def _event(self, name: str, payload: bytes) -> Iterator[StreamEvent]:
        if name == "error" or b'"errors"' in payload:
            _raise_error(self._sent, name, event_object(payload))
        return self._inner.read(payload)
