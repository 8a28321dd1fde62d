"""The outgoing request of Cohere's v2 chat, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.unified_request import Operation
from tests.providers.dialects.kit import (
    body_for,
    chat_request,
    decoded,
    only,
    sent_for,
    target_of,
    text_request,
    tool,
    user,
)

TARGET = target_of("cohere", "command-a-03-2025")


def test_a_prompt_becomes_one_message_of_the_user() -> None:
    sent = sent_for(text_request("Say hi"), TARGET)
    assert (sent.method, sent.url, sent.operation) == ("POST", "https://api.cohere.com/v2/chat", Operation.CHAT)
    assert orjson.loads(sent.body) == {
        "model": "command-a-03-2025",
        "messages": [{"role": "user", "content": "Say hi"}],
        "stream": False,
    }
    assert sent.emulated == ("prompt",)


def test_a_stream_is_asked_for_by_its_member() -> None:
    sent = sent_for(replace(chat_request(), stream=True), TARGET)
    assert sent.stream
    assert orjson.loads(sent.body)["stream"] is True
    assert sent.emulated == ()


def test_images_of_a_prompt_stand_where_their_markers_were() -> None:
    png = "data:image/png;base64,iVBORw0KGgo="
    sent = sent_for(text_request("Look at <image> now", images=((png,),)), TARGET)
    assert orjson.loads(sent.body)["messages"][0]["content"] == [
        {"type": "text", "text": "Look at "},
        {"type": "image_url", "image_url": {"url": png}},
        {"type": "text", "text": " now"},
    ]
    assert sent.emulated == ("prompt", "images")


def test_extra_params_are_merged_last_and_deep() -> None:
    request = replace(
        chat_request(max_tokens=5, response_format={"type": "json_object"}),
        extra_params={"max_tokens": 9, "response_format": {"json_schema": {}}, "safety_mode": "STRICT"},
    )
    body = body_for(request, TARGET)
    assert (body["max_tokens"], body["safety_mode"]) == (9, "STRICT")
    assert body["response_format"] == {"type": "json_object", "json_schema": {}}


def test_names_on_the_wire_lead_back_to_the_clients() -> None:
    assert dict(sent_for(chat_request(tools=[tool("get-weather"), tool("now")]), TARGET).tool_names) == {
        "get_weather": "get-weather"
    }


@pytest.mark.parametrize(("status", "kind"), [(402, FailureKind.QUOTA), (403, FailureKind.AUTH)])
def test_without_words_the_status_decides(status: int, kind: FailureKind) -> None:
    assert TARGET.dialect.classify(sent_for(chat_request(), TARGET), status, {}, b"").kind is kind


def test_members_of_the_vendor_s_own_request_go_there_as_they_are_beside_documents_of_messages() -> None:
    notes: JsonObject = {"type": "file", "file": {"file_data": "data:text/plain;base64,YWI=", "filename": "a.txt"}}
    own: JsonObject = {"documents": ["c"], "safety_mode": "OFF"}
    request = replace(chat_request(user([{"type": "text", "text": "Read."}, notes])), unknown=own)
    sent = sent_for(request, TARGET)
    body = orjson.loads(sent.body)
    assert body["safety_mode"] == "OFF"
    assert body["documents"] == ["c", {"data": {"title": "a.txt", "text": "ab"}}]
    assert own["documents"] == ["c"]


def test_a_custom_tool_goes_as_a_function_of_one_text() -> None:
    custom: JsonObject = {"type": "custom", "custom": {"name": "run sql"}}
    said: JsonObject = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "run sql", "input": "SELECT 1"}}],
    }
    result: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "1"}
    sent = sent_for(chat_request(user("go"), said, result, tools=[custom]), TARGET)
    assert sent.custom_tools == {"run sql"}
    assert sent.tool_names == {"run_sql": "run sql"}
    call = orjson.loads(sent.body)["messages"][1]["tool_calls"][0]["function"]
    assert call == {"name": "run_sql", "arguments": '{"input":"SELECT 1"}'}


@pytest.mark.parametrize("model", ["command-a-03-2025", "command-a-reasoning-08-2025"])
def test_five_turns_of_thinking_and_tools_go_back_as_the_vendor_said_them(model: str) -> None:
    target = target_of("cohere", model)
    messages: list[JsonObject] = [user("What time is it?")]
    sent = sent_for(chat_request(*messages), target)
    for number in range(5):
        sent = sent_for(chat_request(*messages, tools=[tool("now")], reasoning_effort="low"), target)
        thinking: JsonObject = {"content": [{"type": "thinking", "thinking": f"Step {number}."}]}
        plan: JsonObject = {"tool_plan": f"Step {number}."}
        call: JsonObject = {"id": f"now_{number}", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        said: JsonObject = {"role": "assistant", "tool_calls": [call], **(thinking if "reasoning" in model else plan)}
        choice = only(decoded(sent, orjson.dumps({"id": "a", "finish_reason": "TOOL_CALL", "message": said})))
        assert choice.extras is not None
        answer: JsonObject = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer["reasoning_details"] = [*choice.extras.reasoning_details]
        messages += [answer, {"role": "tool", "tool_call_id": f"now_{number}", "content": f"1{number}:00"}]
        assert orjson.loads(sent_for(chat_request(*messages), target).body)["messages"][-2] == said
    assert sent.dropped == ()
