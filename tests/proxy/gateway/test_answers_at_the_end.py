"""Vendors' responses whose end lacks content that came earlier, or any content at all, and the client's response."""

from typing import Final, cast

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.responses.kit import events_of, message, response, sse
from tests.proxy.kit.chat_answers import joined, only_choice
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.raw_client import Answer
from tests.proxy.kit.tables import digest_of
from tests.proxy.surfaces.anthropic.kit import accumulate
from tests.support.http_scripts import DONE, body_answer, data_frames, json_answer, sse_answer
from tests.support.looped import looped
from tests.support.vendor_script import Received, Script

pytestmark = pytest.mark.smoke

TABLE = f"""
defaults: {{retries: {{attempts: 2}}}}
vendors:
  openai: {{api_key: k, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
  native: {{profile: ollama_native, base_url: "http://127.0.0.1:PORT/first", allow_private: true}}
  compat: {{profile: ollama, base_url: "http://127.0.0.1:PORT/first/v1", allow_private: true}}
  other: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/second/v1", allow_private: true}}
models:
  openai/gpt-5.1-codex: {{}}
  native/m: {{}}
  compat/m: {{}}
  other/m: {{}}
routes:
  native: {{targets: [native/m, other/m]}}
  compat: {{targets: [compat/m, other/m]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["openai/*", "native/*", "compat/*", native, compat]
"""
served = gateway_fixture(TABLE)

CLIENTS: Final[dict[str, tuple[str, JsonObject]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
    "messages": ("/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}),
    "responses": ("/v1/responses", {"input": "hi"}),
}


async def ask(served: Rig, client: str, model: str, stream: bool) -> Answer:
    path, body = CLIENTS[client]
    return await served.post(path, {**body, "model": model, "stream": stream})


# Items that the end of a Responses stream does not repeat -------------------------------------------------------------

CALL: Final[JsonObject] = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
THOUGHT: Final[JsonObject] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "sealed",
}
SEARCH: Final[JsonObject] = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
ITEMS: Final[list[JsonValue]] = [SEARCH, THOUGHT, message("Hello"), CALL]
USAGE: Final[JsonObject] = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def bare_end(status: str) -> Script:
    """Return a stream whose last event lacks the items that came before it."""
    more: JsonObject = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
    *events, last = events_of(response(status, ITEMS, usage=USAGE, **more))
    ended = cast(JsonObject, last["response"])
    return sse_answer([sse(event) for event in (*events, {**last, "response": {**ended, "output": []}})])


@looped("status", ["completed", "incomplete"])
async def test_a_response_s_end_without_items_has_those_that_came(served: Rig, status: str) -> None:
    served.vendor.default = lambda request: bare_end(status)
    answer = await ask(served, "responses", "openai/gpt-5.1-codex", True)
    last = orjson.loads(answer.events()[-1])
    assert (last["type"], last["response"]["output"]) == (f"response.{status}", ITEMS)


async def test_items_that_came_are_stored_for_the_next_turn(served: Rig) -> None:
    served.vendor.default = lambda request: bare_end("completed")
    answer = await ask(served, "responses", "openai/gpt-5.1-codex", True)
    name = orjson.loads(answer.events()[-1])["response"]["id"]
    stored = await served.get(f"/v1/responses/{name}")
    assert stored.json()["output"] == ITEMS


async def test_an_end_without_items_costs_other_clients_nothing(served: Rig) -> None:
    served.vendor.default = lambda request: bare_end("completed")
    path, body = CLIENTS["chat"]
    counted: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}
    chat = joined(await served.post(path, {**body, **counted, "model": "openai/gpt-5.1-codex"}))
    assert (chat["content"], chat["reasoning_content"], chat["finish"]) == ("Hello", "hm", "tool_calls")
    assert [each["arguments"] for each in cast(list[JsonObject], chat["calls"])] == ['{"a": 1}']
    searches = cast(JsonObject, cast(JsonObject, chat["usage"])["completion_tokens_details"])
    assert searches["web_search_requests"] == 1
    blocks = accumulate((await ask(served, "messages", "openai/gpt-5.1-codex", True)).body).content
    assert [block.type for block in blocks if block.type in ("text", "tool_use")] == ["text", "tool_use"]


# A model that was only loaded -----------------------------------------------------------------------------------------

GOOD: Final[JsonObject] = {"role": "assistant", "content": "Hello"}


def openai_answer(said: JsonObject, finish: str, *, streams: bool) -> Script:
    body: JsonObject = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    if not streams:
        return json_answer(200, {**body, "choices": [{"index": 0, "message": said, "finish_reason": finish}]})
    body["object"] = "chat.completion.chunk"
    delta: JsonValue = [{"index": 0, "delta": said, "finish_reason": None}]
    last: JsonValue = [{"index": 0, "delta": {}, "finish_reason": finish}]
    return sse_answer([*data_frames({**body, "choices": delta}, {**body, "choices": last}), DONE])


def loaded(reason: str, request: Received) -> Script:
    """Return the response of a server that has only loaded its model, or the response of another server."""
    streams = b'"stream":true' in request.body
    if request.target.startswith("/second"):
        return openai_answer(GOOD, "stop", streams=streams)
    if "/api/" not in request.target:
        return openai_answer({"role": "assistant", "content": ""}, reason, streams=streams)
    nothing: JsonObject = {"role": "assistant", "content": ""}
    line: JsonObject = {"model": "m", "created_at": "2026-11-20T10:00:00Z", "message": nothing, "done": True}
    kind = "application/x-ndjson" if streams else "application/json"
    return body_answer(200, orjson.dumps({**line, "done_reason": reason}) + b"\n", [("content-type", kind)])


@looped("stream", [False, True])
@looped("client", CLIENTS)
@looped("vendor", ["native", "compat"])
@looped("reason", ["load", "unload"])
async def test_a_model_that_was_only_loaded_is_followed_by_the_next_deployment(
    served: Rig, vendor: str, client: str, reason: str, stream: bool
) -> None:
    served.vendor.default = lambda request: loaded(reason, request)
    before = len(served.records)
    answer = await ask(served, client, vendor, stream)
    assert (answer.status, b"Hello" in answer.body) == (200, True), answer.body
    assert b"load" not in answer.body
    await served.finished(before + 1)
    assert [each.outcome for each in served.records[-1].attempts] == ["nonconforming", "ok"]


@looped("stream", [False, True])
@looped("client", CLIENTS)
@looped("vendor", ["native", "compat"])
async def test_a_model_that_is_only_loaded_again_is_an_error(
    served: Rig, vendor: str, client: str, stream: bool
) -> None:
    served.vendor.default = lambda request: loaded("load", request)
    before = len(served.vendor.requests)
    answer = await ask(served, client, f"{vendor}/m", stream)
    assert (answer.status, len(served.vendor.requests)) == (502, before + 2), answer.body


async def test_a_model_that_is_loaded_first_answers_the_second_call(served: Rig) -> None:
    calls = 0

    def answer(request: Received) -> Script:
        nonlocal calls
        calls += 1
        if calls == 1:
            return loaded("load", request)
        said: JsonObject = {"model": "m", "created_at": "x", "message": GOOD, "done": True, "done_reason": "stop"}
        return json_answer(200, said)

    served.vendor.default = answer
    reply = only_choice(await ask(served, "chat", "native/m", False))
    assert (reply["content"], calls) == ("Hello", 2)
