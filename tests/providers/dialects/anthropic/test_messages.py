"""Conversations in Anthropic's API."""

import pytest

from providers.dialects.anthropic.messages import Conversation
from providers.dialects.anthropic.tools import ToolNames
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.anthropic.kit import DIALECT, TARGET, body_of
from tests.providers.dialects.kit import chat_request, refusal_for, user
from tests.support.looped import looped

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
PNG_BLOCK: JsonObject = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def assistant(content: JsonValue, *calls: JsonObject, **more: JsonValue) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": content, **more}
    return {**message, "tool_calls": [*calls]} if calls else message


def call(name: str = "now", arguments: str = "{}", number: str = "call_1") -> JsonObject:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content: JsonValue, number: str = "call_1", **more: JsonValue) -> JsonObject:
    return {"role": "tool", "tool_call_id": number, "content": content, **more}


def turns(*messages: JsonObject) -> JsonValue:
    return body_of(chat_request(*messages))["messages"]


def test_turns_of_the_same_role_become_one() -> None:
    merged = turns(user("a"), user([text("b")]), assistant("c"), assistant("d"), user("e"))
    assert merged == [
        {"role": "user", "content": [text("a"), text("b")]},
        {"role": "assistant", "content": [text("c"), text("d")]},
        {"role": "user", "content": "e"},
    ]


def test_instructions_are_joined_by_blank_lines_and_their_parts_by_nothing() -> None:
    body = body_of(
        chat_request(
            {"role": "system", "content": [text("Be "), text("kind.")]},
            {"role": "developer", "content": "Be brief."},
            {"role": "system", "content": ""},
            user("hi"),
        )
    )
    assert body["system"] == "Be kind.\n\nBe brief."


def test_a_cache_mark_stays_on_its_block() -> None:
    mark: JsonObject = {"cache_control": {"type": "ephemeral"}}
    body = body_of(
        chat_request(
            {"role": "system", "content": [{**text("Long."), **mark}, text("Short.")]},
            user([{**text("doc"), **mark}, text("question")]),
        )
    )
    assert body["system"] == [{**text("Long."), **mark}, text("Short.")]
    assert body["messages"] == [user([{**text("doc"), **mark}, text("question")])]


def test_blank_text_is_left_out_and_blank_turns_with_it() -> None:
    assert turns(user([text(""), text("hi"), text(" \n")]), assistant(""), assistant(None), user("more")) == [
        {"role": "user", "content": [text("hi"), text("more")]}
    ]


@looped(
    ("url", "source"),
    [
        (PNG, PNG_BLOCK["source"]),
        ("data:IMAGE/PNG;base64,iVBORw0KGgo=", PNG_BLOCK["source"]),
        ("https://example.com/a.png", {"type": "url", "url": "https://example.com/a.png"}),
    ],
)
def test_images_keep_their_place_their_data_and_their_address(url: str, source: JsonValue) -> None:
    image: JsonObject = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    assert turns(user([text("see"), image])) == [user([text("see"), {"type": "image", "source": source}])]
    assert turns(user([text("see"), {"type": "image_url", "image_url": url}])) == turns(user([text("see"), image]))


@looped(
    "url",
    [
        "http://example.com/a.png",
        "data:image/tiff;base64,AA==",
        "data:image/png,raw",
        "data:image/png;base64,",
        "x",
        None,
    ],
)
def test_other_images_are_refused(url: JsonValue) -> None:
    refusal = refusal_for(chat_request(user("a"), user([{"type": "image_url", "image_url": {"url": url}}])), TARGET)
    assert refusal.param == "messages"
    assert "messages[1]" in refusal.message


def test_a_pdf_is_a_document() -> None:
    file: JsonObject = {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}}
    source: JsonObject = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    assert turns(user([file])) == [user([{"type": "document", "source": source, "title": "a.pdf"}])]


def test_calls_and_their_results_go_both_ways() -> None:
    messages = (
        user("weather and time?"),
        assistant("Looking.", call("weather", '{"city": "Oslo"}', "call_1"), call("now", "", "call_2")),
        result("3 °C", "call_1", name="weather"),
        result([text("12:00"), {"type": "image_url", "image_url": PNG}], "call_2"),
        user("thanks"),
    )
    assert turns(*messages) == [
        user("weather and time?"),
        {
            "role": "assistant",
            "content": [
                text("Looking."),
                {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "call_2", "name": "now", "input": {}},
            ],
        },
        user(
            [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "3 °C"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": [text("12:00"), PNG_BLOCK]},
                text("thanks"),
            ]
        ),
    ]


@looped("content", ["", [], [text(" ")]])
def test_an_empty_result_has_no_content(content: JsonValue) -> None:
    last = turns(user("go"), assistant(None, call()), result(content))
    assert isinstance(last, list)
    assert last[-1] == user([{"type": "tool_result", "tool_use_id": "call_1"}])


