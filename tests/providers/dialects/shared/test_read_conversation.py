"""Conversations in OpenAI's shape as typed parts: every field is read or refused, whatever clients send."""

from contextlib import suppress
from functools import partial
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.conversation import (
    CITATION_FIELDS,
    CLAUDE_FORMAT,
    TOOL_RECORDS,
    Address,
    Audio,
    Document,
    Image,
    InlineData,
    OtherPart,
    Part,
    PlainMessage,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolResult,
    ToolUse,
    Turn,
    UploadedFile,
    Video,
)
from providers.dialects.shared.read_conversation import read_conversation, read_messages
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.random_messages import complete_reader
from tests.providers.dialects.random_messages import messages as random_messages
from tests.support.cpu_growth import growth
from tests.support.looped import looped

CACHE: JsonObject = {"type": "ephemeral"}
CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def turn(message: JsonValue) -> Turn:
    """Return the turn of one message."""
    (read,) = read_conversation([message])
    return read


def part(given: JsonObject, role: str = "user") -> Part:
    """Return the part that a content part becomes."""
    (read,) = turn({"role": role, "content": [given]}).parts
    return read


def of_model(**members: JsonValue) -> tuple[Part, ...]:
    return turn({"role": "assistant", **members}).parts


@looped("name", sorted(TOOL_RECORDS))
def test_records_of_a_vendor_s_tools_are_named_and_refused_of_others_than_the_model(name: str) -> None:
    read = turn({"role": "assistant", "content": "hi", "name": "Ann", name: [{}]})
    assert (read.records, read.unsent) == ((name,), ["name", name])
    assert turn({"role": "assistant", "content": "hi", name: []}).unsent == []
    if name != "content_blocks":
        with pytest.raises(Refusal, match=name):
            turn({"role": "user", "content": "hi", name: [{}]})


@looped("name", sorted(CITATION_FIELDS))
def test_the_sources_of_an_earlier_response_are_named_if_there_are_some(name: str) -> None:
    assert turn({"role": "assistant", "content": "hi", name: [{}]}).unsent == [name]
    assert turn({"role": "assistant", "content": "hi", name: []}).unsent == []
    assert turn({"role": "user", "content": "hi", name: [{}]}).unsent == []


