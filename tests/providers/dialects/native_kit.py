"""What the tests of the native dialects share: targets of a profile, requests, fixtures, and ways to read streams."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import orjson
import pytest

from providers.auth import Credential
from providers.completion import Choice, Chunk, Completion, StreamEvent, Usage
from providers.dialect import Target, Timeouts, UpstreamRequest
from providers.failure import FailureKind, Refusal, UpstreamError
from providers.gather import Gatherer
from providers.profiles import load_profiles
from providers.registry import DIALECTS
from providers.unified import (
    ChatPrompt,
    JsonObject,
    JsonValue,
    Operation,
    Params,
    Prompt,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SIZES = (1, 7, 4096)


def target_of(profile: str, model: str = "tiny", **members: object) -> Target:
    """A deployment of a row at its own address, or at a local one."""
    row = load_profiles()[profile]
    target = Target(
        vendor=profile,
        model=model,
        deployment="default",
        upstream_model=model,
        profile=row,
        dialect=DIALECTS[row.dialect],
        base_url=row.base_url or "http://host",
        credential=Credential(),
        timeouts=Timeouts(5, 60, 120, 600),
    )
    for name, value in members.items():
        object.__setattr__(target, name, value)
    return target


def text_request(text: str = "Say hi", /, **params: object) -> UnifiedRequest:
    """A completion of one prompt."""
    return _request(Operation.COMPLETIONS, TextPrompt((text,)), params)


def token_request(*ids: int, **params: object) -> UnifiedRequest:
    """A completion of one prompt in token ids."""
    return _request(Operation.COMPLETIONS, TokenPrompt((ids,)), params)


def chat_request(*messages: JsonObject, **params: object) -> UnifiedRequest:
    """A chat; without messages it is one of the user's."""
    return _request(Operation.CHAT, ChatPrompt(messages or (user("hi"),)), params)


def _request(operation: Operation, prompt: Prompt, params: dict[str, object]) -> UnifiedRequest:
    return UnifiedRequest(operation, "vendor/tiny", prompt, cast(Params, params))


def user(content: JsonValue) -> JsonObject:
    """A message of the user."""
    return {"role": "user", "content": content}


def tool(name: str = "look", **function: JsonValue) -> JsonObject:
    """A function to offer."""
    parameters: JsonObject = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    return {"type": "function", "function": {"name": name, "parameters": parameters, **function}}


def sent_for(request: UnifiedRequest, target: Target) -> UpstreamRequest:
    """The upstream request."""
    return target.dialect.encode(request, target)


def body_for(request: UnifiedRequest, target: Target) -> JsonObject:
    """Its body."""
    return cast(JsonObject, orjson.loads(sent_for(request, target).body))


def refusal_for(request: UnifiedRequest, target: Target) -> Refusal:
    """Why it cannot be honoured."""
    with pytest.raises(Refusal) as caught:
        target.dialect.encode(request, target)
    return caught.value


def fixture(*path: str) -> bytes:
    """The bytes of a fixture."""
    return FIXTURES.joinpath(*path).read_bytes()


def names_in(*path: str) -> list[str]:
    """The files of a folder of fixtures."""
    return sorted(found.name for found in FIXTURES.joinpath(*path).iterdir())


def decoded(sent: UpstreamRequest, body: bytes) -> Completion:
    """A whole answer."""
    return sent.target.dialect.decode(sent, body)


def only(completion: Completion) -> Choice:
    """Its one choice."""
    (choice,) = completion.choices
    return choice


def decode_failure(sent: UpstreamRequest, body: bytes) -> FailureKind:
    """What is wrong with a whole answer."""
    with pytest.raises(UpstreamError) as caught:
        sent.target.dialect.decode(sent, body)
    return caught.value.failure.kind


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """The data in pieces."""
    return (data[start : start + size] for start in range(0, len(data), size))


def streamed(sent: UpstreamRequest, data: bytes, size: int = 4096) -> list[StreamEvent]:
    """Every event of a stream that ends well."""
    decoder = sent.target.dialect.stream(sent)
    events = [event for piece in pieces(data, size) for event in decoder.feed(piece)]
    events += decoder.finish()
    assert decoder.complete
    return events


def stream_failure(
    sent: UpstreamRequest, data: bytes, size: int = 4096, expected: int = 1
) -> tuple[list[StreamEvent], UpstreamError]:
    """What came of a stream that breaks, and why it broke; not all of the `expected` choices may have ended."""
    decoder = sent.target.dialect.stream(sent)
    events: list[StreamEvent] = []
    error: UpstreamError | None = None
    try:
        for piece in pieces(data, size):
            events.extend(decoder.feed(piece))
        events.extend(decoder.finish())
    except UpstreamError as broken:
        error = broken
    assert error is not None
    assert not decoder.complete
    assert sum(chunk.finish_reason is not None for chunk in chunks(events)) < expected
    return events, error


def chunks(events: list[StreamEvent]) -> list[Chunk]:
    """The chunks alone."""
    return [event for event in events if isinstance(event, Chunk)]


def text_of(events: list[StreamEvent]) -> str:
    """The text of all chunks."""
    return "".join([chunk.text for chunk in chunks(events)])


def usage_in(events: list[StreamEvent]) -> Usage | None:
    """The usage that counts."""
    return next((event for event in reversed(events) if isinstance(event, Usage)), None)


def gathered(events: list[StreamEvent], count: int = 1) -> Completion:
    """The whole that the events make."""
    gatherer = Gatherer(count)
    for event in events:
        gatherer.add(event)
    return gatherer.completion()


def check_pieces(sent: UpstreamRequest, data: bytes) -> None:
    """The same events come whatever the pieces, and cut at two places anywhere."""
    whole = streamed(sent, data, len(data))
    for size in SIZES:
        assert streamed(sent, data, size) == whole
    for place in range(len(data)):
        decoder = sent.target.dialect.stream(sent)
        events = [*decoder.feed(data[:place]), *decoder.feed(data[place:]), *decoder.finish()]
        assert events == whole


def check_cuts(sent: UpstreamRequest, data: bytes, declared: int, expected: int = 1) -> None:
    """A stream that ends before byte `declared` is never a success, and one that ends later is the whole of it."""
    whole = streamed(sent, data, len(data))
    for place in range(declared):
        _, error = stream_failure(sent, data[:place], expected=expected)
        assert error.failure.kind is FailureKind.TRUNCATED, place
    for place in range(declared, len(data)):
        assert streamed(sent, data[:place]) == whole
