"""Rules of models as clients see them: limits that are lowered, and targets that are skipped, streamed or not."""

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.api_cases import CHAT, FAKE, OPENAI, calls, choice, emulated, error, streamed, texts, whole
from tests.proxy.kit.gateway_rig import Rig, ask, gateway_fixture
from tests.support.http_scripts import json_answer

TABLE = f"""
defaults: {{retries: {{attempts: 1, safety: "off"}}}}
vendors:
  engine: {{profile: openai_compatible, {FAKE}}}
  ollama: {{profile: ollama, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
  native: {{profile: ollama_native, base_url: "http://127.0.0.1:PORT", allow_private: true}}
  claude: {{profile: anthropic, api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
models:
  engine/a: {{max_output_tokens: 100}}
  engine/b: {{max_output_tokens: 50}}
  ollama/a: {{on_unsupported: drop}}
  ollama/b: {{}}
  native/a: {{on_unsupported: drop}}
  native/b: {{}}
  claude/claude-opus-4-6: {{max_output_tokens: 2000}}
routes:
  pair: {{targets: [engine/a, engine/b]}}
  newest: {{targets: [claude/claude-opus-4-6, engine/b]}}
"""
served = gateway_fixture(TABLE)
BOTH = pytest.mark.parametrize("stream", [False, True])
HELLO: list[JsonValue] = [{"role": "user", "content": "hi"}]
NO_TOOLS = "This model does not support tools."


@pytest.mark.smoke
@BOTH
async def test_a_target_whose_model_refuses_is_skipped_and_a_limit_is_lowered_to_the_next_ones(
    served: Rig, stream: bool
) -> None:
    served.vendor.answer(error(400, NO_TOOLS), streamed("x") if stream else whole(choice("x")))
    answer = await served.post(OPENAI, ask("pair", max_tokens=900, stream=stream))
    assert [body["max_tokens"] for body in calls(served)] == [100, 50]
    assert (texts(answer), emulated(answer), answer.headers["x-dragoman-max-tokens"]) == ({0: "x"}, "max_tokens", "50")
    assert [each.outcome for each in served.records[-1].attempts] == ["unsupported", "ok"]


async def test_without_another_target_the_client_gets_the_vendors_first_words(served: Rig) -> None:
    served.vendor.answer(error(400, NO_TOOLS, code="no_tools", param="tools"), error(400, "Model b does not support x"))
    answer = await served.post(OPENAI, ask("pair"))
    assert (answer.status, answer.code, answer.error()["message"]) == (400, "no_tools", NO_TOOLS)
    for _ in range(20):
        served.vendor.answer(error(400, NO_TOOLS), whole(choice("x")))
        assert texts(await served.post(OPENAI, ask("pair"))) == {0: "x"}


async def test_a_last_turn_of_the_model_goes_to_the_target_that_continues_it(served: Rig) -> None:
    message: JsonObject = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    served.vendor.answer(json_answer(200, {"id": "1", "object": "chat.completion", "choices": [message]}))
    asked = ask("newest", messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Sure"}])
    answer = await served.post(CHAT, {name: value for name, value in asked.items() if name != "prompt"})
    assert (answer.status, answer.headers["x-dragoman-deployment"]) == (200, "engine/b/default")


async def test_a_clients_own_body_goes_with_the_lower_limit_and_without_other_models(served: Rig) -> None:
    body: JsonObject = {
        "model": "claude/claude-opus-4-6",
        "max_tokens": 32_000,
        "thinking": {"type": "enabled", "budget_tokens": 8000},
        "fallbacks": "default",
        "messages": [{"role": "user", "content": "hi"}],
    }
    usage: JsonObject = {"input_tokens": 1, "output_tokens": 1}
    said: JsonObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    served.vendor.answer(json_answer(200, {**said, "content": [{"type": "text", "text": "x"}], "usage": usage}))
    answer = await served.post("/v1/messages", body)
    (call,) = calls(served)
    assert (call["max_tokens"], "fallbacks" in call) == (2000, False)
    assert call["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert answer.headers["x-dragoman-max-tokens"] == "2000"
    assert "fallbacks" in answer.headers["x-dragoman-dropped"]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (OPENAI, {"prompt": "hi"}),
        (CHAT, {"messages": HELLO}),
        ("/v4/beta/completions", {"prompt": "hi"}),
        ("/v5/chat/completions", {"messages": HELLO}),
        ("/v1/messages", {"messages": HELLO, "max_tokens": 10}),
        ("/v1/responses", {"input": "hi"}),
    ],
)
@BOTH
async def test_a_limit_among_extra_members_is_lowered_and_named_on_each_surface(
    served: Rig, path: str, asked: JsonObject, stream: bool
) -> None:
    message: JsonObject = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    served.vendor.answer(json_answer(200, {"id": "1", "object": "chat.completion", "choices": [message]}))
    extra: JsonObject = {"max_tokens": 4000, "num_predict": -1}
    answer = await served.post(path, {"model": "engine/a", "stream": stream, "inference_extra_params": extra, **asked})
    (call,) = calls(served)
    assert (call["max_tokens"], call["num_predict"]) == (100, 100), answer.body
    assert (answer.headers["x-dragoman-max-tokens"], "max_tokens" in (emulated(answer) or "")) == ("100", True)


