"""The Messages API over real sockets: to a vendor that supports it, and translated to others."""

from pathlib import Path

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.surfaces.anthropic.kit import accumulate, objects
from tests.support.http_scripts import body_answer, data_frames, json_answer, sse_answer, sse_unterminated
from tests.support.openai_wire import completion
from tests.support.vendor_script import Fin

PATH = "/v1/messages"
CLAUDE_CODE: JsonObject = orjson.loads(Path("tests/fixtures/anthropic/claude_code_request.json").read_bytes())
TABLE = f"""
defaults: {{retries: {{attempts: 1}}}}
vendors:
  anthropic: {{api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
  plain: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models:
  anthropic/claude-x: {{}}
  plain/m: {{context_window: 8192}}
routes:
  best: {{targets: [anthropic/claude-x, plain/m]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["anthropic/claude-x", plain/m, best]
"""

NATIVE: JsonObject = {
    "id": "msg_v",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-20260101",
    "content": [{"type": "text", "text": "hello"}, {"type": "of_tomorrow", "x": 1}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2},
    "of_tomorrow": {"y": 2},
}


served = gateway_fixture(TABLE)


def ask(model: str = "plain/m", **fields: JsonValue) -> JsonObject:
    """Return a request's body."""
    return {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}], **fields}


async def test_a_vendor_that_speaks_the_api_gets_the_client_s_own_body(served: Rig) -> None:
    served.vendor.default = json_answer(200, NATIVE)
    asked = ask("claude-x", of_tomorrow={"x": 1}, container="c")
    answer = await served.post(f"{PATH}?beta=true", asked, {"anthropic-beta": "a", "anthropic-version": "2023-06-01"})
    assert answer.status == 200
    assert answer.json() == {**NATIVE, "model": "claude-x"}
    assert served.sent() == {**asked, "model": "claude-x"}
    assert served.vendor.requests[-1].header("anthropic-beta") == "a"
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert answer.headers["x-dragoman-deployment"] == "anthropic/claude-x/default"


async def test_another_vendor_gets_a_translation(served: Rig) -> None:
    served.vendor.default = json_answer(200, completion("hello", "m"))
    answer = await served.post(PATH, {**CLAUDE_CODE, "model": "plain/m", "stream": False})
    assert answer.status == 200
    body = answer.json()
    assert (body["type"], body["model"], body["stop_reason"]) == ("message", "plain/m", "end_turn")
    assert body["content"] == [{"type": "text", "text": "hello"}]
    wire = served.sent()
    assert isinstance(wire["messages"], list)
    assert isinstance(wire["tools"], list)
    assert len(wire["messages"]) == 6
    assert len(wire["tools"]) == 2
    assert not {"system", "metadata", "context_management", "output_config"} & wire.keys()
    assert "x-anthropic-billing-header" in answer.headers["x-dragoman-dropped"]
    assert "context_management" in answer.headers["x-dragoman-dropped"]


async def test_what_only_anthropic_can_honour_goes_to_the_target_that_can(served: Rig) -> None:
    served.vendor.default = json_answer(200, NATIVE)
    assert (await served.post(PATH, ask("best", container="c"))).status == 200
    refused = await served.post(PATH, ask("plain/m", container="c"))
    assert (refused.status, refused.error()["type"]) == (400, "invalid_request_error")
    assert "'container' is part of the API that this request came by alone, and plain/m/default" in refused.message
    assert len(served.vendor.requests) == 1


