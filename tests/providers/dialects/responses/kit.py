"""Clients' own requests of the Responses API, and fixtures for the tests of its dialect.

`fixtures/recorded` has responses and streams of OpenAI from vercel/ai ed857f5
`packages/openai/src/responses/__fixtures__`, some of them shortened there. The others follow the vendor's types.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson

from providers.dialect import UpstreamRequest, encode_native
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest, Params, UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of

FIXTURES = Path(__file__).parent / "fixtures"
TARGET = target_of("openai", "gpt-5.1", base_url="https://api.openai.com/v1")


def own_request(
    *,
    stream: bool = False,
    params: Params | None = None,
    more: Mapping[str, JsonValue] | None = None,
    **members: JsonValue,
) -> UnifiedRequest:
    """Return the request that the surface makes of a body with these fields and the fields in `more`."""
    body: JsonObject = {"model": "v/m", "input": "hi", **members, **(more or {})}
    if stream:
        body["stream"] = True
    return replace(chat_request(), params=params or {}, stream=stream, native=NativeRequest(NativeApi.RESPONSES, body))


def own_call(request: UnifiedRequest, target: Target = TARGET) -> tuple[UpstreamRequest, JsonObject]:
    """Return the call and its body."""
    sent = encode_native(request, target)
    assert sent is not None
    assert sent.native
    return sent, cast(JsonObject, orjson.loads(sent.body))


def own_body(target: Target = TARGET, more: Mapping[str, JsonValue] | None = None, **members: JsonValue) -> JsonObject:
    return own_call(own_request(more={**members, **(more or {})}), target)[1]


WHOLE = own_call(own_request())[0]
STREAMED = own_call(own_request(stream=True))[0]


def sse(*events: JsonObject) -> bytes:
    """Return a stream of these events."""
    return b"".join([b"event: %b\ndata: %b\n\n" % (str(one["type"]).encode(), orjson.dumps(one)) for one in events])


def response(status: str = "completed", output: Iterable[JsonValue] = (), **members: JsonValue) -> JsonObject:
    """Return a response object with these fields."""
    return {"id": "resp_1", "object": "response", "status": status, "output": [*output], **members}


def ended(status: str = "completed", output: Iterable[JsonValue] = (), **members: JsonValue) -> JsonObject:
    """Return the event that ends a stream."""
    return {"type": f"response.{status}", "response": response(status, output, **members)}


def message(text: str, kind: str = "output_text") -> JsonObject:
    part: JsonObject = {"type": "refusal", "refusal": text} if kind == "refusal" else {"type": kind, "text": text}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}


def events_of(whole: JsonObject) -> Iterator[JsonObject]:
    """Yield the events of a streamed response, with each text and each call in two deltas."""
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    for index, item in enumerate(cast(list[JsonObject], whole["output"])):
        at: JsonObject = {"output_index": index}
        begun: JsonObject = {"summary": [], "encrypted_content": "", "content": [], "arguments": "", "input": ""}
        yield {"type": "response.output_item.added", "item": {n: begun.get(n, item[n]) for n in item}, **at}
        for kind, text, place in _texts_of(item):
            for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
                yield {"type": f"response.{kind}.delta", "delta": piece, **at, **place}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": f"response.{whole['status']}", "response": whole}


_TEXTS: Mapping[object, tuple[str, str, str]] = {
    "summary_text": ("reasoning_summary_text", "text", "summary_index"),
    "output_text": ("output_text", "text", "content_index"),
    "refusal": ("refusal", "refusal", "content_index"),
}


def _texts_of(item: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield the texts of an item, each with the kind and the index of its deltas."""
    if item["type"] == "function_call":
        yield "function_call_arguments", str(item["arguments"]), {}
    elif item["type"] == "custom_tool_call":
        yield "custom_tool_call_input", str(item["input"]), {}
    parts = item.get("summary") or item.get("content") or []
    for number, part in enumerate(cast(list[JsonObject], parts)):
        kind, name, place = _TEXTS[part["type"]]
        yield kind, str(part[name]), {place: number}
