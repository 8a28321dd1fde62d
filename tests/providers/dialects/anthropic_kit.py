"""What the tests of Anthropic's dialect share: targets, requests, the fixtures, and the SDK's types as judges."""

import collections.abc
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson
import pydantic
from anthropic.types.message_create_params import MessageCreateParamsBase
from pydantic import SecretStr, TypeAdapter

from providers.auth import Credential
from providers.completion import Chunk, StreamEvent, Usage
from providers.dialect import Target, Timeouts, UpstreamRequest
from providers.dialects.anthropic import AnthropicDialect
from providers.profiles import load_profiles
from providers.unified import ChatPrompt, JsonObject, JsonValue, Operation, Params, TextPrompt, UnifiedRequest

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "anthropic"
DIALECT = AnthropicDialect()
TARGET = Target(
    vendor="anthropic",
    model="claude-haiku-4-5",
    deployment="default",
    upstream_model="claude-haiku-4-5-20251001",
    profile=load_profiles()["anthropic"],
    dialect=DIALECT,
    base_url="https://api.anthropic.com",
    credential=Credential("header", "x-api-key", SecretStr("sk-ant-secret")),
    timeouts=Timeouts(5, 60, 120, 600),
    max_output_tokens=8192,
)
NEW_VERSION = replace(TARGET, api_version="2026-10-21")
SAMPLING = ("temperature", "top_p", "top_k")


class _Strict(MessageCreateParamsBase, total=False):
    """The SDK's request type with unknown members forbidden, for streams and whole answers."""

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012 - pydantic reads it from the class
    stream: bool


_REQUEST: TypeAdapter[object] = TypeAdapter(_Strict)


def sdk_check(body: JsonObject, version: str) -> None:
    """Hold a body against the SDK's types. Raises pydantic's ValidationError.

    The types of SDK 2 follow the newest version, which has no sampling settings; older versions take them.
    """
    allowed = SAMPLING if version < "2026-10-21" else ()
    _force(_REQUEST.validate_python({name: value for name, value in body.items() if name not in allowed}))


def _force(value: object) -> None:
    """Consume the lazily validated iterables of the SDK's types."""
    if isinstance(value, dict):
        for member in value.values():
            _force(member)
    elif isinstance(value, collections.abc.Iterable) and not isinstance(value, str | bytes | pydantic.BaseModel):
        for item in value:
            _force(item)


def text_request(text: str = "Say hi", **params: object) -> UnifiedRequest:
    """A completion of one prompt."""
    return _request(Operation.COMPLETIONS, TextPrompt((text,)), params)


def chat_request(*messages: JsonObject, **params: object) -> UnifiedRequest:
    """A chat; without messages it is one of the user's."""
    return _request(Operation.CHAT, ChatPrompt(messages or (user("hi"),)), params)


def _request(operation: Operation, prompt: TextPrompt | ChatPrompt, params: dict[str, object]) -> UnifiedRequest:
    return UnifiedRequest(operation, "anthropic/claude-haiku-4-5", prompt, cast(Params, params))


def user(content: JsonValue) -> JsonObject:
    """A message of the user."""
    return {"role": "user", "content": content}


def encode(request: UnifiedRequest, target: Target = TARGET) -> UpstreamRequest:
    """The upstream request, its body checked by the SDK's types."""
    sent = DIALECT.encode(request, target)
    sdk_check(orjson.loads(sent.body), sent.headers["anthropic-version"])
    return sent


def body_of(request: UnifiedRequest, target: Target = TARGET) -> JsonObject:
    """The checked body."""
    body: JsonObject = orjson.loads(encode(request, target).body)
    return body


def answer(name: str) -> bytes:
    """A whole answer's fixture."""
    return (FIXTURES / "answers" / f"{name}.json").read_bytes()


def stream(name: str) -> bytes:
    """A stream's fixture."""
    return (FIXTURES / "streams" / f"{name}.sse").read_bytes()


def decode_stream(data: bytes, size: int, sent: UpstreamRequest) -> list[StreamEvent]:
    """Every event of a stream fed in pieces of `size` bytes. Raises UpstreamError."""
    decoder = DIALECT.stream(sent)
    events: list[StreamEvent] = []
    for start in range(0, len(data), size):
        events += decoder.feed(data[start : start + size])
    events += decoder.finish()
    assert decoder.complete
    return events


def chunks(events: list[StreamEvent]) -> list[Chunk]:
    """The chunks alone."""
    return [event for event in events if isinstance(event, Chunk)]


def last_usage(events: list[StreamEvent]) -> Usage | None:
    """The usage that counts."""
    return next((event for event in reversed(events) if isinstance(event, Usage)), None)


def text_of(events: list[StreamEvent]) -> str:
    """The text of all chunks."""
    return "".join([chunk.text for chunk in chunks(events)])
