"""Helpers that parse and render in the tests of the Responses API."""

import json
from typing import cast

import orjson
import pytest

from providers.completion import Chunk, Completion, Usage
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Operation, TranslationLosses
from proxy.errors import ErrorFacts, GatewayError
from proxy.surfaces.responses.request_draft import ResponsesRequest
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import NO_CONTEXT, AnswerFacts, RequestContext, StoredResponse, StoringRenderer

FACTS = AnswerFacts("u1", 1795246123, "openai/gpt-x")
USAGE = Usage(6, 2)


def ask(context: RequestContext = NO_CONTEXT, /, **fields: JsonValue) -> ResponsesRequest:
    """Return a parsed request; model and input are filled in."""
    return RESPONSES.parse(Operation.CHAT, orjson.dumps({"model": "m", "input": "hi", **fields}), None, context)


def refused(context: RequestContext = NO_CONTEXT, /, **fields: JsonValue) -> ErrorFacts:
    """Return the error facts of a body that must not parse."""
    with pytest.raises(GatewayError) as caught:
        ask(context, **fields)
    return caught.value.facts


def messages_of(request: ResponsesRequest) -> list[JsonObject]:
    """Return the messages of the conversation."""
    assert isinstance(request.prompt, ChatPrompt)
    return [*request.prompt.messages]


def read(*items: JsonValue, **fields: JsonValue) -> list[JsonObject]:
    """Return the messages that items become."""
    return messages_of(ask(input=[*items], **fields))


def native_body(request: ResponsesRequest) -> JsonObject:
    """Return the body that is passed on to OpenAI's own API."""
    assert request.native is not None
    return request.native.body


def losses(request: ResponsesRequest) -> TranslationLosses:
    """Return the losses: the parts that only OpenAI's own API can express."""
    assert request.losses is not None
    return request.losses


def rendering(**fields: JsonValue) -> StoringRenderer:
    """Return a renderer of the response to a request with these fields."""
    return RESPONSES.renderer(ask(**fields), FACTS)


def events(stream: bytes) -> list[JsonObject]:
    """Return the events of a stream, after a check of their names and numbers."""
    found: list[JsonObject] = []
    for frame in stream.decode("ascii").split("\n\n")[:-1]:
        name, data = frame.split("\n")
        members = cast(JsonObject, json.loads(data.removeprefix("data: ")))
        assert name == f"event: {members['type']}"
        assert members["sequence_number"] == len(found)
        found.append(members)
    return found


def play(renderer: StoringRenderer, *chunks: Chunk) -> bytes:
    """Return a complete stream that ends well."""
    return b"".join([renderer.chunk(chunk) for chunk in chunks]) + renderer.usage(USAGE) + renderer.end()


def streamed(*chunks: Chunk, **fields: JsonValue) -> list[JsonObject]:
    """Return the events of a stream that ends well."""
    return events(play(rendering(stream=True, **fields), *chunks))


def final(found: list[JsonObject]) -> JsonObject:
    """Return the response of the last event."""
    response = found[-1]["response"]
    assert isinstance(response, dict)
    return response


def whole(completion: Completion, **fields: JsonValue) -> JsonObject:
    """Return the body of a non-streaming response."""
    return cast(JsonObject, orjson.loads(rendering(**fields).completion(completion)))


def output(response: JsonObject) -> list[JsonObject]:
    """Return the items of a response."""
    items = response["output"]
    assert isinstance(items, list)
    return cast(list[JsonObject], items)


def stored(
    name: str, *items: JsonObject, said: tuple[JsonObject, ...] = (), after: tuple[str, ...] = ()
) -> StoredResponse:
    """Return a stored response with these input items and this output."""
    return StoredResponse(name, after, items, {"id": name, "status": "completed", "output": [*said]})


def typed(kind: str, **members: JsonValue) -> JsonObject:
    """Return an item or a part of a type."""
    return {"type": kind, **members}
