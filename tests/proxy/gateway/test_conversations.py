"""Ids and order in a conversation as the client sees it, on every API, streamed or not."""

from collections.abc import Iterator, Mapping

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import AUTH, Rig, gateway_fixture
from tests.proxy.kit.raw_client import exchange, request
from tests.support.http_scripts import DONE, data_frames, json_answer, sse_answer

pytestmark = pytest.mark.smoke


served = gateway_fixture()


def calls(*ids: str) -> list[JsonValue]:
    return [
        {"index": at, "id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for at, each in enumerate(ids)
    ]


def answers(*, streamed: bool) -> JsonObject | list[bytes]:
    """Return an engine's response that has the call id `call_0` twice."""
    said: JsonObject = {
        "role": "assistant",
        "content": None,
        "reasoning": "hm",
        "tool_calls": calls("call_0", "call_0"),
    }
    if not streamed:
        choice: JsonObject = {"index": 0, "message": said, "finish_reason": "tool_calls"}
        return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    chunk: JsonObject = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first: JsonValue = [{"index": 0, "delta": said, "finish_reason": None}]
    last: JsonValue = [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    return [*data_frames({**chunk, "choices": first}, {**chunk, "choices": last}), DONE]


TOOL: JsonObject = {"name": "f", "parameters": {"type": "object", "properties": {}}}
CHAT: JsonObject = {
    "messages": [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": "r"},
    ],
    "tools": [{"type": "function", "function": TOOL}],
}
MESSAGES: JsonObject = {
    "max_tokens": 9,
    "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": "r"}]},
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
}
RESPONSES: JsonObject = {
    "store": False,
    "input": [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "r"},
    ],
    "tools": [{"type": "function", **TOOL}],
}
BODIES: Mapping[str, JsonObject] = {"/v1/chat/completions": CHAT, "/v1/messages": MESSAGES, "/v1/responses": RESPONSES}


def ids_of_calls(value: JsonValue) -> Iterator[str]:
    """Yield the ids of the calls in a client's response, in each API's form."""
    match value:
        case {"type": "tool_use", "id": str(identity)} | {"call_id": str(identity)}:
            yield identity
        case {"type": "function", "id": str(identity), "function": _}:
            yield identity
        case dict():
            for held in value.values():
                yield from ids_of_calls(held)
        case list():
            for held in value:
                yield from ids_of_calls(held)
        case _:
            pass


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", BODIES)
async def test_the_calls_of_a_response_have_ids_that_the_client_has_nowhere(
    served: Rig, path: str, streamed: bool
) -> None:
    made = answers(streamed=streamed)
    served.vendor.default = sse_answer(made) if isinstance(made, list) else json_answer(200, made)
    body = orjson.dumps({"model": "v/m", "stream": streamed, **BODIES[path]})
    got = await exchange(served.port, request("POST", path, body, AUTH))
    assert got.status == 200, got.body
    lines = [line[6:] for line in got.body.split(b"\n") if line.startswith(b"data: {")] if streamed else [got.body]
    found = dict.fromkeys(identity for line in lines for identity in ids_of_calls(orjson.loads(line)))
    assert len(found) == 2
    assert "call_0" not in found
    assert got.body.count(b'"reasoning":"hm"') == 0 or path != "/v1/chat/completions"
