"""Targets of a profile, requests, fixtures, and ways to read streams for the tests of all dialects."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import orjson

from providers.completion import Choice, Chunk, Completion, StreamEvent, Usage, has_content
from providers.dialect import UpstreamRequest
from providers.dialects.registry import DIALECTS
from providers.emulation.collect_stream import Gatherer
from providers.failure import FailureKind, Refusal, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.target import Target, Timeouts
from providers.unified_request import (
    ChatPrompt,
    Guided,
    Operation,
    Params,
    Prompt,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)
from providers.vendor_credential import Credential
from tests.providers.kit import failure_of, refusal_of
from tests.support.dialects import fixture_path
from tests.support.nightly import by_day

SIZES = (1, 7, 4096)


def target_of(profile: str, model: str = "tiny", **members: object) -> Target:
    """Return a deployment of a profile at the profile's address, or at a local one."""
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
    return _request(Operation.COMPLETIONS, TextPrompt((text,)), params)


def token_request(*ids: int, **params: object) -> UnifiedRequest:
    """Return a completion of one prompt in token ids."""
    return _request(Operation.COMPLETIONS, TokenPrompt((ids,)), params)


def chat_request(*messages: JsonObject, **params: object) -> UnifiedRequest:
    """Return a chat request; without messages, it has one user message."""
    return _request(Operation.CHAT, ChatPrompt(messages or (user("hi"),)), params)


def _request(operation: Operation, prompt: Prompt, params: dict[str, object]) -> UnifiedRequest:
    return UnifiedRequest(operation, "vendor/tiny", prompt, cast(Params, params))


def user(content: JsonValue) -> JsonObject:
    return {"role": "user", "content": content}


def tool(name: str = "look", **function: JsonValue) -> JsonObject:
    parameters: JsonObject = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    return {"type": "function", "function": {"name": name, "parameters": parameters, **function}}


def as_given(**params: object) -> list[tuple[dict[str, object], dict[str, object]]]:
    """Return a test row for each field: the request's field, and the same field in the body."""
    return [({name: value}, {name: value}) for name, value in params.items()]


def refused(**params: object) -> list[tuple[dict[str, object], str]]:
    """Return a test row for each field: the request's field, and the client's name for it in the refusal."""
    named = {name: f"guided_{value.kind}" for name, value in params.items() if isinstance(value, Guided)}
    return [({name: value}, named.get(name, name)) for name, value in params.items()]


def sent_for(request: UnifiedRequest, target: Target) -> UpstreamRequest:
    return target.dialect.encode(request, target)


def body_for(request: UnifiedRequest, target: Target) -> JsonObject:
    return cast(JsonObject, orjson.loads(sent_for(request, target).body))


def refusal_for(request: UnifiedRequest, target: Target) -> Refusal:
    return refusal_of(target.dialect.encode, request, target)


def check_refused_by_name(request: UnifiedRequest, target: Target, param: str) -> None:
    """Check that a request is refused for one field, by a message that names the field and the deployment."""
    refusal = refusal_for(request, target)
    assert refusal.param == param
    assert f"'{param}'" in refusal.message
    assert target.name in refusal.message


def fixture(*path: str) -> bytes:
    return fixture_path("/".join(path)).read_bytes()


def reader(dialect: str, folder: str, suffix: str) -> Callable[[str], bytes]:
    """Return a function from the names of a folder's fixtures, without their suffix, to their bytes."""
    return lambda name: fixture(dialect, folder, f"{name}.{suffix}")


def names_in(*path: str) -> list[str]:
    return sorted(found.name for found in fixture_path("/".join(path)).iterdir())


def decoded(sent: UpstreamRequest, body: bytes) -> Completion:
    return sent.target.dialect.decode(sent, body)


def only(completion: Completion) -> Choice:
    (choice,) = completion.choices
    return choice


