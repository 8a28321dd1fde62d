"""What the tests of Bedrock's dialects share: targets, requests, and the fixtures as frames.

A stream's fixture has one frame on each line, `event TYPE JSON`, `exception TYPE JSON` or `error CODE WORDS`; one of
InvokeModel has the model's own JSON on each line.
"""

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson
import pytest
from pydantic import SecretStr

from providers.auth import Credential
from providers.completion import StreamEvent
from providers.dialect import Dialect, Target, Timeouts, UpstreamRequest
from providers.eventstream import encode
from providers.failure import Failure, FailureKind, Refusal, UpstreamError
from providers.profiles import load_profiles
from providers.registry import DIALECTS
from providers.unified import JsonObject, UnifiedRequest
from tests.providers.dialects.anthropic_kit import chunks

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "bedrock"
HAIKU = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
SIZES = (1, 7, 4096)


def target(model: str = HAIKU, profile: str = "bedrock", name: str | None = None) -> Target:
    """A deployment of a model; `name` is what the table calls it."""
    row = load_profiles()[profile]
    return Target(
        vendor=profile,
        model=name or model,
        deployment="default",
        upstream_model=model,
        profile=row,
        dialect=DIALECTS[row.dialect],
        base_url="https://bedrock-runtime.us-east-1.amazonaws.com",
        credential=Credential("bearer", key=SecretStr("ABSKsecret")),
        timeouts=Timeouts(5, 60, 120, 600),
        max_output_tokens=8192,
    )


def encoded(request: UnifiedRequest, to: Target) -> UpstreamRequest:
    """The upstream request."""
    return to.dialect.encode(request, to)


def body_of(request: UnifiedRequest, to: Target) -> JsonObject:
    """Its body."""
    body: JsonObject = orjson.loads(encoded(request, to).body)
    return body


def refusal_of(request: UnifiedRequest, to: Target) -> Refusal:
    """Why there is none."""
    with pytest.raises(Refusal) as caught:
        to.dialect.encode(request, to)
    return caught.value


def event(kind: str, payload: bytes) -> bytes:
    """One event's frame."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode(headers, payload)


def frame(line: str) -> bytes:
    """One line of a fixture as a frame."""
    what, kind, rest = line.split(" ", 2)
    if what == "event":
        return event(kind, rest.encode())
    if what == "error":
        return encode({":message-type": "error", ":error-code": kind, ":error-message": rest}, b"")
    headers = {f":{what}-type": kind, ":content-type": "application/json", ":message-type": what}
    return encode(headers, rest.encode())


def chunk(payload: bytes) -> bytes:
    """A piece of a model's own stream, as InvokeModel frames it."""
    return event("chunk", orjson.dumps({"bytes": b64encode(payload).decode(), "p": "abcdefghijklmnop"}))


def frames(name: str) -> list[bytes]:
    """The frames of a fixture of ConverseStream."""
    return [frame(line) for line in (FIXTURES / "streams" / f"{name}.events").read_text("utf-8").splitlines()]


def stream(name: str) -> bytes:
    """The same in one."""
    return b"".join(frames(name))


def invoked(name: str) -> bytes:
    """A fixture of InvokeModel's stream."""
    return b"".join(map(chunk, (FIXTURES / "invoke" / f"{name}.events").read_bytes().splitlines()))


def answer(name: str, folder: str = "answers") -> bytes:
    """A whole answer's fixture."""
    return (FIXTURES / folder / f"{name}.json").read_bytes()


def decoded(dialect: Dialect, data: bytes, size: int, sent: UpstreamRequest) -> list[StreamEvent]:
    """Every event of a stream fed in pieces of `size` bytes. Raises UpstreamError."""
    decoder = dialect.stream(sent)
    events: list[StreamEvent] = []
    for start in range(0, len(data), size):
        events += decoder.feed(data[start : start + size])
    events += decoder.finish()
    assert decoder.complete
    return events


def failure_of(decode: Callable[[], object]) -> Failure:
    """What went wrong."""
    with pytest.raises(UpstreamError) as caught:
        decode()
    return caught.value.failure


def hold_cuts(dialect: Dialect, data: bytes, sent: UpstreamRequest) -> None:
    """A stream gives the same in any pieces; cut anywhere it is never a success, and shows no finish."""
    whole = decoded(dialect, data, len(data), sent)
    for size in SIZES:
        assert decoded(dialect, data, size, sent) == whole
    for cut in range(len(data)):
        decoder = dialect.stream(sent)
        events = list(decoder.feed(data[:cut]))
        assert not decoder.complete
        assert all(each.finish_reason is None for each in chunks(events))
        assert failure_of(partial(list, decoder.finish())).kind is FailureKind.TRUNCATED
