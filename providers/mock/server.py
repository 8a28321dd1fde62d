"""The built-in mock vendor: a pure simulation of an OpenAI-compatible server, for demos and tests without a network.

The mock never waits, never draws a random number and never opens a socket. A response is bytes with delays between
them, and is the same for the same request. Texts depend on the prompt, the seed and the choice index. Tokens are words
of up to 12 letters or digits and single punctuation marks, each with the white space before it, and usage counts them.

The model's name sets how the mock behaves. Several words may be joined with `+` (`echo+slow-20`), and a word that is
not in this table has no effect:

| word                  | the response                                                                                 |
|-----------------------|----------------------------------------------------------------------------------------------|
| `echo`                | is the prompt's own text, or the last message of the user                                    |
| `typed`               | streams with 30 ms before each token, like typing                                            |
| `long-<n>`            | has n tokens, unless the request's limit is lower; all choices together have at most 4096   |
| `empty`               | has no text                                                                                  |
| `script`              | is the next turn of the conversation's script (`providers.mock.script`), if it has one       |
| `slow-<ms>`           | takes that long before each token; a whole body takes as long as its tokens would            |
| `first-<ms>`          | takes that long before its first byte                                                        |
| `error-<status>`      | is an error: 400 401 403 404 408 409 413 422 429 500 502 503 504 529                         |
| `overflow`            | is the error of a prompt that is longer than the context window                              |
| `malformed`           | is not JSON; a stream sends one token first                                                  |
| `cut-<n>`             | breaks off after n tokens, as when a connection is reset; a whole body in its middle         |
| `eof-<n>`             | ends after n tokens as if it were complete; a whole body in its middle                       |
| `hang-<n>`            | stops after n tokens and keeps the connection open; a whole body in its middle               |
| `midstream-error-<n>` | is an error with status 200: after n tokens of a stream, or as the whole body                |

The operator has to configure a model with such words by name. An entry for any model (`mock/*`) only serves harmless
models (`is_harmless`); other models are answered with 404, so that no client chooses how the mock fails.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import orjson

from providers.mock import render, vectors
from providers.mock.errors import RETRY_AFTER, STATUSES, MockError, by_status, overflow
from providers.mock.generate import Generation, MockStyle, generate
from providers.mock.request import MAX_TEXT, MockRequest, parse

End = Literal["eof", "cut", "hang"]


@dataclass(frozen=True, slots=True)
class SimulatedChunk:
    """Bytes of the body, and the delay before them in seconds."""

    delay: float
    data: bytes


@dataclass(frozen=True, slots=True)
class SimulatedResponse:
    """A complete response. A stream's chunks can be iterated once. After the last chunk, the body ends (`eof`), or the
    connection breaks (`cut`) or hangs (`hang`)."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterable[SimulatedChunk]
    end: End = "eof"


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """The words of a model's name. `numbers` has the number of each word that has one, such as 20 for `slow`."""

    words: frozenset[str]
    numbers: Mapping[str, int]

    @property
    def style(self) -> MockStyle:
        return MockStyle("echo" in self.words, "empty" in self.words, self.numbers.get("long"))

    @property
    def token_delay(self) -> float:
        """The delay before each token, in seconds."""
        return self.numbers["slow"] / 1000 if "slow" in self.numbers else 0.03 * ("typed" in self.words)

    @property
    def first_delay(self) -> float:
        """The delay before the first chunk, in seconds."""
        return self.numbers.get("first", 0) / 1000

    @property
    def break_after(self) -> tuple[str, int] | None:
        """The way the body breaks, and the number of tokens before that; `None` if it does not break."""
        return next(((name, self.numbers[name]) for name in _BREAKS if name in self.numbers), None)


FAULTS = frozenset({"overflow", "malformed"})
"""Words of a name that cause faults, besides the numbered words."""

_BREAKS: dict[str, End] = {"cut": "cut", "eof": "eof", "hang": "hang", "midstream-error": "eof"}
_NUMBERED = re.compile(r"(long|slow|first|error|cut|eof|hang|midstream-error)-(\d{1,9})", re.ASCII)
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
_NOT_JSON = b'{"id": "cmpl-'


def is_harmless(model: str) -> bool:
    """Return whether no word of a model's name causes a fault or sets a delay or a length. Any client may use such a
    name."""
    behaviour = _behaviour(model)
    return not behaviour.numbers and behaviour.words.isdisjoint(FAULTS)


def respond(path: str, body: bytes) -> SimulatedResponse:
    """Return the server's response to a POST of `body` to `path`, which is relative to the base URL. Raises nothing."""
    try:
        if vectors.is_task(path):
            return _task_response(path, body)
        request = parse(path, body)
        behaviour = _behaviour(request.model)
        _raise_fault(behaviour, sum(prompt.size for prompt in request.prompts))
        generation = generate(request, behaviour.style)
    except MockError as error:
        return _error(error)
    return (
        _streaming(request, generation, behaviour) if request.stream else _non_streaming(request, generation, behaviour)
    )


