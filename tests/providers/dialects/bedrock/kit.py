"""Targets, and fixtures as frames, for the tests of Bedrock's dialects.

A stream's fixture has one frame on each line, `event TYPE JSON`, `exception TYPE JSON` or `error CODE WORDS`; one of
InvokeModel has the model's own JSON on each line.
"""

from base64 import b64encode
from functools import partial
from pathlib import Path

import orjson
from pydantic import SecretStr

from providers.dialect import Dialect, UpstreamRequest
from providers.failure import FailureKind
from providers.framing.parse_aws_eventstream import encode
from providers.target import Target
from providers.vendor_credential import Credential
from tests.providers.dialects.kit import SIZES, chunks, streamed, target_of
from tests.providers.kit import failure_of

FIXTURES = Path(__file__).parent / "fixtures"
HAIKU = "us.anthropic.claude-haiku-4-5-20251001-v1:0"


def target(model: str = HAIKU, profile: str = "bedrock", name: str | None = None) -> Target:
    """Return a deployment of a model; `name` is its configured name."""
    return target_of(
        profile,
        name or model,
        upstream_model=model,
        base_url="https://bedrock-runtime.us-east-1.amazonaws.com",
        credential=Credential("bearer", key=SecretStr("ABSKsecret")),
        max_output_tokens=8192,
    )


def event(kind: str, payload: bytes) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode(headers, payload)


def frame(line: str) -> bytes:
    """Return one line of a fixture as a frame."""
    what, kind, rest = line.split(" ", 2)
    if what == "event":
        return event(kind, rest.encode())
    if what == "error":
        return encode({":message-type": "error", ":error-code": kind, ":error-message": rest}, b"")
    headers = {f":{what}-type": kind, ":content-type": "application/json", ":message-type": what}
    return encode(headers, rest.encode())


def chunk(payload: bytes) -> bytes:
    """Return a chunk of a model's own stream, in InvokeModel's frame."""
    return event("chunk", orjson.dumps({"bytes": b64encode(payload).decode(), "p": "abcdefghijklmnop"}))


def frames(name: str) -> list[bytes]:
    return [frame(line) for line in (FIXTURES / "streams" / f"{name}.events").read_text("utf-8").splitlines()]


def framed_lines(data: bytes) -> bytes:
    """Return a transcript in the frames of Bedrock's streams. A line of JSON is a chunk of a model's own stream."""
    lines = data.decode().splitlines()
    return b"".join(chunk(line.encode()) if line.startswith("{") else frame(line) for line in lines)


def stream(name: str) -> bytes:
    """Return a fixture of ConverseStream as one chunk."""
    return b"".join(frames(name))


def invoked(name: str) -> bytes:
    """Return a fixture of InvokeModel's stream."""
    return b"".join(map(chunk, (FIXTURES / "invoke" / f"{name}.events").read_bytes().splitlines()))


def answer(name: str, folder: str = "answers") -> bytes:
    return (FIXTURES / folder / f"{name}.json").read_bytes()


def hold_cuts(dialect: Dialect, data: bytes, sent: UpstreamRequest) -> None:
    """Assert that a stream reads the same in any chunks, and that a stream cut anywhere is TRUNCATED and has no
    finish."""
    whole = streamed(sent, data, len(data))
    for size in SIZES:
        assert streamed(sent, data, size) == whole
    for cut in range(len(data)):
        decoder = dialect.stream(sent)
        events = list(decoder.feed(data[:cut]))
        assert not decoder.complete
        assert all(each.finish_reason is None for each in chunks(events))
        assert failure_of(partial(list, decoder.finish())).kind is FailureKind.TRUNCATED
