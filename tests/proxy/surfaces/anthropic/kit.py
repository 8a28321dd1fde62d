"""Helpers that parse and render in the tests of the Messages API, and the vendor's own accumulator of streams."""

from typing import Any, cast

import orjson
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from providers.completion import Chunk, Usage
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, UnifiedRequest
from proxy.errors import ErrorFacts, GatewayError
from proxy.surfaces.anthropic.parse_body import parse_messages
from proxy.surfaces.anthropic.renderer import MessagesRenderer
from proxy.surfaces.surface import AnswerFacts

FACTS = AnswerFacts("01", 1795246123, "groq/llama")
_EVENT: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)


def body(**fields: JsonValue) -> bytes:
    """Return a body; model, limit and messages are filled in."""
    return orjson.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **fields})


def parse(**fields: JsonValue) -> UnifiedRequest:
    """Return a parsed request; model, limit and messages are filled in."""
    return parse_messages(body(**fields), None, {})


def chat(messages: JsonValue, **fields: JsonValue) -> list[JsonObject]:
    """Return the messages of a request in OpenAI's chat format."""
    prompt = parse(messages=messages, **fields).prompt
    assert isinstance(prompt, ChatPrompt)
    return [*prompt.messages]


def turn(*blocks: JsonObject, role: str = "user") -> list[JsonObject]:
    """Return the chat messages of one turn with these blocks."""
    return chat([{"role": role, "content": cast(JsonValue, [*blocks])}])


def refused(**fields: JsonValue) -> ErrorFacts:
    """Return the error facts of a body that must not parse."""
    with pytest.raises(GatewayError) as caught:
        parse(**fields)
    return caught.value.facts


def renderer() -> MessagesRenderer:
    return MessagesRenderer(parse(), FACTS)


def play(*events: Chunk | Usage) -> bytes:
    """Return a complete stream that ends well."""
    made = renderer()
    played = [made.chunk(each) if isinstance(each, Chunk) else made.usage(each) for each in events]
    return b"".join(played) + made.end()


def objects(stream: bytes) -> list[JsonObject]:
    """Return the events of a stream; each names its type twice."""
    assert stream.endswith(b"\n\n") or not stream
    found: list[JsonObject] = []
    for frame in stream.split(b"\n\n")[:-1]:
        name, data = frame.split(b"\n")
        event = cast(JsonObject, orjson.loads(data.removeprefix(b"data: ")))
        assert name == b"event: " + cast(str, event["type"]).encode()
        found.append(event)
    return found


def accumulate(stream: bytes) -> Message:
    """Return the message that the vendor's SDK makes of a stream, after each event is validated against its type."""
    buffers: dict[int, bytes] = {}
    message: Any = None
    for each in objects(stream):
        if each["type"] == "message_stop":
            continue
        event = _EVENT.validate_python(each)
        message = accumulate_event(event=cast(Any, event), current_snapshot=message, json_bufs=buffers)
    return cast(Message, message)
