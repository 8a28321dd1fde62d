"""Targets of the packaged profiles, requests and fixtures for the tests of the OpenAI dialect."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from providers.completion import Completion, StreamEvent
from providers.dialect import UpstreamRequest
from providers.dialects.openai.dialect import OpenAIDialect
from providers.failure import Failure, FailureKind, Refusal, UpstreamError
from providers.framing.parse_sse import DataLines, SSEParser
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.target import Target, Timeouts
from providers.unified_request import ChatPrompt, Operation, Params, Prompt, TextPrompt, UnifiedRequest
from providers.vendor_credential import Credential
from tests.providers.dialects.kit import chunks
from tests.providers.kit import failure_of
from tests.support.dialects import fixture_path
from tests.support.looped import looped

FIXTURES = Path(__file__).parent / "fixtures"
DIALECT = OpenAIDialect()
HELLO = TextPrompt(("hello",))
TALK = ChatPrompt(({"role": "user", "content": "hello"},))
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}

ROWS = tuple(name for name, profile in load_profiles().items() if profile.dialect == "openai" and profile.wires)
every_row = looped("row", ROWS)


CHAT_MODELS: Mapping[str, str] = {"perplexity": "sonar"}
"""A chat model for each row whose other models have another API."""


def target(row: str, model: str = "m", *, completions: bool | None = None, api_version: str | None = None) -> Target:
    """Return a deployment of a packaged profile at http://up, with a chat model."""
    model = CHAT_MODELS.get(row, model) if model == "m" else model
    profile = load_profiles()[row]
    timeouts = Timeouts(1, 1, 1, 1)
    made = Target("v", "m", "d", model, profile, DIALECT, "http://up/v1", Credential(), timeouts)
    return replace(made, completions=completions, api_version=api_version)


def completion(params: Params | None = None, prompt: Prompt = HELLO, *, stream: bool = False) -> UnifiedRequest:
    return UnifiedRequest(Operation.COMPLETIONS, "v/m", prompt, params or {}, stream)


def chat(params: Params | None = None, prompt: Prompt = TALK, *, stream: bool = False) -> UnifiedRequest:
    return UnifiedRequest(Operation.CHAT, "v/m", prompt, params or {}, stream)


def one_param(name: str, value: object) -> Params:
    """Return params with one field whose name is known only at run time."""
    params: Params = {}
    params[name] = value  # type: ignore[literal-required]
    return params


def body_of(request: UnifiedRequest, to: Target) -> JsonObject:
    body: JsonObject = orjson.loads(DIALECT.encode(request, to).body)
    return body


def refusal_of(request: UnifiedRequest, to: Target) -> Refusal:
    """Return the refusal, and check that its message names the deployment."""
    with pytest.raises(Refusal) as caught:
        DIALECT.encode(request, to)
    assert to.name in caught.value.message or caught.value.param == "inference_extra_params"
    return caught.value


def sent(row: str = "openai", *, unwrap: bool = False, chats: bool = True, choices: int = 1) -> UpstreamRequest:
    """Return a call whose response is to be decoded."""
    operation = Operation.CHAT if chats else Operation.COMPLETIONS
    return UpstreamRequest(target(row), operation, "http://up/v1", b"{}", True, unwrap_choice=unwrap, choices=choices)


def choices_in(stream: bytes) -> int:
    """Return the number of choices in a stream."""
    parser = DataLines() if b"\n\n" not in stream else SSEParser()
    events = [orjson.loads(data) for _, data in [*parser.feed(stream), *parser.finish()] if data.startswith(b"{")]
    listed = [choice for event in events for choice in event.get("choices") or []]
    return 1 + max([choice.get("index") or 0 for choice in listed], default=0)


def fixture(name: str) -> bytes:
    """Return the bytes of a fixture, such as `openai/groq_chat.sse`."""
    return fixture_path(name).read_bytes()


def frame(payload: JsonValue) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def pieces(stream: bytes, size: int) -> list[bytes]:
    return [stream[start : start + size] for start in range(0, len(stream), size)]


def played(call: UpstreamRequest, *stream: bytes) -> tuple[list[StreamEvent], Failure | None]:
    """Return the events of a stream, and the failure that ended it."""
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


def text(events: list[StreamEvent], index: int = 0) -> str:
    return "".join(chunk.text for chunk in chunks(events) if chunk.index == index)


def decoded(call: UpstreamRequest, body: JsonValue) -> Completion:
    return DIALECT.decode(call, orjson.dumps(body))


def broken(call: UpstreamRequest, body: bytes) -> Failure:
    return failure_of(DIALECT.decode, call, body)


def unbroken(call: UpstreamRequest, *stream: bytes) -> list[StreamEvent]:
    """Return the events of a stream that ends well."""
    events, failure = played(call, *stream)
    assert failure is None
    return events


def failing(call: UpstreamRequest, *stream: bytes) -> tuple[str, FailureKind]:
    """Return the text of a stream that breaks, and the kind of its failure."""
    events, failure = played(call, *stream)
    assert failure is not None
    return text(events), failure.kind