def decode_failure(sent: UpstreamRequest, body: bytes) -> FailureKind:
    """Return the kind of failure that decoding a non-streaming response raises."""
    return failure_of(sent.target.dialect.decode, sent, body).kind


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def streamed(sent: UpstreamRequest, data: bytes, size: int = 4096) -> list[StreamEvent]:
    """Return every event of a stream that ends well."""
    decoder = sent.target.dialect.stream(sent)
    events = [event for piece in pieces(data, size) for event in decoder.feed(piece)]
    events += decoder.finish()
    assert decoder.complete
    return events


def stream_failure(
    sent: UpstreamRequest, data: bytes, size: int = 4096, expected: int = 1
) -> tuple[list[StreamEvent], UpstreamError]:
    """Return the events of a stream that breaks, and the error. Fewer than the `expected` choices may have ended."""
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
    return [event for event in events if isinstance(event, Chunk)]


def text_of(events: list[StreamEvent]) -> str:
    return "".join([chunk.text for chunk in chunks(events)])


def usage_in(events: list[StreamEvent]) -> Usage | None:
    return next((event for event in reversed(events) if isinstance(event, Usage)), None)


def gathered(events: list[StreamEvent], count: int = 1) -> Completion:
    """Return the complete response that the events form."""
    gatherer = Gatherer(count)
    for event in events:
        gatherer.add(event)
    return gatherer.completion()


_FRAMED = re.compile(rb".+?(?:\r\n\r\n|\n\n|\n(?=\{))|.+", re.DOTALL)


def single_events(data: bytes) -> list[bytes]:
    """Return a stream in chunks of one event each: lines, SSE events, or Amazon's frames."""
    if data[:1] != b"\0":
        return _FRAMED.findall(data)
    frames, at = list[bytes](), 0
    while at < len(data):
        end = at + int.from_bytes(data[at : at + 4], "big")
        frames.append(data[at:end])
        at = end
    return frames


EACH_BYTE = 1500
"""Streams up to this number of bytes are cut at every byte in the nightly run; every dialect has such streams."""


def cut_places(data: bytes) -> Iterator[int]:
    """Yield the positions at which a stream is cut.

    In the nightly run these are all bytes up to EACH_BYTE, and beyond it some bytes and the bytes around line ends,
    because the cost grows with the square of the length. In every other run there are fewer.
    """
    each, step, around = by_day((3, 50, 1), (1, 5, 3))
    for place in range(len(data)):
        stride = each if place < EACH_BYTE else step
        if place % stride == 0 or b"\n" in data[max(0, place - around) : place + around]:
            yield place


def check_pieces(sent: UpstreamRequest, data: bytes) -> None:
    """Assert that the events are the same for chunks of several sizes, for one event per chunk, and for a cut at any of
    `cut_places`. With one event per chunk, the call's body is freed after the first content."""
    whole = streamed(sent, data, len(data))
    for size in SIZES:
        assert streamed(sent, data, size) == whole
    single = single_events(data)
    assert b"".join(single) == data
    halves = [half for event in single for half in (event[: len(event) // 2], event[len(event) // 2 :])]
    for cut in (single, [*halves[:6], *single[3:]]):
        assert _without_body(sent, cut) == whole
    for place in cut_places(data):
        decoder = sent.target.dialect.stream(sent)
        events = [*decoder.feed(data[:place]), *decoder.feed(data[place:]), *decoder.finish()]
        assert events == whole


def _without_body(sent: UpstreamRequest, pieces: list[bytes]) -> list[StreamEvent]:
    sent = replace(sent)
    decoder = sent.target.dialect.stream(sent)
    events: list[StreamEvent] = []
    for piece in pieces:
        events += decoder.feed(piece)
        if any(isinstance(event, Chunk) and has_content(event) for event in events):
            sent.free_body()
    return [*events, *decoder.finish()]


def check_cuts(sent: UpstreamRequest, data: bytes, declared: int, expected: int = 1) -> None:
    """Assert that a stream that ends before byte `declared` is TRUNCATED, and that a longer one is complete."""
    whole = streamed(sent, data, len(data))
    for place in (each for each in cut_places(data) if each < declared):
        _, error = stream_failure(sent, data[:place], expected=expected)
        assert error.failure.kind is FailureKind.TRUNCATED, place
    for place in range(declared, len(data)):
        assert streamed(sent, data[:place]) == whole
