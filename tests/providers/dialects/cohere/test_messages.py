"""Conversations on Cohere's wire."""

import pytest

from providers.dialects.cohere.messages import CohereConversation, called_names
from providers.dialects.cohere.tools import CohereToolNames
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import user

CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "get weather", "arguments": '{"at":"Oslo"}'}}
WIRE_CALL: JsonObject = {**CALL, "function": {"name": "get_weather", "arguments": '{"at":"Oslo"}'}}


def read(*messages: JsonValue) -> list[JsonValue]:
    return CohereConversation(CohereToolNames(["get weather"]), "messages").read(messages)


@pytest.mark.parametrize(
    ("message", "turn"),
    [
        (user("hi"), user("hi")),
        (user([{"type": "text", "text": "hi"}]), user([{"type": "text", "text": "hi"}])),
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


@pytest.mark.parametrize(
    "url", ["https://host/a.png", "http://host/a.png", "data:image/png;base64,AA=="], ids=["https", "http", "data"]
)
def test_images_stay_what_the_client_sent(url: str) -> None:
    part: JsonObject = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    assert read(user([part])) == [user([part])]
    assert read(user([{"type": "image_url", "image_url": url}])) == [
        user([{"type": "image_url", "image_url": {"url": url}}])
    ]


def test_what_says_nothing_is_left_out() -> None:
    assert read(user(""), {"role": "assistant", "content": None}, user("hi")) == [user("hi")]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("hi", "is not an object"),
        ({"role": "critic", "content": "x"}, "has the role 'critic'"),
        ({"role": "user", "content": "x", "name": "Ada"}, "has the member 'name'"),
        ({"role": "tool", "content": "x"}, "without 'tool_call_id'"),
        (user([{"type": "input_audio", "input_audio": {}}]), "has a part of type 'input_audio'"),
        (user([{}]), "has a part of type 'None'"),
        (user([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]), "neither a web address"),
        ({"role": "system", "content": [{"type": "image_url", "image_url": "https://h/a"}]}, "may only hold text"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "a"}}]}, "without an id"),
    ],
)
def test_what_has_no_place_is_refused_with_its_position(message: JsonValue, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        read(user("hi"), message)
    assert caught.value.param == "messages"
    assert caught.value.message.startswith("messages[1] ")
    assert reason in caught.value.message


def test_a_conversation_of_nothing_is_refused() -> None:
    with pytest.raises(Refusal, match="holds no text"):
        read(user(""))


def test_the_names_of_calls_are_found() -> None:
    assert called_names([user("x"), {"role": "assistant", "tool_calls": [CALL, {"id": "c2"}]}]) == ["get weather"]
