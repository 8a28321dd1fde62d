"""Clients' own requests of the Messages API for the tests of Claude's dialects."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import orjson

from providers.dialect import UpstreamRequest, encode_native
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest, Params, UnifiedRequest
from tests.providers.dialects.kit import chat_request

HELLO: JsonObject = {"role": "user", "content": "hi"}
DOING: JsonObject = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]}
DONE: JsonObject = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}


def own_request(
    *turns: JsonObject,
    headers: Mapping[str, str] | None = None,
    stream: bool = False,
    more: Mapping[str, JsonValue] | None = None,
    **members: JsonValue,
) -> UnifiedRequest:
    """Return the request that the surface makes of a body with these turns, these fields and the fields in `more`."""
    body: JsonObject = {
        "model": "v/m",
        "max_tokens": 500,
        "messages": [*(turns or (HELLO,))],
        **members,
        **(more or {}),
    }
    shared = ("max_tokens", "temperature", "top_p", "top_k", "thinking")
    params = cast(Params, {name: body[name] for name in shared if body.get(name) is not None})
    if stream:
        body["stream"] = True
    native = NativeRequest(NativeApi.MESSAGES, body, headers or {})
    return replace(chat_request(), params=params, stream=stream, native=native)


def own_call(request: UnifiedRequest, target: Target) -> tuple[UpstreamRequest, JsonObject]:
    """Return the call and its body."""
    sent = encode_native(request, target)
    assert sent is not None
    assert sent.native
    return sent, cast(JsonObject, orjson.loads(sent.body))


def own_body(request: UnifiedRequest, target: Target) -> JsonObject:
    return own_call(request, target)[1]