@looped(
    ("given", "role"), [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant")]
)
def test_a_text_is_read_in_every_role(given: str, role: str) -> None:
    assert turn({"role": given, "content": "hi"}) == Turn(role, (Text("hi"),))  # type: ignore[arg-type]


@looped(
    ("given", "read"),
    [
        ({"type": "text", "text": " "}, Text(" ")),
        ({"type": "input_text", "text": "hi"}, Text("hi")),
        ({"type": "output_text", "text": "hi", "annotations": []}, Text("hi")),
        ({"type": "refusal", "refusal": "no"}, Text("no")),
        ({"type": "text", "text": "hi", "cache_control": CACHE}, Text("hi", CACHE)),
        ({"type": "text", "text": "hi", "cache_control": "yes"}, Text("hi")),
        (
            {"type": "image_url", "image_url": {"url": "data:image/JPG;base64,QQ==", "detail": "low"}},
            Image(InlineData("image/jpeg", "QQ=="), "low"),
        ),
        ({"type": "image_url", "image_url": "https://example.com/a"}, Image(Address("https://example.com/a"))),
        ({"type": "input_image", "file_id": "f1"}, Image(UploadedFile("f1"))),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
            Document(InlineData("application/pdf", "QQ=="), "a.pdf"),
        ),
        (
            {"type": "file", "file": {"file_data": "https://example.com/a.pdf"}},
            Document(Address("https://example.com/a.pdf")),
        ),
        ({"type": "input_file", "file_url": "gs://bucket/a.pdf"}, Document(Address("gs://bucket/a.pdf"))),
        ({"type": "file", "file": {"file_id": "f1"}}, Document(UploadedFile("f1"))),
        ({"type": "file", "file": {"file_data": "data:video/mp4;base64,QQ=="}}, Video(InlineData("video/mp4", "QQ=="))),
        ({"type": "video_url", "video_url": {"url": "s3://bucket/a.mp4"}}, Video(Address("s3://bucket/a.mp4"))),
        ({"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}, Audio("QQ==", "wav")),
        (
            {"type": "search_result", "source": "x"},
            OtherPart("search_result", {"type": "search_result", "source": "x"}),
        ),
    ],
)
def test_each_type_of_part_is_read(given: JsonObject, read: Part) -> None:
    assert part(given) == read


def test_a_turn_of_the_model_has_its_thinking_first_and_its_calls_last() -> None:
    said: JsonValue = [{"type": "text", "text": "so"}, {"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
    called = ToolUse("c1", "f", {"a": 1})
    assert of_model(content=said, tool_calls=[CALL]) == (Reasoning("hm", "c2ln", CLAUDE_FORMAT), Text("so"), called)
    details: JsonValue = [{"type": "reasoning.encrypted", "data": "QQ==", "format": CLAUDE_FORMAT}]
    thought = RedactedReasoning("QQ==", CLAUDE_FORMAT)
    assert of_model(content="so", reasoning_details=details, tool_calls=[CALL]) == (thought, Text("so"), called)


@looped(
    ("call", "read"),
    [
        ({"id": "c", "function": {"name": "f", "arguments": ""}}, ToolUse("c", "f", {})),
        ({"id": "c", "function": {"name": "f", "arguments": " \n"}}, ToolUse("c", "f", {})),
        ({"id": "c", "function": {"name": "f"}}, ToolUse("c", "f", {})),
        ({"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}, ToolUse("c", "f", {"a": 1})),
        (
            {"id": "c", "type": "custom", "custom": {"name": "f", "input": "ls"}},
            ToolUse("c", "f", {"input": "ls"}, custom="ls"),
        ),
        (
            {**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}, "cache_control": CACHE},
            ToolUse("c1", "f", {"a": 1}, "c2ln", cache=CACHE),
        ),
    ],
)
def test_a_call_has_its_arguments_as_an_object(call: JsonObject, read: ToolUse) -> None:
    assert of_model(content=None, tool_calls=[call]) == (read,)


def test_a_legacy_call_and_its_result_belong_together() -> None:
    (called,) = of_model(content=None, function_call={"name": "f", "arguments": "{}"})
    assert called == ToolUse("call_f", "f", {})
    (result,) = turn({"role": "function", "name": "f", "content": "42"}).parts
    assert result == ToolResult("call_f", (Text("42"),), name="f")


def test_a_result_has_parts_a_flag_and_the_message_s_cache_marker() -> None:
    message: JsonObject = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
        ],
        "is_error": True,
        "cache_control": CACHE,
    }
    parts = (Text("see"), Image(InlineData("image/png", "QQ==")))
    assert turn(message).parts == (ToolResult("c1", parts, failed=True, cache=CACHE),)


def test_a_message_s_cache_marker_is_on_its_last_part_that_may_have_one() -> None:
    parts: JsonValue = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "odd"}]
    read = turn({"role": "user", "content": parts, "cache_control": CACHE}).parts
    assert read == (Text("a"), Text("b", CACHE), OtherPart("odd", {"type": "odd"}))
    own: JsonObject = {"type": "ephemeral", "ttl": "1h"}
    marked: JsonValue = [{"type": "text", "text": "a", "cache_control": own}]
    assert turn({"role": "user", "content": marked, "cache_control": CACHE}).parts == (Text("a", own),)


def test_a_name_and_a_text_s_signature_are_the_turn_s() -> None:
    extra: JsonValue = {"google": {"thought_signature": "c2ln"}}
    read = turn({"role": "assistant", "content": "x", "name": "ann", "extra_content": extra})
    assert (read.name, read.text_signature) == ("ann", "c2ln")


@looped(
    "members",
    [
        {"annotations": [{"type": "url_citation"}]},
        {"images": [{"type": "image_url"}]},
        {"provider_specific_fields": {"citations": [1]}},
        {"phase": "commentary", "id": "m1", "status": "completed", "type": "message"},
        {"audio": None, "weight": 0, "unheard_of": []},
    ],
)
def test_what_clients_repeat_of_an_answer_is_no_reason_to_refuse_it(members: JsonObject) -> None:
    assert of_model(content="x", **members) == (Text("x"),)


@looped(
    ("message", "reason"),
    [
        ("hi", "is not an object"),
        ({"content": "x"}, "has no role"),
        ({"role": "king", "content": "x"}, "has the role 'king'"),
        ({"role": "user", "content": "x", "prefix": True}, "has the field 'prefix'"),
        ({"role": "assistant", "content": "x", "partial": True}, "has the field 'partial'"),
        ({"role": "assistant", "audio": {"id": "a"}}, "audio of another response without its 'transcript'"),
        ({"role": "user", "content": ["x"]}, "has a part of type 'None'"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "an image without a URL"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "ftp://a"}]}, "neither a URL"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png,x"}]}, "not in base64"),
        ({"role": "user", "content": [{"type": "file", "file": {}}]}, "a file without 'file_data'"),
        ({"role": "user", "content": [{"type": "video_url"}]}, "a video without a URL"),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": 1}}]}, "audio without"),
        ({"role": "tool", "content": "x"}, "without 'tool_call_id'"),
        ({"role": "tool", "tool_call_id": "c", "content": [{"type": "thinking", "thinking": "x"}]}, "type 'thinking'"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "type": "odd"}]}, "not a function's"),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "function": {"arguments": '{"a":' * 70 + "1" + "}" * 70}}],
            },
            "nested too deeply",
        ),
    ],
)
def test_a_message_that_makes_no_sense_is_refused_by_its_place(message: JsonValue, reason: str) -> None:
    fine: JsonObject = {"role": "user", "content": "fine"}
    with pytest.raises(Refusal, match=rf"messages\[1\] .*{reason}"):
        list(read_conversation([fine, message]))


