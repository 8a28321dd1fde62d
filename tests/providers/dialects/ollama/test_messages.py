"""Conversations and tools in Ollama's API."""

from providers.dialects.ollama.messages import OllamaConversation
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, sent_for, target_of, tool, user
from tests.providers.kit import refusal_of
from tests.support.looped import looped

TARGET = target_of("ollama_native")
CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "Oslo"}'}}
IMAGE: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


SOUND: JsonObject = {"type": "input_audio", "input_audio": {"format": "wav", "data": "AA=="}}


def read(*messages: JsonValue) -> list[JsonValue]:
    return OllamaConversation("messages").read(messages)


@looped(
    ("message", "turn"),
    [
        (user("hi"), user("hi")),
        (user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), user("ab")),
        (user([{"type": "text", "text": "a"}, IMAGE]), {"role": "user", "content": "a", "images": ["AA=="]}),
        ({"role": "developer", "content": "Be kind."}, {"role": "system", "content": "Be kind."}),
        ({"role": "assistant", "content": None, "refusal": "No."}, {"role": "assistant", "content": "No."}),
        (
            {"role": "assistant", "content": "Oslo.", "reasoning_content": "Where?"},
            {"role": "assistant", "content": "Oslo.", "thinking": "Where?"},
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "look", "arguments": {"at": "Oslo"}}}],
            },
        ),
        (
            {"role": "tool", "tool_call_id": "c1", "name": "look", "content": [{"type": "text", "text": "3"}]},
            {"role": "tool", "content": "3", "tool_call_id": "c1", "tool_name": "look"},
        ),
        (
            {"role": "tool", "tool_call_id": "c9", "content": "3"},
            {"role": "tool", "content": "3", "tool_call_id": "c9"},
        ),
    ],
)
def test_a_message_is_said_in_the_engines_shape(message: JsonObject, turn: JsonObject) -> None:
    assert read(message) == [turn]


def test_a_result_is_named_after_the_call_it_answers() -> None:
    turns = read({"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c1", "content": "3"})
    assert turns[1] == {"role": "tool", "content": "3", "tool_call_id": "c1", "tool_name": "look"}


@looped(
    ("message", "reason"),
    [
        ("hi", "is not an object"),
        ({"role": "critic", "content": "x"}, "has the role 'critic'"),
        ({"role": "tool", "content": "x"}, "without 'tool_call_id'"),
        (user([SOUND]), "has a part of type 'audio'"),
        (user([{"type": "hologram"}]), "has a part of type 'hologram'"),
        (user([{"type": "image_url", "image_url": "https://host/a.png"}]), "the engine fetches none"),
        (user([{"type": "image_url", "image_url": "data:text/plain;base64,AA=="}]), "no base64 data URI"),
        ({"role": "system", "content": [IMAGE]}, "has a part of type 'image'"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "not a function's"),
    ],
)
def test_what_has_no_place_is_refused_with_its_position(message: JsonValue, reason: str) -> None:
    refusal = refusal_of(read, user("hi"), message)
    assert refusal.message.startswith("messages[1] ")
    assert reason in refusal.message


def test_the_texts_of_a_result_stand_on_lines_of_their_own() -> None:
    texts: JsonValue = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    result: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": texts}
    assert read(result) == [{**result, "content": "a\nb"}]
    assert read(user(texts)) == [user("ab")]


def test_a_result_may_hold_images_and_say_that_it_failed() -> None:
    result: JsonObject = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "text", "text": "boom"}, IMAGE],
        "is_error": True,
    }
    assert read(result) == [
        {"role": "tool", "content": "The call failed: boom", "images": ["AA=="], "tool_call_id": "c1"}
    ]


def test_members_that_promise_nothing_are_left_out_and_named() -> None:
    marked: JsonObject = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    hidden: JsonObject = {"type": "reasoning.encrypted", "data": "AA==", "format": "anthropic-claude-v1"}
    said: JsonObject = {"role": "assistant", "content": "a", "reasoning_details": [hidden]}
    sent = sent_for(chat_request({"role": "user", "content": [marked], "name": "Ada"}, said), TARGET)
    assert sent.dropped == ("name", "cache_control", "thinking")
    assert b"cache_control" not in sent.body


def test_a_custom_tool_goes_as_a_function_of_one_text() -> None:
    custom: JsonObject = {"type": "custom", "custom": {"name": "sql"}, "cache_control": {"type": "ephemeral"}}
    said: JsonObject = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}],
    }
    sent = sent_for(chat_request(user("go"), said, tools=[custom]), TARGET)
    assert (sent.custom_tools, sent.dropped) == (frozenset({"sql"}), ("cache_control",))
    assert b'{"index":0,"name":"sql","arguments":{"input":"SELECT 1"}}' in sent.body


def test_tools_of_other_vendors_are_refused_by_their_type() -> None:
    assert "'web_search'" in refusal_for(chat_request(tools=[{"type": "web_search"}]), TARGET).message


def test_a_function_keeps_its_shape_and_always_has_parameters() -> None:
    bare: JsonObject = {"type": "function", "function": {"name": "now", "description": None}}
    assert body_for(chat_request(tools=[tool(strict=False), bare], tool_choice="auto"), TARGET)["tools"] == [
        tool(),
        {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
    ]


def test_the_choice_of_none_is_made_by_offering_nothing() -> None:
    sent = sent_for(chat_request(tools=[tool()], tool_choice="none"), TARGET)
    assert b"tools" not in sent.body
    assert sent.emulated == ("tool_choice",)


@looped(
    ("params", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "look"}}}, "tool_choice"),
        ({"tools": [{"type": "custom"}]}, "tools"),
        ({"tools": [tool()], "parallel_tool_calls": False}, "parallel_tool_calls"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(params: dict[str, object], param: str) -> None:
    assert refusal_for(chat_request(**params), TARGET).param == param
