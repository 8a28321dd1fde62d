"""Clients of other APIs at models that are only available through the Responses API, over real sockets."""

from collections.abc import Callable
from typing import cast

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.responses.kit import events_of, response, sse
from tests.proxy.kit.chat_answers import frames, joined, listed, only_choice
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.tables import digest_of
from tests.proxy.surfaces.anthropic.kit import accumulate
from tests.support.http_scripts import json_answer, sse_answer, sse_unterminated
from tests.support.looped import looped
from tests.support.vendor_script import Fin, Received, Script

TABLE = f"""
defaults: {{retries: {{attempts: 2}}}}
vendors:
  openai: {{api_key: k, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
  azure: {{api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
  anthropic: {{api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
models:
  openai/gpt-5.6: {{context_window: 100000}}
  openai/gpt-5.1-codex: {{}}
  openai/gpt-5.3-codex: {{on_unsupported: drop}}
  azure/house: {{upstream_model: gpt-5.6}}
  anthropic/claude-x: {{max_output_tokens: 100}}
routes:
  best: {{targets: [openai/gpt-5.6, anthropic/claude-x]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["openai/*", "azure/*", "anthropic/*", best]
"""
served = gateway_fixture(TABLE)

PARAMETERS: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}
CHATS = (
    "/v1/chat/completions",
    "/v4/beta/chat/completions",
    "/v5/chat/completions",
    "/inference/v1/chat/completions",
    "/api/v1/compatibility/openai/v1/chat/completions",
)
MODELS = ("openai/gpt-5.6", "azure/house")

USAGE: JsonObject = {
    "input_tokens": 40,
    "input_tokens_details": {"cached_tokens": 30},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 8},
    "total_tokens": 60,
}
CITED: JsonObject = {"type": "url_citation", "url": "https://a.b/c", "title": "C", "start_index": 0, "end_index": 5}
SAID: JsonObject = {"type": "output_text", "text": "Hello wörld", "annotations": [CITED]}
WHOLE = response(
    output=[
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "I must look."}],
            "encrypted_content": "sealed",
        },
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [SAID]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "f", "arguments": '{"a": 2}'},
    ],
    usage=USAGE,
)


def by_responses(whole: JsonObject = WHOLE) -> Callable[[Received], Script]:
    """Respond at the Responses API, and refuse every other path."""

    def answer(request: Received) -> Script:
        if not request.target.endswith("/v1/responses"):
            return json_answer(400, {"error": {"message": "not in this API", "type": "invalid_request_error"}})
        if orjson.loads(request.body).get("stream"):
            return sse_answer([sse(event) for event in events_of(whole)])
        return json_answer(200, whole)

    return answer


def chat_body(model: str, stream: bool, **fields: JsonValue) -> JsonObject:
    more: JsonObject = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL], **more, **fields}


@looped("stream", [False, True])
@looped("model", MODELS)
@looped("path", CHATS)
async def test_a_chat_is_answered_in_its_own_form(served: Rig, path: str, model: str, stream: bool) -> None:
    served.vendor.default = by_responses()
    answer = await served.post(path, chat_body(model, stream))
    assert answer.status == 200, answer.body
    read = joined(answer) if stream else only_choice(answer)
    usage = cast(JsonObject, read.pop("usage"))
    form = "openai-responses-v1" if model.startswith("openai") else "azure-openai-responses-v1"
    sealed: JsonObject = {"type": "reasoning.encrypted", "data": "sealed", "format": form, "index": 0, "id": "rs_1"}
    (cited,) = listed(read, "annotations")
    assert cited["url_citation"] == {name: value for name, value in CITED.items() if name != "type"}
    assert read == {
        "content": "Hello wörld",
        "reasoning_content": "I must look.",
        "reasoning_details": [sealed],
        "annotations": [cited],
        "calls": [{"id": "c1", "arguments": '{"a": 1}'}, {"id": "c2", "arguments": '{"a": 2}'}],
        "finish": "tool_calls",
    }
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (40, 20, 60)
    assert cast(JsonObject, usage["prompt_tokens_details"])["cached_tokens"] == 30
    assert cast(JsonObject, usage["completion_tokens_details"])["reasoning_tokens"] == 8
    body = served.sent()
    assert (body["model"], body["store"], body["include"]) == ("gpt-5.6", False, ["reasoning.encrypted_content"])
    assert body["tools"] == [{"type": "function", "name": "f", "parameters": PARAMETERS, "strict": False}]