def test_a_refusal_names_the_client_s_own_field() -> None:
    with pytest.raises(Refusal, match="'prompt' has no role"):
        list(read_conversation([{}], "prompt"))


def test_thinking_stands_before_the_text_and_the_calls_of_its_turn() -> None:
    bare = turn({"role": "assistant", "content": "x", "tool_calls": [CALL]})
    full = turn({"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [CALL]})
    assert full.parts == (Reasoning("hm"), *bare.parts)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text", "thinking", "image_url", "file", "input_file", "video_url", "input_audio", "odd"]
        )
    },
    optional={
        name: JSON
        for name in (
            "text",
            "thinking",
            "signature",
            "image_url",
            "file",
            "file_id",
            "video_url",
            "cache_control",
            "data",
        )
    },
)
CALLS = st.fixed_dictionaries(
    {}, optional={"id": JSON, "type": JSON, "function": JSON, "custom": JSON, "extra_content": JSON}
)
DETAILS = st.fixed_dictionaries(
    {"type": st.sampled_from(["reasoning.text", "reasoning.summary", "reasoning.encrypted", "odd"])},
    optional={name: JSON for name in ("text", "summary", "data", "signature", "format", "index", "id")},
)
MESSAGES = JSON | st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function", "system"]) | JSON},
    optional={
        "content": JSON | st.lists(PARTS | JSON, max_size=3),
        "tool_calls": JSON | st.lists(CALLS | JSON, max_size=3),
        "function_call": JSON | CALLS,
        "reasoning_details": JSON | st.lists(DETAILS | JSON, max_size=4),
        "thinking_blocks": JSON | st.lists(PARTS | JSON, max_size=3),
        **{
            name: JSON
            for name in (
                *("tool_call_id", "name", "is_error", "reasoning", "reasoning_content", "reasoning_signature"),
                *("extra_content", "cache_control", "refusal", "odd"),
            )
        },
    },
)


