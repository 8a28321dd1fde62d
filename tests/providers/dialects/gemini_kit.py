"""What the tests of Gemini's dialect share: targets, requests and the fixtures. Never a judgement."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson
from pydantic import SecretStr

from providers.auth import Credential
from providers.completion import Chunk, StreamEvent, Usage
from providers.dialect import Target, Timeouts, UpstreamRequest
from providers.dialects.gemini import GeminiDialect
from providers.profiles import load_profiles
from providers.unified import ChatPrompt, JsonObject, JsonValue, Operation, Params, TextPrompt, UnifiedRequest

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "gemini"
DIALECT = GeminiDialect()
TARGET = Target(
    vendor="gemini",
    model="gemini-3.1-pro-preview",
    deployment="default",
    upstream_model="gemini-3.1-pro-preview",
    profile=load_profiles()["gemini"],
    dialect=DIALECT,
    base_url="https://generativelanguage.googleapis.com/v1beta",
    credential=Credential("header", "x-goog-api-key", SecretStr("AIzaSecret")),
    timeouts=Timeouts(5, 60, 120, 600),
)
OLD = replace(TARGET, model="gemini-2.5-flash", upstream_model="gemini-2.5-flash")
NEWEST = replace(TARGET, model="gemini-3.8-flash", upstream_model="gemini-3.8-flash")
VERTEX = replace(
    TARGET,
    vendor="vertex",
    profile=load_profiles()["vertex"],
    base_url="https://europe-west4-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west4",
    credential=Credential("bearer", key=SecretStr("ya29.secret")),
)

SIGNATURE = "c2lnbmF0dXJlLW9mLW9uZS8rPz8+"
SAID = "YW5vdGhlci1zaWduYXR1cmU/Pg=="
"""The signatures of the fixtures: of a call, and of a text before one."""


def text_request(text: str = "Say hi", /, **params: object) -> UnifiedRequest:
    """A completion of one prompt."""
    return _request(Operation.COMPLETIONS, TextPrompt((text,)), params)


def chat_request(*messages: JsonObject, **params: object) -> UnifiedRequest:
    """A chat; without messages it is one of the user's."""
    return _request(Operation.CHAT, ChatPrompt(messages or (user("hi"),)), params)


def _request(operation: Operation, prompt: TextPrompt | ChatPrompt, params: dict[str, object]) -> UnifiedRequest:
    return UnifiedRequest(operation, "gemini/gemini-3.1-pro-preview", prompt, cast(Params, params))


def user(content: JsonValue) -> JsonObject:
    """A message of the user."""
    return {"role": "user", "content": content}


def tool(name: str = "get_weather", **more: JsonValue) -> JsonObject:
    """A function that is offered."""
    return {"type": "function", "function": {"name": name, **more}}


def body_of(request: UnifiedRequest, target: Target = TARGET) -> JsonObject:
    """The body that goes out."""
    body: JsonObject = orjson.loads(DIALECT.encode(request, target).body)
    return body


def config_of(request: UnifiedRequest, target: Target = TARGET) -> JsonValue:
    """Its settings."""
    return body_of(request, target).get("generationConfig")


def contents_of(*messages: JsonObject, target: Target = TARGET) -> JsonValue:
    """The turns of a conversation."""
    return body_of(chat_request(*messages), target)["contents"]


def answer(name: str) -> bytes:
    """A whole answer's fixture."""
    return (FIXTURES / "answers" / f"{name}.json").read_bytes()


def stream(name: str) -> bytes:
    """A stream's fixture."""
    return (FIXTURES / "streams" / f"{name}.sse").read_bytes()


def error(name: str) -> bytes:
    """An error's fixture."""
    return (FIXTURES / "errors" / name).read_bytes()


def sent(*, streamed: bool = False, **params: object) -> UpstreamRequest:
    """A call to which the fixtures could be answers."""
    return DIALECT.encode(replace(chat_request(**params), stream=streamed), TARGET)


def decode_stream(data: bytes, size: int, call: UpstreamRequest) -> list[StreamEvent]:
    """Every event of a stream fed in pieces of `size` bytes. Raises UpstreamError."""
    decoder = DIALECT.stream(call)
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