@looped("stream", [False, True])
async def test_a_message_is_answered_in_its_own_form_and_its_thinking_comes_back(served: Rig, stream: bool) -> None:
    served.vendor.default = by_responses()
    fields: JsonObject = {
        "model": "openai/gpt-5.6",
        "max_tokens": 900,
        "stream": stream,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "tools": [{"name": "f", "input_schema": PARAMETERS}],
    }
    answer = await served.post("/v1/messages", {**fields, "messages": [{"role": "user", "content": "hi"}]})
    assert answer.status == 200, answer.body
    message = accumulate(answer.body).model_dump() if stream else answer.json()
    thinking, text, *calls = cast(list[JsonObject], message["content"])
    assert (thinking["thinking"], text["text"]) == ("I must look.", "Hello wörld")
    assert [(call["id"], call["input"]) for call in calls] == [("c1", {"a": 1}), ("c2", {"a": 2})]
    assert message["stop_reason"] == "tool_use"
    usage = cast(JsonObject, message["usage"])
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (10, 30, 20)
    assert (served.sent()["reasoning"], served.sent()["max_output_tokens"]) == ({"effort": "high"}, 900)
    results: JsonValue = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "two"}]},
    ]
    blocks: list[JsonValue] = [
        {name: value for name, value in block.items() if value is not None} for block in (thinking, text, *calls)
    ]
    turns: list[JsonValue] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [*blocks]}]
    again = await served.post("/v1/messages", {**fields, "messages": [*turns, {"role": "user", "content": results}]})
    assert again.status == 200, again.body
    assert served.sent()["input"] == [
        {"role": "user", "content": "hi"},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "I must look."}],
            "encrypted_content": "sealed",
            "id": "rs_1",
        },
        {"role": "assistant", "content": "Hello wörld"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": '{"a":2}'},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
    ]


CODEX = "openai/gpt-5.1-codex"


def text_response(
    text: str = "Hello", kind: str = "output_text", status: str = "completed", reason: str = ""
) -> JsonObject:
    """Return a response with one text."""
    part: JsonObject = {"type": "refusal", "refusal": text} if kind == "refusal" else {"type": kind, "text": text}
    output: JsonValue = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    return response(status, [output], usage=USAGE, incomplete_details={"reason": reason} if reason else None)