def test_an_id_that_does_not_fit_changes_alike_in_call_and_result() -> None:
    made = turns(user("go"), assistant(None, call(number="call:1/ü")), result("ok", "call:1/ü"))
    match made:
        case [_, {"content": [{"id": str(used)}]}, {"content": [{"tool_use_id": str(answered)}]}]:
            assert used == answered
            assert used.replace("_", "").isalnum()
        case _:
            pytest.fail(f"unexpected turns {made}")


def test_a_refusal_in_the_history_is_what_the_assistant_said() -> None:
    said = {"role": "assistant", "content": "I cannot."}
    assert turns(user("a"), assistant(None, refusal="I cannot."), user("b"))[1] == said  # type: ignore[index]
    assert turns(user("a"), assistant([{"type": "refusal", "refusal": "I cannot."}]), user("b"))[1] == said  # type: ignore[index]


def test_what_an_answer_carries_beside_its_text_may_come_back() -> None:
    echo = assistant("b", refusal=None, annotations=[], audio=None, function_call=None, reasoning_content="hm")
    assert turns(user("a"), echo, user("c")) == turns(user("a"), assistant("b"), user("c"))
    signed = assistant("b", extra_content={"google": {"thought_signature": "c2ln"}})
    assert turns(user("a"), signed, user("c")) == turns(user("a"), assistant("b"), user("c"))


@looped(
    "messages",
    [
        [user("a"), user([{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}])],
        [user("a"), user([{"type": "video_url", "video_url": "https://example.com/a.mp4"}])],
        [user("a"), user([{"type": "file", "file": {"file_data": PNG}}])],
        [user("a"), user([{"type": "file", "file": {"file_data": "data:application/zip;base64,AA=="}}])],
        [user("a"), user([{"type": "file", "file": {"file_url": "s3://bucket/a.pdf"}}])],
        [user("a"), user([{"type": "image_url", "image_url": "gs://bucket/a.png"}])],
        [user("a"), user([{"type": "never_heard_of"}])],
        [user("a"), user([3])],
        [user("a"), {"role": "system", "content": [{"type": "image_url", "image_url": PNG}]}],
    ],
)
def test_what_has_no_place_there_is_refused_with_its_message(messages: list[JsonObject]) -> None:
    refusal = refusal_for(chat_request(*messages), TARGET)
    assert (refusal.param, refusal.code) == ("messages", "unsupported_parameter")
    assert "messages[1]" in refusal.message


@looped(
    "messages",
    [
        [{"role": "system", "content": "alone"}],
        [user(" ")],
        [user("a"), assistant(None, call()), {"role": "tool", "content": "x"}],
    ],
)
def test_a_conversation_that_makes_no_sense_is_a_bad_value(messages: list[JsonObject]) -> None:
    refusal = refusal_for(chat_request(*messages), TARGET)
    assert (refusal.param, refusal.code) == ("messages", "invalid_value")


def test_the_model_may_have_the_first_turn() -> None:
    asked = turns({"role": "system", "content": "s"}, assistant("a"), user("b"))
    assert asked == [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]


def test_a_message_that_is_no_object_is_a_bad_value() -> None:
    with pytest.raises(Refusal, match=r"messages\[0\] is not an object"):
        Conversation(ToolNames(()), "messages").read(["hi"])


def test_names_of_called_tools_are_the_same_everywhere() -> None:
    tools: JsonValue = [{"type": "function", "function": {"name": "get weather"}}]
    request = chat_request(user("go"), assistant(None, call("get weather")), result("x"), tools=tools)
    body = body_of(request)
    match body:
        case {"tools": [{"name": offered}], "messages": [_, {"content": [{"name": called}]}, _]}:
            assert offered == called == "get_weather"
        case _:
            pytest.fail(f"unexpected body {body}")


def test_calls_in_the_history_without_tools_get_stubs_that_may_not_be_called() -> None:
    body = body_of(chat_request(user("go"), assistant(None, call("now")), result("12:00")))
    assert body["tools"] == [{"name": "now", "input_schema": {"type": "object", "properties": {}}}]
    assert body["tool_choice"] == {"type": "none"}


MARK: JsonObject = {"type": "ephemeral", "ttl": "1h"}


def test_a_name_is_left_out_and_noted_and_a_legacy_function_is_a_tool() -> None:
    sent = DIALECT.encode(
        chat_request(
            {"role": "user", "content": "a", "name": "Ada"},
            assistant(None, function_call={"name": "f", "arguments": "{}"}),
            {"role": "function", "name": "f", "content": "x", "tool_call_id": "call_f"},
        ),
        TARGET,
    )
    assert sent.dropped == ("name",)
    assert b"Ada" not in sent.body
    assert b'"tool_use_id":"call_f"' in sent.body


