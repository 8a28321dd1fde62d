"""The outgoing request of Converse, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.dialects.bedrock.converse import model_path
from providers.json_types import JsonObject
from providers.unified_request import Operation
from tests.providers.dialects.bedrock.kit import target
from tests.providers.dialects.kit import body_for, chat_request, gathered, refusal_for, sent_for, text_request, user
from tests.support.looped import looped

CLAUDE = target()
PNG = "data:image/png;base64,iVBORw0KGgo="
TOOL: JsonObject = {"type": "function", "function": {"name": "now"}}
HISTORY: tuple[JsonObject, ...] = (
    user("go"),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "now"}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "12:00"},
)


@looped(
    ("model", "path"),
    [
        ("amazon.nova-pro-v1:0", "/model/amazon.nova-pro-v1%3A0/converse"),
        ("anthropic.claude-opus-4-7", "/model/anthropic.claude-opus-4-7/converse"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.a_b~c",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Feu.a_b~c/converse",
        ),
        ("a b%é", "/model/a%20b%25%C3%A9/converse"),
    ],
)
def test_every_character_of_the_model_that_is_not_plain_is_escaped(model: str, path: str) -> None:
    assert model_path(target(model), "converse") == path


def test_a_prompt_becomes_one_message_of_the_user() -> None:
    sent = sent_for(text_request("Say hi"), CLAUDE)
    base = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0"
    assert (sent.method, sent.url, sent.operation) == ("POST", f"{base}/converse", Operation.CHAT)
    assert orjson.loads(sent.body) == {"messages": [{"role": "user", "content": [{"text": "Say hi"}]}]}
    assert sent.emulated == ("prompt",)
    assert sent.headers == {}


def test_a_stream_is_asked_for_by_the_path_alone() -> None:
    whole, streamed = sent_for(chat_request(), CLAUDE), sent_for(replace(chat_request(), stream=True), CLAUDE)
    assert streamed.url == f"{whole.url}-stream"
    assert streamed.body == whole.body
    assert (whole.stream, streamed.stream) == (False, True)


@looped(
    ("model", "fields", "action"),
    [
        ("us.meta.llama4-maverick-17b-instruct-v1:0", {"tools": [TOOL]}, "converse"),
        ("us.meta.llama3-3-70b-instruct-v1:0", {"tools": [TOOL]}, "converse"),
        ("us.meta.llama3-3-70b-instruct-v1:0", {"tools": [TOOL], "tool_choice": "none"}, "converse-stream"),
        ("us.meta.llama3-3-70b-instruct-v1:0", {}, "converse-stream"),
        ("mistral.mistral-large-2402-v1:0", {"tools": [TOOL]}, "converse"),
        ("writer.palmyra-x5-v1:0", {"tools": [TOOL]}, "converse"),
        ("amazon.nova-pro-v1:0", {"tools": [TOOL]}, "converse-stream"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", {"tools": [TOOL]}, "converse-stream"),
    ],
)
def test_a_model_that_streams_no_tools_is_called_for_a_whole_response(
    model: str, fields: JsonObject, action: str
) -> None:
    sent = sent_for(replace(chat_request(**fields), stream=True), target(model))
    assert (sent.url.rpartition("/")[2], sent.stream, sent.whole) == (action, True, action == "converse")


def test_a_stream_is_made_of_a_whole_response() -> None:
    llama = target("us.meta.llama3-3-70b-instruct-v1:0")
    sent = sent_for(replace(chat_request(tools=[TOOL]), stream=True), llama)
    use: JsonObject = {"toolUse": {"toolUseId": "c1", "name": "now", "input": {}}}
    body = orjson.dumps(
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Wait."}, use]}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        }
    )
    decoder = llama.dialect.stream(sent)
    events = [*decoder.feed(body[:20]), *decoder.feed(body[20:]), *decoder.finish()]
    assert decoder.complete
    assert gathered(events) == llama.dialect.decode(sent, body)


@looped(
    ("model", "system"),
    [
        ("mistral.mistral-7b-instruct-v0:2", False),
        ("mistral.mixtral-8x7b-instruct-v0:1", False),
        ("amazon.titan-text-express-v1", False),
        ("cohere.command-text-v14", False),
        ("mistral.mistral-large-2402-v1:0", True),
        ("cohere.command-r-plus-v1:0", True),
        ("meta.llama3-3-70b-instruct-v1:0", True),
    ],
)
def test_instructions_are_the_user_s_for_a_model_without_system_text(model: str, system: bool) -> None:
    kind, asked = {"text": "Be kind."}, {"text": "hi"}
    sent = sent_for(chat_request({"role": "system", "content": "Be kind."}, user("hi")), target(model))
    body = orjson.loads(sent.body)
    content = [asked] if system else [kind, asked]
    assert (body["messages"], body.get("system")) == (
        [{"role": "user", "content": content}],
        [kind] if system else None,
    )
    assert sent.emulated == (() if system else ("messages",))
    begun: list[JsonObject] = [{"role": "system", "content": "Be kind."}, {"role": "assistant", "content": "hi"}]
    sent = sent_for(chat_request(*begun, user("yes")), target(model))
    assert orjson.loads(sent.body)["messages"][0] == {"role": "user", "content": [{"text": "."} if system else kind]}


def test_images_of_a_prompt_stand_where_their_markers_were() -> None:
    sent = sent_for(text_request("Compare <image> and <image>\n", images=((PNG, PNG),)), CLAUDE)
    image = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
    content = [{"text": "Compare "}, image, {"text": " and "}, image]
    assert orjson.loads(sent.body)["messages"] == [{"role": "user", "content": content}]
    assert sent.emulated == ("prompt", "images")
    refusal = refusal_for(text_request("<image>", images=(("data:image/tiff;base64,AA==",),)), CLAUDE)
    assert refusal.param == "images"


def test_instructions_stand_apart_and_those_from_the_middle_are_named_as_moved() -> None:
    sent = sent_for(chat_request({"role": "system", "content": "Be kind."}, user("hi")), CLAUDE)
    assert orjson.loads(sent.body)["system"] == [{"text": "Be kind."}]
    assert sent.emulated == ()
    sent = sent_for(chat_request(user("hi"), {"role": "developer", "content": "Be brief."}), CLAUDE)
    assert orjson.loads(sent.body)["system"] == [{"text": "Be brief."}]
    assert sent.emulated == ("messages",)


def test_calls_of_the_history_stay_calls_beside_tools() -> None:
    sent = sent_for(chat_request(*HISTORY, tools=[TOOL]), CLAUDE)
    assert b"toolUse" in sent.body
    assert b"toolConfig" in sent.body
    assert sent.emulated == ()


@pytest.mark.parametrize(
    ("params", "named"), [({}, ("messages",)), ({"tools": [TOOL], "tool_choice": "none"}, ("tool_choice", "messages"))]
)
def test_calls_of_the_history_are_told_in_words_where_none_may_follow(
    params: dict[str, object], named: tuple[str, ...]
) -> None:
    sent = sent_for(chat_request(*HISTORY, **params), CLAUDE)
    assert orjson.loads(sent.body) == {
        "messages": [
            {"role": "user", "content": [{"text": "go"}]},
            {"role": "assistant", "content": [{"text": "[call a of now: {}]"}]},
            {"role": "user", "content": [{"text": "[result of call a: 12:00]"}]},
        ]
    }
    assert sent.emulated == named


def test_members_of_the_service_s_own_request_go_there_as_they_are_beside_unified_ones() -> None:
    own: JsonObject = {"guardrailConfig": {"guardrailIdentifier": "g"}, "inferenceConfig": {"temperature": 0.5}}
    body = body_for(replace(chat_request(max_tokens=5), unknown=own), CLAUDE)
    assert body["guardrailConfig"] == {"guardrailIdentifier": "g"}
    assert body["inferenceConfig"] == {"temperature": 0.5, "maxTokens": 5}
    assert own["inferenceConfig"] == {"temperature": 0.5}


def test_a_cache_marker_at_the_top_marks_the_end_of_the_conversation() -> None:
    request = replace(chat_request(user("a"), user("b")), unknown={"cache_control": {"type": "ephemeral"}})
    content = [{"text": "a"}, {"text": "b"}, {"cachePoint": {"type": "default"}}]
    assert body_for(request, CLAUDE)["messages"] == [{"role": "user", "content": content}]
    sent = sent_for(request, target("meta.llama3-3-70b-instruct-v1:0"))
    assert (b"cachePoint" in sent.body, sent.dropped) == (False, ("cache_control",))


def test_an_answer_that_is_sent_back_whole_is_taken() -> None:
    said: JsonObject = {"role": "assistant", "content": "a", "content_blocks": [{"toolUse": {}}], "citations": [{}]}
    body = body_for(chat_request(user("go"), said, user("on")), CLAUDE)
    assert b"content_blocks" not in orjson.dumps(body)


def test_extra_params_are_merged_last_and_deep() -> None:
    extra: JsonObject = {
        "inferenceConfig": {"maxTokens": 9},
        "performanceConfig": {"latency": "optimized"},
        "additionalModelRequestFields": {"top_k": 7},
    }
    body = body_for(replace(chat_request(max_tokens=5, temperature=0.5), extra_params=extra), CLAUDE)
    assert body["inferenceConfig"] == {"maxTokens": 9, "temperature": 0.5}
    assert body["performanceConfig"] == {"latency": "optimized"}
    assert body["additionalModelRequestFields"] == {"top_k": 7}


@pytest.mark.parametrize("name", ["messages", "system"])
def test_the_conversation_is_not_for_extra_params(name: str) -> None:
    refusal = refusal_for(replace(chat_request(), extra_params={name: []}), CLAUDE)
    assert refusal.param == "inference_extra_params"
