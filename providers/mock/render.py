"""Renderer of candidates as OpenAI's JSON: non-streaming responses and stream frames.

Shapes: OpenAI OpenAPI 2.3.0 `CreateCompletionResponse`, `CreateChatCompletionResponse` and its stream form. A choice's
`stop_reason` is vLLM's field for the stop string that ended it; `reasoning_content` is DeepSeek's field for the
reasoning of a scripted turn.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.mock.generate import Candidate, Generation, MockToken
from providers.mock.request import MockLogprobs, MockRequest
from providers.mock.vocabulary import Draw

CREATED = 1704067200
"""The `created` of every response, 2024-01-01, because the mock has no clock."""
CallIds = Callable[[int], str]
"""A function that returns the random part of a call's id. Its argument is a number that is unique to the call: the
index of the choice, if the choice has one call."""

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class MockFrame:
    """One server-sent event. `token` is true if it carries one of the text's tokens."""

    data: bytes
    token: bool


def frame(data: JsonValue) -> bytes:
    """Return one server-sent event."""
    return b"data: " + orjson.dumps(data) + b"\n\n"


def non_streaming_body(request: MockRequest, generation: Generation) -> bytes:
    """Return the body of a non-streaming response."""
    choice = _chat_choice if request.chat else _text_choice
    body = _head(request, "chat.completion" if request.chat else "text_completion")
    ids = _call_ids(request)
    body["choices"] = [choice(request, ids, candidate) for candidate in generation.choices]
    body["usage"] = _usage(generation)
    return orjson.dumps(body)


def stream(request: MockRequest, generation: Generation) -> Iterator[MockFrame]:
    """Yield the frames before `[DONE]`. The choices alternate, token by token."""
    events = _chat_events if request.chat else _text_events
    head = _head(request, "chat.completion.chunk" if request.chat else "text_completion")
    if request.include_usage:
        head["usage"] = None
    ids = _call_ids(request)
    streams = [events(request, ids, candidate) for candidate in generation.choices]
    for event in chain.from_iterable(zip_longest(*streams)):
        if event is not None:
            token, choice = event
            yield MockFrame(frame({**head, "choices": [choice]}), token)
    if request.include_usage:
        yield MockFrame(frame({**head, "choices": [], "usage": _usage(generation)}), token=False)


def _head(request: MockRequest, kind: str) -> JsonObject:
    unique = _unique(request)
    return {
        "id": f"{'chatcmpl' if request.chat else 'cmpl'}-{unique}",
        "object": kind,
        "created": CREATED,
        "model": request.model,
        "system_fingerprint": "fp_mock",
    }


def _unique(request: MockRequest) -> str:
    return f"{Draw(request.model, request.seed, *[prompt.text for prompt in request.prompts]).below(2**31):08x}"


def _call_ids(request: MockRequest) -> CallIds:
    """Return the function that makes the random parts of call ids."""
    draws = Draw.each(request.model, request.seed, *[prompt.text for prompt in request.prompts])
    return lambda index: f"{draws(index).below(2**31):08x}"


def _usage(generation: Generation) -> JsonObject:
    return {
        "prompt_tokens": generation.prompt_tokens,
        "completion_tokens": generation.completion_tokens,
        "total_tokens": generation.prompt_tokens + generation.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": sum(len(each.thought) for each in generation.choices)},
    }


def _ending(candidate: Candidate) -> JsonObject:
    ending: JsonObject = {"finish_reason": candidate.finish}
    if candidate.matched is not None:
        ending["stop_reason"] = candidate.matched
    return ending


def _text_choice(request: MockRequest, ids: CallIds, candidate: Candidate) -> JsonObject:
    logprobs = _logprobs(request.logprobs, candidate.tokens)
    return {"index": candidate.index, "text": candidate.text, "logprobs": logprobs, **_ending(candidate)}


def _text_events(request: MockRequest, ids: CallIds, candidate: Candidate) -> Iterator[tuple[bool, JsonObject]]:
    for token in candidate.tokens:
        logprobs = _logprobs(request.logprobs, (token,))
        choice: JsonObject = {"index": candidate.index, "text": token.text, "logprobs": logprobs, "finish_reason": None}
        yield True, choice
    yield False, {"index": candidate.index, "text": "", "logprobs": None, **_ending(candidate)}


def _chat_choice(request: MockRequest, ids: CallIds, candidate: Candidate) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": candidate.text, "refusal": None}
    if candidate.tool is not None:
        message["content"] = None
        message["tool_calls"] = [_call(ids(candidate.index), candidate.tool, candidate.text)]
    if candidate.thought:
        message["reasoning_content"] = "".join(candidate.thought)
    if candidate.calls:
        message["content"] = candidate.text or None
        message["tool_calls"] = [
            _call(ids(candidate.index + number * request.n), call.name, "".join(call.arguments))
            for number, call in enumerate(candidate.calls)
        ]
    logprobs = _logprobs(request.logprobs, candidate.tokens)
    return {"index": candidate.index, "message": message, "logprobs": logprobs, **_ending(candidate)}


def _chat_events(request: MockRequest, ids: CallIds, candidate: Candidate) -> Iterator[tuple[bool, JsonObject]]:
    first: JsonObject = {"role": "assistant", "content": ""}
    if candidate.tool is not None:
        forced_call = _call(ids(candidate.index), candidate.tool, "")
        first = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **forced_call}]}
    yield False, _delta(candidate, first)
    for text in candidate.thought:
        yield True, _delta(candidate, {"reasoning_content": text})
    for token in candidate.tokens:
        delta: JsonObject = {"content": token.text}
        if candidate.tool is not None:
            delta = {"tool_calls": [{"index": 0, "function": {"arguments": token.text}}]}
        logprobs = _logprobs(request.logprobs, (token,))
        yield True, {"index": candidate.index, "delta": delta, "logprobs": logprobs, "finish_reason": None}
    for number, call in enumerate(candidate.calls):
        call_start = _call(ids(candidate.index + number * request.n), call.name, "")
        yield False, _delta(candidate, {"tool_calls": [{"index": number, **call_start}]})
        for text in call.arguments:
            yield True, _delta(candidate, {"tool_calls": [{"index": number, "function": {"arguments": text}}]})
    yield False, {"index": candidate.index, "delta": {}, "logprobs": None, **_ending(candidate)}


def _delta(candidate: Candidate, delta: JsonObject) -> JsonObject:
    return {"index": candidate.index, "delta": delta, "logprobs": None, "finish_reason": None}


def _call(unique: str, name: str, arguments: str) -> JsonObject:
    return {"id": f"call_{unique}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _logprobs(wanted: MockLogprobs | None, tokens: Sequence[MockToken]) -> JsonObject | None:
    if wanted is None:
        return None
    return (
        _legacy(wanted, tokens)
        if wanted.legacy
        else {"content": [_content(token) for token in tokens], "refusal": None}
    )


def _legacy(wanted: MockLogprobs, tokens: Sequence[MockToken]) -> JsonObject:
    tops: list[JsonValue] = [None if token.logprob is None else dict(token.top) for token in tokens]
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": tops if wanted.top else None,
        "text_offset": [token.offset for token in tokens],
    }


def _content(token: MockToken) -> JsonObject:
    listed = [_entry(text, logprob) for text, logprob in token.top]
    return {**_entry(token.text, token.logprob), "top_logprobs": [*listed]}


def _entry(text: str, logprob: float | None) -> JsonObject:
    return {"token": text, "logprob": logprob, "bytes": [*text.encode()]}