@looped(
    ("file", "block"),
    [
        ({"file_id": "file_1"}, {"source": {"type": "file", "file_id": "file_1"}}),
        (
            {"file_url": "https://example.com/a.pdf", "filename": "A"},
            {"source": {"type": "url", "url": "https://example.com/a.pdf"}, "title": "A"},
        ),
        (
            {"file_data": "data:text/markdown;base64,IyBIaSDDvA=="},
            {"source": {"type": "text", "media_type": "text/plain", "data": "# Hi \u00fc"}},
        ),
        (
            {"file_data": "data:application/json;base64,e30="},
            {"source": {"type": "text", "media_type": "text/plain", "data": "{}"}},
        ),
    ],
)
def test_files_are_documents_by_address_by_id_and_as_text(file: JsonObject, block: JsonObject) -> None:
    assert turns(user([{"type": "file", "file": file}])) == [user([{"type": "document", **block}])]


def test_an_uploaded_image_goes_by_its_id() -> None:
    image: JsonObject = {"type": "input_image", "file_id": "file_1"}
    assert turns(user([image])) == [user([{"type": "image", "source": {"type": "file", "file_id": "file_1"}}])]


@pytest.mark.parametrize("data", ["/w==", "no base64!"])
def test_a_text_that_is_none_is_a_bad_value(data: str) -> None:
    file: JsonObject = {"type": "file", "file": {"file_data": f"data:text/plain;base64,{data}"}}
    assert refusal_for(chat_request(user([file])), TARGET).code == "invalid_value"


@looped(
    "part",
    [
        {"type": "search_result", "source": "https://a", "title": "A", "content": [text("b")]},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "context": "c"},
        {"type": "container_upload", "file_id": "file_1"},
    ],
)
def test_parts_in_the_vendors_own_form_are_sent_as_they_came(part: JsonObject) -> None:
    assert turns(user([text("see"), part])) == [user([text("see"), part])]


def test_a_failed_result_says_so_and_carries_the_marker_itself() -> None:
    messages = (
        user("go"),
        assistant(None, call()),
        result([{**text("Not found"), "cache_control": MARK}, {"type": "image_url", "image_url": PNG}], is_error=True),
    )
    last = turns(*messages)
    expected: JsonObject = {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": [text("Not found"), PNG_BLOCK],
        "is_error": True,
        "cache_control": MARK,
    }
    assert isinstance(last, list)
    assert last[-1] == user([expected])


def test_a_marker_of_a_message_or_a_call_goes_to_its_block() -> None:
    marked: JsonObject = {"cache_control": MARK}
    made = turns(
        {"role": "user", "content": "long", **marked},
        assistant(None, {**call(), **marked}),
        result("ok", cache_control=MARK),
    )
    assert made == [
        user([{**text("long"), **marked}]),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "now", "input": {}, **marked}]},
        user([{"type": "tool_result", "tool_use_id": "call_1", "content": "ok", **marked}]),
    ]


def test_white_space_behind_the_last_text_of_the_model_is_cut() -> None:
    assert turns(user("a"), assistant("The answer is: \n")) == [user("a"), assistant("The answer is:")]
    parts: list[JsonValue] = [text("One "), text("two ")]
    assert turns(user("a"), assistant(parts)) == [user("a"), assistant([text("One "), text("two")])]
    assert turns(user("a"), assistant("b "), user("c")) == [user("a"), assistant("b "), user("c")]


def test_long_conversations_cost_time_in_proportion() -> None:
    parts: list[JsonValue] = [text("x")] * 20_000
    conversation = Conversation(ToolNames(()), "messages")
    conversation.read([user(parts), *[user("y")] * 20_000])
    match conversation.turns:
        case [{"content": list(blocks)}]:
            assert len(blocks) == 40_000
        case other:
            pytest.fail(f"{len(other)} turns")


SERVER_BLOCKS: list[JsonValue] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
]


@pytest.mark.parametrize("offered", [True, False])
def test_blocks_of_server_tools_come_back_behind_thinking_where_the_tools_are_offered(offered: bool) -> None:
    thought: JsonObject = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    said = assistant("Found.", thinking_blocks=[thought], content_blocks=[*SERVER_BLOCKS, {"type": "hologram"}])
    tools: list[JsonObject] = [{"type": "web_search_20260318", "name": "web_search"}] if offered else []
    request = chat_request(user("a"), said, user("b"), tools=tools, thinking={"type": "enabled", "budget_tokens": 1024})
    match body_of(request)["messages"]:
        case [_, {"content": list(blocks)}, _]:
            assert blocks == [thought, *(SERVER_BLOCKS if offered else []), text("Found.")]
        case other:
            pytest.fail(f"unexpected turns {other}")


@looped(("detail", "dropped"), [("low", ("detail",)), ("auto", ()), (None, ())])
def test_how_closely_an_image_is_to_be_seen_is_named_where_it_is_left_out(
    detail: str | None, dropped: tuple[str, ...]
) -> None:
    image: JsonObject = {"url": "https://h/x.png", **({} if detail is None else {"detail": detail})}
    request = chat_request(user([{"type": "image_url", "image_url": image}]))
    assert DIALECT.encode(request, TARGET).dropped == dropped