@looped("stream", [False, True])
@looped(
    ("whole", "finish", "messages_stop"),
    [
        (text_response(), "stop", "end_turn"),
        (text_response(status="incomplete", reason="max_output_tokens"), "length", "max_tokens"),
        (text_response(status="incomplete", reason="content_filter"), "content_filter", "refusal"),
    ],
)
async def test_an_answer_ends_for_the_vendor_s_reason(
    served: Rig, whole: JsonObject, finish: str, messages_stop: str, stream: bool
) -> None:
    served.vendor.default = by_responses(whole)
    answer = await served.post(CHATS[0], chat_body(CODEX, stream))
    read = joined(answer) if stream else only_choice(answer)
    assert (read["content"], read["finish"]) == ("Hello", finish)
    body: JsonObject = {"model": CODEX, "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
    message = await served.post("/v1/messages", {**body, "stream": stream})
    shown = accumulate(message.body).model_dump() if stream else message.json()
    assert shown["stop_reason"] == messages_stop


@looped("stream", [False, True])
async def test_a_refusal_and_a_stop_string_and_a_completion(served: Rig, stream: bool) -> None:
    served.vendor.default = by_responses(text_response("I may not", "refusal"))
    answer = await served.post(CHATS[0], chat_body(CODEX, stream))
    assert b'"refusal":"I may not"' in answer.body or b'"refusal":"I ma"' in answer.body
    served.vendor.default = by_responses(text_response("one END two"))
    stopped = await served.post(CHATS[0], chat_body(CODEX, stream, stop="END"))
    read = joined(stopped) if stream else only_choice(stopped)
    assert (read["content"], read["finish"]) == ("one ", "stop")
    completed = await served.post("/v1/completions", {"model": CODEX, "prompt": "hi", "stream": stream})
    assert completed.status == 200
    assert "prompt" in completed.headers["x-dragoman-emulated"]


@looped(
    ("fields", "param"),
    [
        ({"seed": 7}, "seed"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"max_tokens": 15}, "max_tokens"),
        ({"background": True}, "background"),
        ({"inference_extra_params": {"store": True}}, "inference_extra_params"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}],
                    }
                ]
            },
            "messages",
        ),
    ],
)
async def test_what_the_api_lacks_is_refused_by_name(served: Rig, fields: JsonObject, param: str) -> None:
    answer = await served.post(CHATS[0], chat_body(CODEX, False, **fields))
    assert (answer.status, answer.error()["param"]) == (400, param), answer.body
    if param == "seed":
        assert "'seed' is not supported by openai/" in answer.message
        assert ": this request goes by the Responses API, which has no such field (the model" in answer.message
    assert served.vendor.requests == []


async def test_neutral_values_are_taken_and_advisory_ones_are_named(served: Rig) -> None:
    served.vendor.default = by_responses()
    neutral: JsonObject = {
        "n": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "logit_bias": {},
        "stop": [],
        "seed": None,
    }
    advisory: JsonObject = {"prediction": {"type": "content", "content": "x"}, "metadata": {"a": "b"}, "user": "u"}
    answer = await served.post(CHATS[0], chat_body(CODEX, False, **neutral, **advisory))
    assert (answer.status, answer.headers["x-dragoman-dropped"]) == (200, "prediction")
    assert (served.sent()["metadata"], served.sent()["user"]) == ({"a": "b"}, "u")
    steering: JsonObject = {"seed": 7, "presence_penalty": 0.5, "logit_bias": {"5": 1}}
    without = await served.post(CHATS[0], chat_body("openai/gpt-5.3-codex", False, **steering))
    assert (without.status, {*without.headers["x-dragoman-dropped"].split(", ")}) == (200, {*steering})
    several = await served.post(CHATS[0], chat_body(CODEX, False, n=2))
    assert len(listed(several.json(), "choices")) == 2
    assert cast(JsonObject, several.json()["usage"])["completion_tokens"] == 40


