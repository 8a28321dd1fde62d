"""Decodes the responses of llama.cpp's own endpoints, streamed or not, into the common completion shape.

Sources: llama.cpp `tools/server/README.md`; the server of xllamacpp 2026.10, tried in November 2026. The response to
several prompts is a list. A stream for several prompts begins with `null` and counts the tokens of each prompt. No
stream has a `[DONE]`.
"""

from collections.abc import Iterable, Mapping, Sequence

import orjson

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    Extras,
    FinishReason,
    StreamEvent,
    Usage,
    as_estimate,
    count_of,
    reported_usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import index_of, malformed, parse_answer, unknown_in
from providers.dialects.shared.read_logprobs import logprobs_of
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import STOP_STRING


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    answer = parse_answer(body)
    results: list[JsonObject] = []
    for result in answer if isinstance(answer, list) else [answer]:
        if not isinstance(result, dict):
            raise malformed("is not a JSON object")
        if is_error(result):
            raise UpstreamError(failure_in_body(sent.target.profile, result))
        results.append(result)
    choices = [_choice(sent, result, position) for position, result in enumerate(results)]
    if len({choice.index for choice in choices}) < len(choices):
        raise malformed("has two choices with one index")
    return Completion(tuple(sorted(choices, key=lambda choice: choice.index)), _usage(results))


def _choice(sent: UpstreamRequest, result: JsonObject, position: int) -> Choice:
    text = result.get("content")
    if not isinstance(text, str):
        raise malformed("has no content")
    end = _finish_chunk(sent, result)
    return Choice(
        index=index_of(result, position),
        text=text + end.text,
        finish_reason=end.finish_reason or "stop",
        native_finish_reason=end.native_finish_reason,
        logprobs=logprobs_of({"content": result.get("completion_probabilities")}, ""),
        matched_stop=end.matched_stop,
        extras=_extras(result),
    )


NOT_PASSED: Mapping[str, str] = {
    "generation_settings": "the request's settings and the server's",
    "prompt": "the request's",
    "model": "the response names the configured model",
    "id_slot": "a slot inside the server",
    "has_new_line": "the text shows it",
}
"""Fields that say nothing about the response, with the reason why each is not passed on. The `tokens` of a stream's
events, which are the token ids of the text, are not passed on either: no client requests them."""

_KNOWN = frozenset(
    {"index", "content", "stop", "stop_type", "stopping_word", "completion_probabilities"}
    | {"tokens_evaluated", "tokens_predicted"}
).union(NOT_PASSED)


def _extras(result: JsonObject) -> Extras | None:
    """Return the engine's own fields of a result, such as its `timings`."""
    own = unknown_in(result, _KNOWN)
    return None if own is None else Extras(choice=own)


_FINISH: dict[str, FinishReason] = {"eos": "stop", "word": "stop", "limit": "length"}
_NO_TOKENS = "none"
"""The engine's finish reason if the call requested no tokens. The engine's OpenAI endpoints report `length` then."""


def _finish_chunk(sent: UpstreamRequest, result: JsonObject) -> Chunk:
    """Return a chunk with the finish reason of a result. Its text is the stop string if the client wants to see that.

    An unknown reason is passed on. Raises UpstreamError.
    """
    kind, word = result.get("stop_type"), result.get("stopping_word")
    if not isinstance(kind, str):
        raise malformed("has no finish reason")
    matched = word if kind == "word" and isinstance(word, str) and word else None
    finish, native = ("length", kind) if kind == _NO_TOKENS else read_finish_reason(kind, _FINISH)
    return Chunk(
        text=matched if matched is not None and STOP_STRING in sent.emulated else "",
        finish_reason=finish,
        native_finish_reason=native,
        matched_stop=matched,
    )


def _usage(results: Sequence[JsonObject]) -> Usage | None:
    """Return the sum of the token counts of all results, one result per prompt; `None` if a result has no counts."""
    prompt = completion = cached = 0
    has_cached = False
    for result in results:
        evaluated, predicted = count_of(result.get("tokens_evaluated")), count_of(result.get("tokens_predicted"))
        if evaluated is None or predicted is None:
            return None
        prompt += evaluated
        completion += predicted
        timings = result.get("timings")
        reused = count_of(timings.get("cache_n")) if isinstance(timings, dict) else None
        if reused is not None:
            has_cached = True
            cached += reused
    return reported_usage(prompt, completion, {"cached_tokens": cached} if has_cached else None)


class LlamaReader:
    """The `Reader` of llama.cpp's events. The stream is complete once the text for every prompt has ended."""

    __slots__ = ("_ended", "_expected", "_latest", "_sent", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._expected = _count_prompts(sent)
        self._ended: set[int] = set()
        self._latest: dict[int, JsonObject] = {}

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if payload == b"null":
            return NOTHING
        result = event_object(payload)
        if is_error(result):
            raise UpstreamError(failure_in_body(self._sent.target.profile, result))
        index, text = index_of(result, 0), result.get("content")
        if not 0 <= index < self._expected:
            raise malformed("has a choice that was not requested")
        text = text if isinstance(text, str) else ""
        if index in self._ended:
            if text:
                raise malformed("goes on after the end of a choice")
            return NOTHING
        self._latest[index] = result
        logprobs = logprobs_of({"content": result.get("completion_probabilities")}, text)
        if result.get("stop") is not True:
            return (Chunk(index, text, logprobs=logprobs),) if text or logprobs else NOTHING
        end = _finish_chunk(self._sent, result)
        self._ended.add(index)
        chunk = Chunk(
            index,
            text + end.text,
            end.finish_reason,
            end.native_finish_reason,
            logprobs=logprobs,
            matched_stop=end.matched_stop,
            extras=_extras(result),
        )
        self.complete = len(self._ended) == self._expected
        usage = _usage([*self._latest.values()]) if self.complete else None
        return (chunk,) if usage is None else (chunk, usage)

    def usage_so_far(self) -> Usage | None:
        return as_estimate(_usage([*self._latest.values()])) if len(self._latest) == self._expected else None


def _count_prompts(sent: UpstreamRequest) -> int:
    """Return the number of prompts in a call, each of which gets a result."""
    if b'"prompt":[' not in sent.body:
        return 1
    prompt: JsonValue = orjson.loads(sent.body).get("prompt")
    listed = isinstance(prompt, list) and bool(prompt) and isinstance(prompt[0], str | list)
    return len(prompt) if isinstance(prompt, list) and listed else 1
