"""The checks of a conversation before a dialect reads it."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt
from proxy.surfaces.request.chat_messages import MAX_MESSAGES, messages
from proxy.surfaces.request.parse_json import MAX_ELEMENTS
from proxy.surfaces.request.rule_kinds import Invalid
from tests.support.examples import examples
from tests.support.looped import looped
from tests.support.usual_messages import USUAL_MESSAGES, of_subtypes

CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@looped(
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
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
        {"role": "tool", "content": [{"type": "text", "text": "42"}], "tool_call_id": "c1"},
        {"role": "user", "content": [{"type": "input_text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.com/a"}]},
        {"role": "user", "content": [{"type": "input_image", "file_id": "f1"}]},
        {"role": "user", "content": [{"type": "input_file", "file_data": "data:application/pdf;base64,QQ=="}]},
        {"role": "user", "content": [{"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "QQ=="}]},
        {"role": "assistant", "content": "x", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"role": "assistant", "content": "x", "thinking_blocks": [], "extra_content": {"google": {}}},
        {"role": "assistant", "content": "x", "reasoning_details": None, "cache_control": None, "is_error": None},
        {"role": "tool", "content": "no", "tool_call_id": "c1", "is_error": True},
    ],
)
def test_a_message_of_a_known_role_is_passed_on_untouched(message: JsonObject) -> None:
    parsed = messages([message])
    assert parsed == ChatPrompt((message,))
    assert parsed.messages[0] is message


@looped(
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
        ({"role": "function", "content": "42"}, ("name",)),
        ({"role": "assistant", "content": "x", "reasoning_details": {}}, ("reasoning_details",)),
        ({"role": "assistant", "content": "x", "reasoning_details": [{}, "hm"]}, ("reasoning_details", 1)),
        ({"role": "assistant", "content": "x", "thinking_blocks": ["hm"]}, ("thinking_blocks", 0)),
        ({"role": "user", "content": "x", "cache_control": "ephemeral"}, ("cache_control",)),
        ({"role": "assistant", "content": "x", "extra_content": []}, ("extra_content",)),
        ({"role": "tool", "content": "x", "tool_call_id": "c", "is_error": "yes"}, ("is_error",)),
        ({"role": "user", "content": [{"type": "input_text"}]}, ("content", 0, "text")),
        ({"role": "user", "content": [{"type": "output_text", "text": 1}]}, ("content", 0, "text")),
        ({"role": "user", "content": [{"type": "input_image"}]}, ("content", 0)),
        ({"role": "user", "content": [{"type": "input_image", "image_url": 1}]}, ("content", 0, "image_url")),
        ({"role": "user", "content": [{"type": "input_file", "file_id": ""}]}, ("content", 0, "file_id")),
        ({"role": "user", "content": [{"type": "video_url", "video_url": {}}]}, ("content", 0, "video_url", "url")),
        ({"role": "assistant", "content": [{"type": "thinking"}]}, ("content", 0, "thinking")),
        ({"role": "assistant", "content": [{"type": "redacted_thinking"}]}, ("content", 0, "data")),
        (
            {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": True}]},
            ("content", 0, "cache_control"),
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "x"}}]},
            ("tool_calls", 0, "custom", "input"),
        ),
        ({"role": "assistant", "tool_calls": [{**CALL, "extra_content": "x"}]}, ("tool_calls", 0, "extra_content")),
    ],
)
def test_a_message_that_breaks_dialects_is_refused_there(message: JsonValue, loc: tuple[str | int, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        messages([{"role": "user", "content": "fine"}, message])
    assert caught.value.loc == (1, *loc)


@looped("value", [[], {}, "hi", 1, True])
def test_a_conversation_is_a_list_of_at_least_one_message(value: JsonValue) -> None:
    with pytest.raises(Invalid, match="non-empty list"):
        messages(value)


def test_a_conversation_may_be_long_but_not_endless() -> None:
    turn: JsonValue = {"role": "user", "content": "x"}
    assert len(messages([turn] * MAX_MESSAGES).messages) == MAX_MESSAGES
    with pytest.raises(Invalid, match=f"at most {MAX_MESSAGES}"):
        messages([turn] * (MAX_MESSAGES + 1))


@looped(
    "message",
    [
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "MANY"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "MANY"}}]},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "MANY"}},
    ],
)
def test_what_is_in_the_arguments_of_calls_counts_as_elements(message: JsonObject) -> None:
    def with_elements(count: int) -> JsonValue:
        inner = "[" + "[]," * (count // 2) + "[]]"
        value: JsonValue = orjson.loads(orjson.dumps(message).replace(b"MANY", inner.encode()))
        return value

    messages([with_elements(1000)])
    with pytest.raises(Invalid, match=f"at most {MAX_ELEMENTS} JSON elements"):
        messages([with_elements(3 * MAX_ELEMENTS)])


@looped(
    ("message", "plain"),
    [
        ({"role": "user", "content": "hi"}, True),
        ({"content": "hi", "role": "system"}, True),
        ({"role": "assistant", "content": ""}, False),
        ({"role": "assistant", "content": "hi"}, True),
        ({"role": "developer", "content": "hi"}, False),
        ({"role": "tool", "content": "hi"}, False),
        ({"role": "user", "content": []}, False),
        ({"role": "user", "content": "hi", "name": None}, False),
        ({"role": "assistant"}, False),
    ],
)
def test_a_conversation_is_plain_where_each_message_is_text_of_a_common_role(message: JsonObject, plain: bool) -> None:
    assert messages([message]).plain is plain
    assert messages([{"role": "user", "content": "hi"}, message]).plain is plain


@examples(4000)
@given(st.lists(USUAL_MESSAGES, min_size=1, max_size=3))
def test_messages_that_are_accepted_at_once_are_those_that_the_rules_accept(talk: list[JsonObject]) -> None:
    assert outcome(list(talk)) == outcome([of_subtypes(message) for message in talk])


def outcome(talk: list[JsonValue]) -> object:
    try:
        return messages(talk)
    except Invalid as bad:
        return bad.message, bad.loc, bad.code


def test_arguments_of_calls_count_together_in_whatever_form_each_message_is() -> None:
    half: JsonObject = {"name": "f", "arguments": "[" * (MAX_ELEMENTS // 2)}
    usual: JsonObject = {"role": "assistant", "content": "", "tool_calls": [{**CALL, "function": half}]}
    messages([usual])
    for other in (usual, {**usual, "content": None}, {**usual, "name": "ann"}):
        messages([other])
        with pytest.raises(Invalid, match=f"at most {MAX_ELEMENTS} JSON elements"):
            messages([usual, other, {"role": "assistant", "content": "", "tool_calls": [CALL]}])
