"""Conversations in Cohere's API."""

import pytest

from providers.dialects.cohere.messages import CohereConversation, called_names
from providers.dialects.cohere.tools import CohereToolNames
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import user
from tests.providers.kit import refusal_of
from tests.support.looped import looped

CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "get weather", "arguments": '{"at":"Oslo"}'}}
WIRE_CALL: JsonObject = {**CALL, "function": {"name": "get_weather", "arguments": '{"at":"Oslo"}'}}


PDF: JsonObject = {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}}
NOTES: JsonObject = {"type": "file", "file": {"file_data": "data:text/plain;base64,YWI=", "filename": "a.txt"}}
IMAGE: JsonObject = {"type": "image_url", "image_url": {"url": "https://host/a.png"}}


def conversation(*messages: JsonValue, reasons: bool = False) -> CohereConversation:
    found = CohereConversation(CohereToolNames(["get weather"]), "messages", reasons)
    found.read(messages)
    return found


def read(*messages: JsonValue) -> list[JsonValue]:
    return CohereConversation(CohereToolNames(["get weather"]), "messages").read(messages)


@looped(
    ("message", "turn"),
    [
        (user("hi"), user("hi")),
        (user([{"type": "text", "text": "hi"}]), user("hi")),
        (
            user([{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "text", "text": "b"}]),
            user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ),
        ({"role": "developer", "content": "Be kind."}, {"role": "system", "content": "Be kind."}),
        (
            {"role": "system", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]},
            {"role": "system", "content": "Be kind."},
        ),
        ({"role": "assistant", "content": "ok", "refusal": None}, {"role": "assistant", "content": "ok"}),
        ({"role": "assistant", "content": None, "refusal": "No."}, {"role": "assistant", "content": "No."}),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "Look."},
            {"role": "assistant", "tool_calls": [WIRE_CALL], "tool_plan": "Look."},
        ),
        (
            {"role": "assistant", "content": "Oslo.", "reasoning": "Where?"},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Where?"}, {"type": "text", "text": "Oslo."}],
            },
        ),
        (
            {"role": "tool", "tool_call_id": "c1", "name": "get weather", "content": "3"},
            {"role": "tool", "tool_call_id": "c1", "content": "3"},
        ),
        (
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": ""}]},
            {"role": "tool", "tool_call_id": "c1", "content": "{}"},
        ),
    ],
)
def test_a_message_is_said_in_the_vendors_shape(message: JsonObject, turn: JsonObject) -> None:
    assert read(message) == [turn]


@looped("url", ["https://host/a.png", "http://host/a.png", "data:image/png;base64,AA=="], ids=["https", "http", "data"])
def test_images_stay_what_the_client_sent(url: str) -> None:
    part: JsonObject = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    assert read(user([part])) == [user([part])]
    assert read(user([{"type": "image_url", "image_url": url}])) == [
        user([{"type": "image_url", "image_url": {"url": url}}])
    ]


def test_a_reasoning_model_gets_its_thinking_back_before_its_calls() -> None:
    said: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "Look."}
    names = CohereToolNames(["get weather"])
    assert CohereConversation(names, "messages", True).read([said]) == [
        {"role": "assistant", "tool_calls": [WIRE_CALL], "content": [{"type": "thinking", "thinking": "Look."}]}
    ]


def test_documents_of_the_user_stand_beside_the_messages_as_texts() -> None:
    found = conversation(user([{"type": "text", "text": "Read."}, NOTES]))
    assert found.documents == [{"data": {"title": "a.txt", "text": "ab"}}]


def test_a_result_may_hold_documents_and_its_images_follow_as_the_user_s() -> None:
    page: JsonObject = {
        "type": "search_result",
        "source": "https://example.com",
        "title": "A page",
        "content": [{"type": "text", "text": "deep"}],
    }
    result: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}, page, IMAGE]}
    assert read(result, user("so?")) == [
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [
                {"type": "text", "text": "x"},
                {
                    "type": "document",
                    "document": {"data": {"title": "A page", "url": "https://example.com", "text": "deep"}},
                },
                {"type": "text", "text": "[image 1 follows]"},
            ],
        },
        user([{"type": "text", "text": "[image 1]"}, IMAGE]),
        user("so?"),
    ]


def test_a_failed_result_says_so() -> None:
    result: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "boom", "is_error": True}
    assert read(result) == [{"role": "tool", "tool_call_id": "c1", "content": "The call failed: boom"}]


def test_the_texts_of_a_result_stand_on_lines_of_their_own() -> None:
    texts: JsonValue = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    result: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": texts}
    assert read(result) == [{**result, "content": "a\nb"}]
    assert read({**result, "is_error": True}) == [{**result, "content": "The call failed: a\nb"}]
    blank: list[JsonValue] = ["", " ", []]
    for empty in blank:
        assert read({**result, "content": empty}) == [{**result, "content": "{}"}]
        assert read({**result, "content": empty, "is_error": True}) == [{**result, "content": "The call failed."}]


def test_a_document_in_the_vendor_s_own_form_stays_as_it_is() -> None:
    document: JsonObject = {"id": "1", "data": {"text": "a"}}
    found = conversation(user([{"type": "text", "text": "a"}, {"type": "document", "document": document}]))
    assert found.documents == [document]


def test_members_that_promise_nothing_are_left_out_and_named() -> None:
    marked: JsonObject = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    hidden: JsonObject = {"type": "reasoning.encrypted", "data": "AA==", "format": "anthropic-claude-v1"}
    said: JsonObject = {"role": "assistant", "content": "a", "reasoning_details": [hidden]}
    found = conversation({"role": "user", "content": [marked], "name": "Ada"}, said)
    assert found.dropped == ["name", "cache_control", "thinking"]


def test_what_says_nothing_is_left_out() -> None:
    assert read(user(""), {"role": "assistant", "content": None}, user("hi")) == [user("hi")]


@looped(
    ("message", "reason"),
    [
        ("hi", "is not an object"),
        ({"role": "critic", "content": "x"}, "has the role 'critic'"),
        ({"role": "tool", "content": "x"}, "without 'tool_call_id'"),
        (user([{"type": "input_audio", "input_audio": {"format": "wav", "data": "A"}}]), "has a part of type 'audio'"),
        (user([{"type": "hologram"}]), "has a part of type 'hologram'"),
        (user([PDF]), "has a document that is not text"),
        (user([{}]), "has a part of type 'None'"),
        (user([{"type": "image_url", "image_url": {"url": "gs://b/a.png"}}]), "neither a web address"),
        ({"role": "system", "content": [{"type": "image_url", "image_url": "https://h/a"}]}, "may only hold text"),
    ],
)
def test_what_has_no_place_is_refused_with_its_position(message: JsonValue, reason: str) -> None:
    refusal = refusal_of(read, user("hi"), message)
    assert refusal.param == "messages"
    assert refusal.message.startswith("messages[1] ")
    assert reason in refusal.message


def test_a_conversation_of_nothing_is_refused() -> None:
    with pytest.raises(Refusal, match="holds no text"):
        read(user(""))


def test_the_names_of_calls_are_found() -> None:
    assert called_names([user("x"), {"role": "assistant", "tool_calls": [CALL, {"id": "c2"}]}]) == ["get weather"]
    custom: JsonObject = {"id": "c3", "type": "custom", "custom": {"name": "sql", "input": "x"}}
    legacy: JsonObject = {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}}
    assert called_names([{"role": "assistant", "tool_calls": [custom]}, legacy]) == ["sql", "old"]
