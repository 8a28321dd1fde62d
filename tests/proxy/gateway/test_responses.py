"""The Responses API over real sockets: to a vendor that supports it, and translated to others."""

from pathlib import Path

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.tables import digest_of
from tests.proxy.surfaces.responses.kit import events, final, output, typed
from tests.support.http_scripts import data_frames, json_answer, sse_answer, sse_unterminated
from tests.support.openai_wire import completion
from tests.support.vendor_script import Fin

PATH = "/v1/responses"
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "responses"
TABLE = f"""
defaults: {{retries: {{attempts: 1}}}}
vendors:
  openai: {{api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
  plain: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models:
  openai/gpt-x: {{}}
  plain/m: {{context_window: 8192}}
routes:
  best: {{targets: [openai/gpt-x, plain/m]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["openai/gpt-x", plain/m, best]
"""
NATIVE: JsonObject = {
    "id": "resp_v",
    "object": "response",
    "model": "gpt-x-2026",
    "status": "completed",
    "output": [
        typed("message", id="msg_v", role="assistant", content=[typed("output_text", text="hello", annotations=[])])
    ],
    "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    "of_tomorrow": {"y": 2},
}


served = gateway_fixture(TABLE)


def ask(model: str = "plain/m", **fields: JsonValue) -> JsonObject:
    """Return a request's body."""
    return {"model": model, "input": "hi", "store": False, **fields}


def piece(finish: str | None = None, **delta: JsonValue) -> JsonObject:
    """Return a chunk of a chat."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


BEGUN = data_frames(piece(role="assistant", content="Hel"), piece(content="lo"))


async def test_a_vendor_that_speaks_the_api_gets_the_client_s_own_body(served: Rig) -> None:
    served.vendor.default = json_answer(200, NATIVE)
    answer = await served.post(
        PATH, ask("openai/gpt-x", of_tomorrow={"x": 1}, truncation="auto", tools=[typed("web_search")])
    )
    assert answer.status == 200
    assert answer.json() == {**NATIVE, "model": "openai/gpt-x", "store": False, "previous_response_id": None}
    assert served.vendor.requests[-1].path.endswith("/responses")
    body = served.sent()
    assert (body["of_tomorrow"], body["truncation"], body["tools"]) == ({"x": 1}, "auto", [typed("web_search")])
    assert "x-dragoman-dropped" not in answer.headers


async def test_another_vendor_gets_codex_translated(served: Rig) -> None:
    served.vendor.default = sse_answer(data_frames(piece(role="assistant", content="Hi"), piece("stop")))
    codex: JsonObject = orjson.loads((FIXTURES / "codex_responses_apply_patch.json").read_bytes())
    refused = await served.post(PATH, {**codex, "model": "plain/m"})
    assert (refused.status, refused.error()["param"]) == (400, "tools")
    assert "no web search of its own" in refused.message
    # Codex sends these tools with `web_search = "disabled"`.
    codex["tools"] = [tool for tool in codex["tools"] if tool["type"] != "web_search"]  # type: ignore[union-attr,index,call-overload]
    answer = await served.post(PATH, {**codex, "model": "plain/m"})
    assert (answer.status, answer.whole) == (200, True)
    assert output(final(events(answer.body)))[0]["content"] == [
        typed("output_text", text="Hi", annotations=[], logprobs=[])
    ]
    tools = served.sent()["tools"]
    assert isinstance(tools, list)
    assert {str(tool["type"]) for tool in tools if isinstance(tool, dict)} == {"function"}
    dropped = answer.headers["x-dragoman-dropped"].split(", ")
    assert {"tools.format", "client_metadata"} <= set(dropped)


async def test_what_only_openai_can_honour_goes_to_the_target_that_can(served: Rig) -> None:
    served.vendor.default = json_answer(200, NATIVE)
    asked: JsonObject = {"context_management": [{"type": "compaction"}], "tools": [typed("image_generation")]}
    assert (await served.post(PATH, ask("best", **asked))).status == 200
    fields: list[JsonObject] = [
        {"context_management": [{"type": "compaction"}]},
        {"input": [typed("computer_call_output", call_id="c", output={})]},
    ]
    for field in fields:
        refused = await served.post(PATH, ask("plain/m", **field))
        assert (refused.status, refused.error()["param"]) == (400, next(iter(field)))
        assert "and plain/m/default is called by another" in refused.message
    assert len(served.vendor.requests) == 1


async def test_a_stream_that_breaks_ends_in_a_failure_and_with_it_the_body(served: Rig) -> None:
    served.vendor.answer(sse_unterminated(BEGUN, Fin()))
    answer = await served.post(PATH, ask(stream=True))
    assert (answer.status, answer.whole) == (200, True)
    found = events(answer.body)
    assert found[-1]["type"] == "response.failed"
    failed = final(found)
    assert isinstance(failed["error"], dict)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")


async def test_an_answer_is_whole_with_its_usage(served: Rig) -> None:
    served.vendor.default = json_answer(200, completion("hello", "m"))
    body = (await served.post("/responses", ask())).json()
    assert (body["object"], body["status"], body["model"]) == ("response", "completed", "plain/m")
    assert isinstance(body["usage"], dict)
    assert body["usage"]["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0}


async def test_an_error_has_openai_s_envelope(served: Rig) -> None:
    answer = await served.post(PATH, ask("nobody/knows"))
    assert (answer.status, answer.error()["code"], answer.error()["param"]) == (404, "model_not_found", "model")
    unknown = await served.post(PATH, ask(previous_response_id="resp_none"))
    assert (unknown.status, unknown.error()["code"]) == (400, "previous_response_not_found")