@given(st.lists(MESSAGES, max_size=4))
def test_any_messages_are_read_or_refused(messages: list[object]) -> None:
    given = cast("list[JsonValue]", messages)
    before = orjson.dumps(given)
    with suppress(Refusal):
        turns = list(read_conversation(given))
        assert [each.position for each in turns] == list(range(len(given)))
    assert orjson.dumps(given) == before


@given(random_messages)
def test_a_plain_message_is_read_as_the_complete_reader_reads_it(message: JsonObject) -> None:
    quickly = read_or_refused(message)
    with complete_reader():
        assert read_or_refused(message) == quickly


def read_or_refused(message: JsonObject) -> object:
    """Return the turn of a message, or the message of its refusal."""
    try:
        return turn(message)
    except Refusal as refusal:
        return refusal.message


PLACED: JsonObject = {"type": "reasoning.text", "format": CLAUDE_FORMAT, "after": [1, 0]}
PLAIN: JsonObject = {"role": "assistant", "content": "Hi.", "tool_calls": [CALL]}


@looped(
    "message",
    [
        {"role": "user", "content": "Hi."},
        {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        PLAIN,
        {**PLAIN, "content": None},
        {**PLAIN, "refusal": None, "annotations": [], "audio": None, "function_call": None},
        {**PLAIN, "reasoning_content": "Hm."},
    ],
)
def test_messages_of_agents_are_plain(message: JsonObject) -> None:
    (read,) = read_messages([message])
    assert isinstance(read, PlainMessage)


@looped(
    "message",
    [
        {"role": "user", "content": "Hi.", "name": "Anna"},
        {"role": "user", "content": [{"type": "text", "text": ""}]},
        {"role": "user", "content": [{"type": "text", "text": "Hi.", "cache_control": CACHE}]},
        {"role": "tool", "tool_call_id": "c1", "content": "", "is_error": True},
        {**PLAIN, "cache_control": CACHE},
        {**PLAIN, "tool_calls": [{**CALL, "cache_control": CACHE}]},
        {**PLAIN, "reasoning_details": [PLACED]},
    ],
)
def test_a_message_that_says_more_is_not_plain(message: JsonObject) -> None:
    (read,) = read_messages([message])
    assert isinstance(read, Turn)


def many(count: int) -> list[JsonValue]:
    """Return three messages with many parts, many reasoning details of one block, and many calls."""
    parts: JsonValue = [{"type": "text", "text": "x", "cache_control": CACHE}] * count
    piece: JsonObject = {"type": "reasoning.text", "index": 0, "text": "x" * 10, "format": CLAUDE_FORMAT}
    details: JsonValue = [piece] * count
    calls: JsonValue = [CALL] * (count // 20)
    return [
        {"role": "user", "content": parts, "cache_control": CACHE},
        {"role": "assistant", "content": "x", "reasoning_details": details, "cache_control": CACHE},
        {"role": "assistant", "content": parts, "tool_calls": calls},
    ]


def test_a_hundred_thousand_parts_are_read_in_linear_time() -> None:
    small, messages = many(25_000), many(100_000)
    assert growth(partial(read_conversation, small), partial(read_conversation, messages)) == ""
    first, second, third = read_conversation(messages)
    assert len(first.parts) == 100_000
    assert isinstance(second.parts[0], Reasoning)
    assert len(second.parts[0].text) == 1_000_000
    assert len(third.parts) == 105_000


@looped("given", ["{bad", "[1]", '"x"', "null", 7])
def test_arguments_that_are_no_object_stay_as_the_only_one(given: JsonValue) -> None:
    message: JsonObject = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"arguments": given}}]}
    (turn,) = read_conversation([message])
    (use,) = turn.parts
    assert isinstance(use, ToolUse)
    assert use.arguments == {"arguments": given}
