"""What a conversation must look like before a dialect reads it."""

import pytest

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt
from proxy.surfaces.request.chat_messages import MAX_MESSAGES, messages
from proxy.surfaces.request.rule_kinds import Invalid

CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": "be brief"},
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "hi", "name": "ann"},
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:...", "detail": "low"}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]},
        {"role": "user", "content": [{"type": "unheard_of", "x": 1}]},
        {"role": "user", "content": []},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "x", "input": ""}}]},
        {"role": "assistant", "content": None, "tool_calls": None, "refusal": None},
        {"role": "assistant", "content": "x", "reasoning_content": "because", "unheard_of": {"kept": 1}},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
        {"role": "tool", "content": [{"type": "text", "text": "42"}], "tool_call_id": "c1"},
        {"role": "function", "content": None, "name": "f"},
    ],
)
def test_a_message_of_a_known_role_is_passed_on_untouched(message: JsonObject) -> None:
    parsed = messages([message])
    assert parsed == ChatPrompt((message,))
    assert parsed.messages[0] is message


@pytest.mark.parametrize(
    ("message", "loc"),
    [
        ("hi", ()),
        ({}, ("role",)),
        ({"role": "king", "content": "x"}, ("role",)),
        ({"role": None, "content": "x"}, ("role",)),
        ({"role": ["user"], "content": "x"}, ("role",)),
        ({"role": "user"}, ("content",)),
        ({"role": "user", "content": None}, ("content",)),
        ({"role": "system", "content": None}, ("content",)),
        ({"role": "tool", "content": None, "tool_call_id": "c"}, ("content",)),
        ({"role": "user", "content": 7}, ("content",)),
        ({"role": "user", "content": {"type": "text"}}, ("content",)),
        ({"role": "user", "content": ["hi"]}, ("content", 0)),
        ({"role": "user", "content": [{"text": "hi"}]}, ("content", 0, "type")),
        ({"role": "user", "content": [{"type": "text"}]}, ("content", 0, "text")),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": 1}]}, ("content", 1, "type")),
        ({"role": "user", "content": [{"type": "image_url"}]}, ("content", 0, "image_url")),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, ("content", 0, "image_url", "url")),
        ({"role": "user", "content": "x", "name": 1}, ("name",)),
        ({"role": "tool", "content": "x", "tool_call_id": 1}, ("tool_call_id",)),
        ({"role": "assistant", "content": "x", "reasoning_content": []}, ("reasoning_content",)),
        ({"role": "assistant", "content": None, "tool_calls": {}}, ("tool_calls",)),
        ({"role": "assistant", "content": None, "tool_calls": [1]}, ("tool_calls", 0)),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": 1}]}, ("tool_calls", 0, "id")),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}, ("tool_calls", 0, "function")),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}],
            },
            ("tool_calls", 0, "function", "arguments"),
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"arguments": ""}}]},
            ("tool_calls", 0, "function", "name"),
        ),
        ({"role": "assistant", "content": None, "function_call": "f"}, ("function_call",)),
    ],
)
def test_a_message_that_would_break_a_dialect_is_refused_at_its_place(
    message: JsonValue, loc: tuple[str | int, ...]
) -> None:
    with pytest.raises(Invalid) as caught:
        messages([{"role": "user", "content": "fine"}, message])
    assert caught.value.loc == (1, *loc)


@pytest.mark.parametrize("value", [[], {}, "hi", 1, True])
def test_a_conversation_is_a_list_of_at_least_one_message(value: JsonValue) -> None:
    with pytest.raises(Invalid, match="non-empty list"):
        messages(value)


def test_a_conversation_may_be_long_but_not_endless() -> None:
    turn: JsonValue = {"role": "user", "content": "x"}
    assert len(messages([turn] * MAX_MESSAGES).messages) == MAX_MESSAGES
    with pytest.raises(Invalid, match=f"at most {MAX_MESSAGES}"):
        messages([turn] * (MAX_MESSAGES + 1))
