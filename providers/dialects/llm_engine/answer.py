"""Decodes the responses of LLM Engine's completions, streamed or not, into the common completion shape.

Sources: scale-llm-engine 0.0.0beta45 `CompletionSyncV1Response`, `CompletionStreamV1Response`. Responses have no finish
reason, token counts grow from event to event, and errors come with status 200.
"""

from collections.abc import Iterable

import orjson

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    StreamEvent,
    TokenLogprob,
    Usage,
    count_of,
    partial_usage,
    reported_usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.prompt import guess_finish
from providers.dialects.shared.read_json import json_object, malformed
from providers.dialects.shared.read_logprobs import logprob
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    output = _output(sent, json_object(body))
    prompt, generated = _counts(output)
    finish = guess_finish(sent.target, _limit(sent), prompt, generated)
    tokens = output.get("tokens")
    scored = _logprobs(tokens) if isinstance(tokens, list) else None
    usage = reported_usage(prompt, generated)
    return Completion((Choice(0, _text(output), finish, logprobs=scored),), usage)


class EngineReader:
    """The `Reader` of LLM Engine's events."""

    __slots__ = ("_generated", "_limit", "_prompt", "_sent", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._limit = _limit(sent)
        self._prompt: int | None = None
        self._generated: int | None = None

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        output = _output(self._sent, event_object(payload))
        text, token = _text(output), output.get("token")
        scored = _logprobs([token]) if isinstance(token, dict) else None
        prompt, generated = _counts(output)
        self._prompt = self._prompt if prompt is None else prompt
        self._generated = self._generated if generated is None else generated
        if output.get("finished") is not True:
            return (Chunk(text=text, logprobs=scored),) if text or scored else NOTHING
        self.complete = True
        finish = guess_finish(self._sent.target, self._limit, self._prompt, self._generated)
        chunk = Chunk(0, text, finish, logprobs=scored)
        usage = reported_usage(self._prompt, self._generated)
        return (chunk,) if usage is None else (chunk, usage)

    def usage_so_far(self) -> Usage | None:
        return partial_usage(self._prompt, self._generated)


def _limit(sent: UpstreamRequest) -> int:
    limit: int = orjson.loads(sent.body)["max_new_tokens"]
    return limit


def _output(sent: UpstreamRequest, answer: JsonObject) -> JsonObject:
    if is_error(answer):
        raise UpstreamError(failure_in_body(sent.target.profile, answer))
    output = answer.get("output")
    if not isinstance(output, dict):
        raise malformed("has no output")
    return output


def _text(output: JsonObject) -> str:
    text = output.get("text")
    if not isinstance(text, str):
        raise malformed("has no text")
    return text


def _counts(output: JsonObject) -> tuple[int | None, int | None]:
    return count_of(output.get("num_prompt_tokens")), count_of(output.get("num_completion_tokens"))


def _logprobs(tokens: list[JsonValue]) -> ContentLogprobs:
    entries = [token for token in tokens if isinstance(token, dict)]
    return ContentLogprobs(
        tuple([TokenLogprob(str(entry.get("token", "")), logprob(entry.get("log_prob"))) for entry in entries])
    )