def _task_response(path: str, body: bytes) -> SimulatedResponse:
    """Return a response with embeddings or a ranking. The words of the model's name have the same meaning as for text;
    the whole body counts as one token."""
    if len(body) > MAX_TEXT:
        raise overflow(len(body))
    model, fields = vectors.task_model(path, body)
    behaviour = _behaviour(model)
    _raise_fault(behaviour, len(body))
    delay, break_after = behaviour.first_delay + behaviour.token_delay, behaviour.break_after
    if "malformed" in behaviour.words:
        return SimulatedResponse(200, _JSON, (SimulatedChunk(delay, _NOT_JSON),))
    response_body = vectors.task_body(path, model, fields)
    if break_after is None:
        return SimulatedResponse(200, _JSON, (SimulatedChunk(delay, response_body),))
    if break_after[0] == "midstream-error":
        return SimulatedResponse(200, _JSON, (SimulatedChunk(delay, orjson.dumps(by_status(500).body())),))
    return SimulatedResponse(
        200, _JSON, (SimulatedChunk(delay, response_body[: len(response_body) // 2]),), _BREAKS[break_after[0]]
    )


def _behaviour(model: str) -> _Behaviour:
    words = model.split("+")
    found = [match for word in words if (match := _NUMBERED.fullmatch(word))]
    return _Behaviour(frozenset(words), {match[1]: int(match[2]) for match in found})


def _raise_fault(behaviour: _Behaviour, prompt_tokens: int) -> None:
    status = behaviour.numbers.get("error")
    if status in STATUSES:
        raise by_status(status)
    if "overflow" in behaviour.words:
        raise overflow(prompt_tokens)


def _error(error: MockError) -> SimulatedResponse:
    retry = {"retry-after": RETRY_AFTER[error.status]} if error.status in RETRY_AFTER else {}
    return SimulatedResponse(error.status, {**_JSON, **retry}, (SimulatedChunk(0, orjson.dumps(error.body())),))


def _non_streaming(request: MockRequest, generation: Generation, behaviour: _Behaviour) -> SimulatedResponse:
    delay = behaviour.first_delay + behaviour.token_delay * generation.completion_tokens
    break_after = behaviour.break_after
    if "malformed" in behaviour.words:
        return SimulatedResponse(200, _JSON, (SimulatedChunk(delay, _NOT_JSON),))
    if break_after is None:
        return SimulatedResponse(200, _JSON, (SimulatedChunk(delay, render.non_streaming_body(request, generation)),))
    if break_after[0] == "midstream-error":
        return SimulatedResponse(200, _JSON, (SimulatedChunk(delay, orjson.dumps(by_status(500).body())),))
    body = render.non_streaming_body(request, generation)
    return SimulatedResponse(200, _JSON, (SimulatedChunk(delay, body[: len(body) // 2]),), _BREAKS[break_after[0]])


def _streaming(request: MockRequest, generation: Generation, behaviour: _Behaviour) -> SimulatedResponse:
    end: End = (
        "eof" if behaviour.break_after is None or "malformed" in behaviour.words else _BREAKS[behaviour.break_after[0]]
    )
    return SimulatedResponse(200, _EVENTS, _stream_chunks(request, generation, behaviour), end)


def _stream_chunks(request: MockRequest, generation: Generation, behaviour: _Behaviour) -> Iterator[SimulatedChunk]:
    """Yield the chunks of a stream, each generated when it is read."""
    frames = render.stream(request, generation)
    tail: bytes = render.DONE
    if "malformed" in behaviour.words:
        frames, tail = _up_to(frames, 1), b"data: " + _NOT_JSON + b"\n\n"
    elif behaviour.break_after is not None:
        name, count = behaviour.break_after
        frames = _up_to(frames, count)
        tail = render.frame(by_status(500).body()) if name == "midstream-error" else b""
    first_delay = behaviour.first_delay
    for frame in frames:
        yield SimulatedChunk(first_delay + behaviour.token_delay * frame.token, frame.data)
        first_delay = 0.0
    if tail:
        yield SimulatedChunk(first_delay, tail)


def _up_to(frames: Iterable[render.MockFrame], count: int) -> Iterator[render.MockFrame]:
    """Yield the frames before token `count` + 1, but never all frames, so that the last choice is never finished."""
    pending: list[render.MockFrame] = []
    tokens = 0
    for frame in frames:
        pending.append(frame)
        if frame.token:
            if tokens == count:
                yield from pending[:-1]
                return
            tokens += 1
            yield from pending
            pending.clear()