def piece(finish: str | None = None, **delta: JsonValue) -> JsonObject:
    """Return a chunk of a chat."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CALL: JsonObject = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}
FRAMES = data_frames(
    piece(role="assistant", content="Hel"),
    piece(content="lo"),
    piece(tool_calls=[CALL]),
    piece(tool_calls=[{"index": 0, "function": {"arguments": '"a":1}'}}]),
    piece("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
)


async def test_a_translated_stream_is_read_by_the_sdk(served: Rig) -> None:
    served.vendor.default = sse_answer([*FRAMES, b"data: [DONE]\n\n"])
    answer = await served.post(PATH, ask(stream=True))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert answer.whole
    message = accumulate(answer.body).to_dict()
    assert message["content"] == [
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
    ]
    assert message["stop_reason"] == "tool_use"
    assert isinstance(message["usage"], dict)
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (7, 3)


async def test_a_native_stream_is_shown_as_it_came(served: Rig) -> None:
    start = {**NATIVE, "content": [], "stop_reason": None}
    events: list[JsonObject] = [
        {"type": "message_start", "message": start},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
        {"type": "of_tomorrow", "x": 1},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    frames = [b"event: %b\ndata: %b\n\n" % (str(each["type"]).encode(), orjson.dumps(each)) for each in events]
    served.vendor.default = sse_answer(frames)
    answer = await served.post(PATH, ask("claude-x", stream=True))
    assert answer.whole
    shown = objects(answer.body)
    assert shown[0] == {"type": "message_start", "message": {**start, "model": "claude-x"}}
    assert shown[1:] == events[1:]
    (record,) = await served.finished(1)
    assert record.usage is not None
    assert (record.usage.prompt_tokens, record.usage.completion_tokens) == (3, 2)


@pytest.mark.parametrize("count", [1, 2, 4])
async def test_a_stream_that_breaks_looks_broken(served: Rig, count: int) -> None:
    served.vendor.default = sse_unterminated(FRAMES[:count], Fin())
    answer = await served.post(PATH, ask(stream=True))
    assert not answer.whole
    shown = objects(answer.body)
    assert shown[0]["type"] == "message_start"
    assert shown[-1]["type"] == "error"
    assert not {"message_delta", "message_stop"} & {str(each["type"]) for each in shown}


async def test_errors_wear_the_vendor_s_envelope(served: Rig) -> None:
    for answer, status, kind in (
        (await served.post(PATH, ask(), {"Authorization": "Bearer wrong"}), 401, "authentication_error"),
        (await served.post(PATH, ask("nobody")), 404, "not_found_error"),
        (await served.post(PATH, b"no json"), 400, "invalid_request_error"),
        (await served.post(f"{PATH}/batches", ask()), 404, "not_found_error"),
        (await served.get(PATH), 405, "invalid_request_error"),
    ):
        assert (answer.status, answer.error()["type"], answer.json()["type"]) == (status, kind, "error")
        assert answer.headers["request-id"] == answer.headers["x-request-id"]


async def test_a_full_window_is_told_in_the_vendor_s_words(served: Rig) -> None:
    message = (
        "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens (9000 in the messages, "
        "300 in the completion)."
    )
    served.vendor.default = json_answer(400, {"error": {"message": message, "code": "context_length_exceeded"}})
    answer = await served.post(PATH, ask())
    assert (answer.status, answer.message) == (400, "prompt is too long: 9000 tokens > 8192 maximum")
    assert answer.headers["x-should-retry"] == "false"


async def test_an_overloaded_vendor_is_a_529(served: Rig) -> None:
    served.vendor.default = body_answer(503, b"{}", [("retry-after", "7")])
    answer = await served.post(PATH, ask())
    assert (answer.status, answer.error()["type"]) == (529, "overloaded_error")
    assert answer.headers["retry-after"] == "7"


async def test_either_header_may_hold_the_key(served: Rig) -> None:
    served.vendor.default = json_answer(200, completion("hello", "m"))
    for headers in ({"x-api-key": CLIENT_KEY}, AUTH):
        answer = await exchange(served.port, request("POST", PATH, ask(), headers))
        assert answer.status == 200


async def test_the_models_list_has_the_form_of_the_client_s_api(served: Rig) -> None:
    version = {**AUTH, "anthropic-version": "2023-06-01"}
    listed = (await served.get("/v1/models?limit=1", version)).json()
    assert (listed["has_more"], listed["first_id"]) == (True, "best")
    after = (await served.get("/v1/models?after_id=best", version)).json()
    assert isinstance(after["data"], list)
    assert [each["id"] for each in after["data"] if isinstance(each, dict)] == ["anthropic/claude-x", "plain/m"]
    one = (await served.get("/v1/models/plain/m", version)).json()
    assert (one["type"], one["id"], one["max_input_tokens"]) == ("model", "plain/m", 8192)
    assert (await served.get("/v1/models/nobody", version)).error()["type"] == "not_found_error"
    assert (await served.get("/v1/models?limit=0", version)).status == 400
    assert (await served.get("/v1/models")).json()["object"] == "list"


async def test_the_probe_of_the_command_line_client_needs_no_key(served: Rig) -> None:
    answer = await exchange(served.port, request("HEAD", "/", None, {}))
    assert (answer.status, answer.body) == (200, b"")
    assert (await served.get("/")).status == 404


async def test_a_call_that_makes_no_sense_is_the_agent_s_to_answer(served: Rig) -> None:
    wrong: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[1]"}}
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": [wrong]}
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    served.vendor.answer(json_answer(200, {"choices": [choice]}))
    answer = await served.post(PATH, ask())
    called: JsonValue = {"type": "tool_use", "id": "c", "name": "f", "input": {"arguments": "[1]"}}
    assert (answer.status, answer.json()["content"]) == (200, [called])
    streamed = data_frames(piece(tool_calls=[{**wrong, "index": 0}]), piece("tool_calls"))
    served.vendor.answer(sse_answer([*streamed, b"data: [DONE]\n\n"]))
    answer = await served.post(PATH, ask(stream=True))
    assert answer.whole
    assert accumulate(answer.body).content[0].model_dump(exclude_unset=True) == called
    assert [record.outcome for record in await served.finished(2)] == ["ok", "ok"]