CLAUDE: JsonObject = {
    "id": "msg_v",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "text", "text": "from claude"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
CREATED: JsonObject = {"type": "response.created", "response": {}}
FAILURE: JsonObject = {"error": {"code": "server_error", "message": "x"}}
STREAMED_CLAUDE = sse(
    {"type": "message_start", "message": {**CLAUDE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "from claude"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)


@looped(
    ("script", "stream", "fields"),
    [
        (json_answer(500, {"error": {"message": "down"}}), False, {}),
        (json_answer(500, {"error": {"message": "down"}}), True, {}),
        (json_answer(200, {"status": "failed", **FAILURE}), False, {}),
        (sse_answer(sse(CREATED, {"type": "response.failed", "response": FAILURE})), True, {}),
        (sse_unterminated(sse(CREATED), Fin()), True, {}),
        # These are refused before any call.
        (json_answer(200, WHOLE), False, {"max_tokens": 5}),
    ],
)
async def test_a_route_goes_on_to_its_next_target(
    served: Rig, script: Script, stream: bool, fields: JsonObject
) -> None:
    claude = sse_answer(STREAMED_CLAUDE) if stream else json_answer(200, CLAUDE)
    served.vendor.default = lambda request: script if request.target.endswith("/responses") else claude
    answer = await served.post(CHATS[0], chat_body("best", stream, **fields))
    assert (answer.status, answer.headers["x-dragoman-deployment"]) == (200, "anthropic/claude-x/default"), answer.body
    assert (joined(answer) if stream else only_choice(answer))["content"] == "from claude"


async def test_a_stream_that_broke_looks_broken(served: Rig) -> None:
    events = [*events_of(text_response("Hello there"))][:-1]
    served.vendor.default = sse_unterminated(sse(*events), Fin())
    answer = await served.post(CHATS[0], chat_body("best", True))
    *_, last = frames(answer)
    assert "error" in last
    assert b'"finish_reason":"stop"' not in answer.body
    assert len(served.vendor.requests) == 1


@looped("stream", [False, True])
async def test_a_prompt_that_is_too_long_is_said_to_be(served: Rig, stream: bool) -> None:
    error: JsonObject = {
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model.",
    }
    served.vendor.default = (
        sse_answer(sse({"type": "response.failed", "response": {"error": error}}))
        if stream
        else json_answer(400, {"error": {**error, "type": "invalid_request_error", "param": "input"}})
    )
    answer = await served.post(CHATS[0], chat_body(CODEX, stream))
    assert (answer.status, answer.code) == (400, "context_length_exceeded")


@looped(("prompt", "status", "limit"), [(3900, 200, 100), (3990, 400, None)])
async def test_a_limit_is_lowered_as_far_as_the_api_takes_it(
    served: Rig, prompt: int, status: int, limit: int | None
) -> None:
    said = f"This model's maximum context length is 4000 tokens. However, you requested {prompt + 200} tokens "
    error: JsonObject = {"message": f"{said}({prompt} in the messages, 200 in the completion).", "param": "input"}
    refusal = json_answer(400, {"error": {**error, "code": "context_length_exceeded"}})

    def answer(request: Received) -> Script:
        asked_for = orjson.loads(request.body)["max_output_tokens"]
        return refusal if prompt + asked_for > 4000 else json_answer(200, WHOLE)

    served.vendor.default = answer
    fields: JsonObject = {"max_tokens": 200, "context_length_exceeded_behavior": "truncate"}
    reply = await served.post(CHATS[0], chat_body(CODEX, False, **fields))
    assert reply.status == status, reply.body
    if limit is None:
        assert reply.code == "context_length_exceeded"
    else:
        assert served.sent()["max_output_tokens"] == limit


@looped("stream", [False, True])
async def test_a_conversation_that_moved_to_another_account_goes_on_without_its_reasoning(
    served: Rig, stream: bool
) -> None:
    error: JsonObject = {"message": "The encrypted content could not be verified.", "type": "invalid_request_error"}
    good = by_responses()

    def answer(request: Received) -> Script:
        if b'"encrypted_content"' in request.body:
            return json_answer(400, {"error": {**error, "code": "invalid_encrypted_content"}})
        return good(request)

    served.vendor.default = answer
    sealed: JsonObject = {"type": "reasoning.encrypted", "data": "theirs", "format": "openai-responses-v1"}
    turn: JsonObject = {"role": "assistant", "content": "a", "reasoning_details": [sealed]}
    messages: JsonValue = [{"role": "user", "content": "hi"}, turn, {"role": "user", "content": "more"}]
    before = len(served.vendor.requests)
    reply = await served.post(CHATS[0], chat_body("openai/gpt-5.6", stream, messages=messages))
    assert (reply.status, reply.headers["x-dragoman-dropped"]) == (200, "thinking"), reply.body
    assert len(served.vendor.requests) == before + 2
    said = [{"role": each["role"], "content": each["content"]} for each in cast(list[JsonObject], messages)]
    assert served.sent()["input"] == said