@BOTH
@pytest.mark.parametrize(
    ("path", "model", "kind"), [(CHAT, "engine/a", "invalid_request_error"), ("/v1/messages", "claude/*", "not_found")]
)
async def test_an_item_that_the_request_names_and_the_vendor_lacks_is_the_clients(
    served: Rig, stream: bool, path: str, model: str, kind: str
) -> None:
    model = model.replace("*", "claude-opus-4-6")
    said = "File not found: file_011"
    served.vendor.answer(json_answer(404, {"type": "error", "error": {"type": "not_found_error", "message": said}}))
    asked: JsonObject = {"model": model, "max_tokens": 9, "stream": stream}
    answer = await served.post(path, {**asked, "messages": [{"role": "user", "content": "file_011"}]})
    assert (answer.status, answer.error()["message"]) == (404, said)
    assert kind in str(answer.error()["type"])
    assert len(calls(served)) == 1


@BOTH
@pytest.mark.parametrize("model", ["ollama/a", "ollama/b", "native/a", "native/b"])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
async def test_a_model_that_does_not_think_is_called_again_without_effort_if_that_may_give_way(
    served: Rig, stream: bool, model: str, path: str
) -> None:
    said = '"a" does not support thinking'
    served.vendor.answer(json_answer(400, {"error": said}), json_answer(400, {"error": "no"}))
    effort: JsonObject = {"reasoning_effort": "high"} if path == CHAT else {"output_config": {"effort": "high"}}
    asked: JsonObject = {"model": model, "max_tokens": 9, "stream": stream, **effort}
    answer = await served.post(path, {**asked, "messages": [{"role": "user", "content": "hi"}]})
    member = "think" if model.startswith("native") else "reasoning_effort"
    gives_way = model.endswith("a") or path != CHAT
    assert [member in body for body in calls(served)] == [True, False][: 1 + gives_way]
    assert (answer.status, answer.error()["message"]) == (400, "no" if gives_way else said)


async def test_an_effort_that_gave_way_is_named(served: Rig) -> None:
    message: JsonObject = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    good = json_answer(200, {"id": "1", "object": "chat.completion", "choices": [message]})
    served.vendor.answer(json_answer(400, {"error": {"message": '"a" does not support thinking'}}), good)
    asked: JsonObject = {"model": "ollama/b", "max_tokens": 9, "thinking": {"type": "adaptive"}}
    answer = await served.post("/v1/messages", {**asked, "messages": [{"role": "user", "content": "hi"}]})
    assert (answer.status, answer.headers["x-dragoman-dropped"]) == (200, "reasoning_effort")
    assert [each.outcome for each in served.records[-1].attempts] == ["ok"]


@BOTH
@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
@pytest.mark.parametrize(
    "said",
    [
        {"message": "Reasoning input is not enabled for this model", "type": "invalid_request_invalid_args"},
        {"message": "messages[1].reasoning: reasoning is not supported with this model"},
        {"message": "body.messages.1.assistant.reasoning: property 'reasoning' is unsupported"},
    ],
)
async def test_a_model_that_refuses_the_reasoning_of_earlier_turns_is_called_again_without_it(
    served: Rig, stream: bool, path: str, said: JsonObject
) -> None:
    served.vendor.answer(json_answer(400, {"error": said}), json_answer(400, {"error": {"message": "no"}}))
    turn: JsonObject = {"role": "assistant", "content": "yes", "reasoning_content": "hm"}
    if path != CHAT:
        blocks: list[JsonValue] = [
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "text", "text": "yes"},
        ]
        turn = {"role": "assistant", "content": blocks}
    asked: JsonObject = {"model": "ollama/b", "max_tokens": 9, "stream": stream}
    answer = await served.post(path, {**asked, "messages": [*HELLO, turn, *HELLO]})
    assert answer.error()["message"] == "no"
    before, after = calls(served)
    assert ["hm" in str(before), "hm" in str(after)] == [True, False]
    assert "yes" in str(after)
    assert "thinking" in (answer.headers.get("x-dragoman-dropped") or "thinking")
