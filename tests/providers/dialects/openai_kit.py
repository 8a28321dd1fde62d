"""Targets of the packaged rows, requests and fixture bytes for the tests of the OpenAI family's dialect.

Never asserts what a test should.
"""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from providers.auth import Credential
from providers.completion import Chunk, Completion, StreamEvent, Usage
from providers.dialect import Target, Timeouts, UpstreamRequest
from providers.dialects.openai import OpenAIDialect
from providers.failure import Failure, Refusal, UpstreamError
from providers.profiles import load_profiles
from providers.unified import (
    ChatPrompt,
    JsonObject,
    JsonValue,
    Operation,
    Params,
    Prompt,
    TextPrompt,
    UnifiedRequest,
)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
DIALECT = OpenAIDialect()
HELLO = TextPrompt(("hello",))
TALK = ChatPrompt(({"role": "user", "content": "hello"},))
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}

ROWS = tuple(name for name, profile in load_profiles().items() if profile.dialect == "openai")
every_row = pytest.mark.parametrize("row", ROWS)


def target(row: str, model: str = "m", *, completions: bool | None = None, api_version: str | None = None) -> Target:
    """A deployment of a packaged row at http://up."""
    profile = load_profiles()[row]
    timeouts = Timeouts(1, 1, 1, 1)
    made = Target("v", "m", "d", model, profile, DIALECT, "http://up/v1", Credential(), timeouts)
    return replace(made, completions=completions, api_version=api_version)


def completion(params: Params | None = None, prompt: Prompt = HELLO, *, stream: bool = False) -> UnifiedRequest:
    """A text completion."""
    return UnifiedRequest(Operation.COMPLETIONS, "v/m", prompt, params or {}, stream)


def chat(params: Params | None = None, prompt: Prompt = TALK, *, stream: bool = False) -> UnifiedRequest:
    """A chat completion."""
    return UnifiedRequest(Operation.CHAT, "v/m", prompt, params or {}, stream)


def one_param(name: str, value: object) -> Params:
    """One field's params; the name is only known at run time."""
    params: Params = {}
    params[name] = value  # type: ignore[literal-required]
    return params


def body_of(request: UnifiedRequest, to: Target) -> JsonObject:
    """What is sent."""
    body: JsonObject = orjson.loads(DIALECT.encode(request, to).body)
    return body


def refusal_of(request: UnifiedRequest, to: Target) -> Refusal:
    """Why it is not sent."""
    with pytest.raises(Refusal) as caught:
        DIALECT.encode(request, to)
    assert to.name in caught.value.message or caught.value.param == "inference_extra_params"
    return caught.value


def sent(row: str = "openai", *, unwrap: bool = False, chats: bool = True) -> UpstreamRequest:
    """A call whose answer is to be decoded."""
    operation = Operation.CHAT if chats else Operation.COMPLETIONS
    return UpstreamRequest(target(row), operation, "http://up/v1", b"{}", True, unwrap_choice=unwrap)


def fixture(name: str) -> bytes:
    """The bytes of a fixture: `openai/groq_chat.sse`."""
    return (FIXTURES / name).read_bytes()


def frame(payload: JsonValue) -> bytes:
    """One event of a stream."""
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def pieces(stream: bytes, size: int) -> list[bytes]:
    """The stream in pieces of `size` bytes."""
    return [stream[start : start + size] for start in range(0, len(stream), size)]


def played(call: UpstreamRequest, *stream: bytes) -> tuple[list[StreamEvent], Failure | None]:
    """The events of a stream, and the failure that ended it."""
    decoder = DIALECT.stream(call)
    events: list[StreamEvent] = []
    try:
        for piece in stream:
            for event in decoder.feed(piece):
                events.append(event)
        for event in decoder.finish():
            events.append(event)
    except UpstreamError as error:
        return events, error.failure
    assert decoder.complete
    return events, None


def chunks(events: list[StreamEvent]) -> list[Chunk]:
    """The chunks among events."""
    return [event for event in events if isinstance(event, Chunk)]


def usage(events: list[StreamEvent]) -> Usage | None:
    """The last usage among events."""
    return next((event for event in reversed(events) if isinstance(event, Usage)), None)


def text(events: list[StreamEvent], index: int = 0) -> str:
    """One choice's text."""
    return "".join(chunk.text for chunk in chunks(events) if chunk.index == index)


def decoded(call: UpstreamRequest, body: JsonValue) -> Completion:
    """A whole answer."""
    return DIALECT.decode(call, orjson.dumps(body))


def broken(call: UpstreamRequest, body: bytes) -> Failure:
    """Why a whole answer is none."""
    with pytest.raises(UpstreamError) as caught:
        DIALECT.decode(call, body)
    return caught.value.failure
