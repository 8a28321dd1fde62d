"""The built-in mock vendor: a pure simulation of an OpenAI-compatible server, for demos and tests without a network.

Never waits, never draws a random number and never opens a socket: an answer is bytes with the delays between them, the
same for the same request. Texts come from prompt, seed and choice index; tokens are words of up to 12 letters or digits
and single marks, each with the white space before it, and usage counts them.

The model's name says how the mock behaves; several words may be joined with `+` (`echo+slow-20`), and a word that is
not in the table means nothing:

| word                  | the answer                                                                                   |
|-----------------------|----------------------------------------------------------------------------------------------|
| `echo`                | is the prompt's own text, or the last message of the user                                    |
| `typed`               | streams with 30 ms before each token, for people to see                                      |
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

An operator has to name a model of such words: under an entry for any model (`mock/*`) only harmless ones exist
(`is_harmless`), and the others are answered with 404, so that no client chooses how the mock fails.
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
class MockPiece:
    """Bytes of the body, and the delay before them in seconds."""

    delay: float
    data: bytes


@dataclass(frozen=True, slots=True)
class MockAnswer:
    """A whole answer; a stream's pieces can be iterated once. After them the body ends (`eof`), or the connection
    breaks (`cut`) or hangs (`hang`)."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterable[MockPiece]
    end: End = "eof"


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """The words of a model's name. `numbers` holds the numbered ones."""

    words: frozenset[str]
    numbers: Mapping[str, int]

    @property
    def style(self) -> MockStyle:
        return MockStyle("echo" in self.words, "empty" in self.words, self.numbers.get("long"))

    @property
    def pace(self) -> float:
        """Seconds before each token."""
        return self.numbers["slow"] / 1000 if "slow" in self.numbers else 0.03 * ("typed" in self.words)

    @property
    def first(self) -> float:
        """Seconds before the first piece."""
        return self.numbers.get("first", 0) / 1000

    @property
    def breaks(self) -> tuple[str, int] | None:
        """How the body breaks, and after how many tokens."""
        return next(((name, self.numbers[name]) for name in _BREAKS if name in self.numbers), None)


FAULTS = frozenset({"overflow", "malformed"})
"""Words of a name that cause faults, besides the numbered ones."""

_BREAKS: dict[str, End] = {"cut": "cut", "eof": "eof", "hang": "hang", "midstream-error": "eof"}
_NUMBERED = re.compile(r"(long|slow|first|error|cut|eof|hang|midstream-error)-(\d{1,9})", re.ASCII)
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
_NOT_JSON = b'{"id": "cmpl-'


def is_harmless(model: str) -> bool:
    """Return whether a model's name causes no faults, delays or lengths, so that any client may use it."""
    behaviour = _behaviour(model)
    return not behaviour.numbers and behaviour.words.isdisjoint(FAULTS)


def answer(path: str, body: bytes) -> MockAnswer:
    """Return the server's answer to a POST of `body` to `path`, which is relative to the base URL. Raises nothing."""
    try:
        if vectors.is_task(path):
            return _of_task(path, body)
        request = parse(path, body)
        behaviour = _behaviour(request.model)
        _raise_fault(behaviour, sum(prompt.size for prompt in request.prompts))
        generation = generate(request, behaviour.style)
    except MockError as error:
        return _error(error)
    return _streamed(request, generation, behaviour) if request.stream else _whole(request, generation, behaviour)


def _of_task(path: str, body: bytes) -> MockAnswer:
    """Return an answer that is no text; the words of the model's name mean the same, a token being the whole body."""
    if len(body) > MAX_TEXT:
        raise overflow(len(body))
    model, fields = vectors.task_model(path, body)
    behaviour = _behaviour(model)
    _raise_fault(behaviour, len(body))
    delay, breaks = behaviour.first + behaviour.pace, behaviour.breaks
    if "malformed" in behaviour.words:
        return MockAnswer(200, _JSON, (MockPiece(delay, _NOT_JSON),))
    answered = vectors.task_answer(path, model, fields)
    if breaks is None:
        return MockAnswer(200, _JSON, (MockPiece(delay, answered),))
    if breaks[0] == "midstream-error":
        return MockAnswer(200, _JSON, (MockPiece(delay, orjson.dumps(by_status(500).body())),))
    return MockAnswer(200, _JSON, (MockPiece(delay, answered[: len(answered) // 2]),), _BREAKS[breaks[0]])


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


def _error(error: MockError) -> MockAnswer:
    retry = {"retry-after": RETRY_AFTER[error.status]} if error.status in RETRY_AFTER else {}
    return MockAnswer(error.status, {**_JSON, **retry}, (MockPiece(0, orjson.dumps(error.body())),))


def _whole(request: MockRequest, generation: Generation, behaviour: _Behaviour) -> MockAnswer:
    delay = behaviour.first + behaviour.pace * generation.completion_tokens
    breaks = behaviour.breaks
    if "malformed" in behaviour.words:
        return MockAnswer(200, _JSON, (MockPiece(delay, _NOT_JSON),))
    if breaks is None:
        return MockAnswer(200, _JSON, (MockPiece(delay, render.whole(request, generation)),))
    if breaks[0] == "midstream-error":
        return MockAnswer(200, _JSON, (MockPiece(delay, orjson.dumps(by_status(500).body())),))
    body = render.whole(request, generation)
    return MockAnswer(200, _JSON, (MockPiece(delay, body[: len(body) // 2]),), _BREAKS[breaks[0]])


def _streamed(request: MockRequest, generation: Generation, behaviour: _Behaviour) -> MockAnswer:
    end: End = "eof" if behaviour.breaks is None or "malformed" in behaviour.words else _BREAKS[behaviour.breaks[0]]
    return MockAnswer(200, _EVENTS, _played(request, generation, behaviour), end)


def _played(request: MockRequest, generation: Generation, behaviour: _Behaviour) -> Iterator[MockPiece]:
    """Yield the pieces of a stream, each made when it is read."""
    frames = render.stream(request, generation)
    tail: bytes = render.DONE
    if "malformed" in behaviour.words:
        frames, tail = _up_to(frames, 1), b"data: " + _NOT_JSON + b"\n\n"
    elif behaviour.breaks is not None:
        name, count = behaviour.breaks
        frames = _up_to(frames, count)
        tail = render.frame(by_status(500).body()) if name == "midstream-error" else b""
    first = behaviour.first
    for frame in frames:
        yield MockPiece(first + behaviour.pace * frame.token, frame.data)
        first = 0.0
    if tail:
        yield MockPiece(first, tail)


def _up_to(frames: Iterable[render.MockFrame], count: int) -> Iterator[render.MockFrame]:
    """Yield the frames before token `count` + 1, but not all of them, so that the last choice is never finished."""
    held: list[render.MockFrame] = []
    tokens = 0
    for frame in frames:
        held.append(frame)
        if frame.token:
            if tokens == count:
                yield from held[:-1]
                return
            tokens += 1
            yield from held
            held.clear()
