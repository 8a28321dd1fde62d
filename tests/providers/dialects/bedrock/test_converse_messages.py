"""Conversations on Converse."""

import pytest

from providers.dialects.bedrock.converse_messages import BedrockConversation, without_calls
from providers.dialects.bedrock.converse_tools import BedrockToolNames
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import user

PNG = "data:image/png;base64,iVBORw0KGgo="
PNG_BLOCK: JsonObject = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}


def part(words: str, **more: JsonValue) -> JsonObject:
    return {"type": "text", "text": words, **more}


def image(url: str) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


def assistant(content: JsonValue, *calls: JsonObject, **more: JsonValue) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": content, **more}
    return {**message, "tool_calls": [*calls]} if calls else message


def call(name: str = "now", arguments: str = "{}", number: str = "call_1") -> JsonObject:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content: JsonValue, number: str = "call_1", **more: JsonValue) -> JsonObject:
    return {"role": "tool", "tool_call_id": number, "content": content, **more}


def read(*messages: JsonValue, param: str = "messages") -> BedrockConversation:
    conversation = BedrockConversation(BedrockToolNames(()), param)
    conversation.read(messages)
    return conversation


def refusal_for(*messages: JsonValue, param: str = "messages") -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(*messages, param=param)
    return caught.value


def test_turns_of_the_same_role_become_one() -> None:
    assert read(user("a"), user([part("b")]), assistant("c"), assistant("d"), user("e")).turns == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
        {"role": "assistant", "content": [{"text": "c"}, {"text": "d"}]},
        {"role": "user", "content": [{"text": "e"}]},
    ]


def test_instructions_go_to_the_system_text_and_those_from_the_middle_are_told() -> None:
    first = read(
        {"role": "system", "content": "Be kind."}, {"role": "developer", "content": [part("And brief.")]}, user("a")
    )
    assert first.system == [{"text": "Be kind."}, {"text": "And brief."}]
    assert not first.folded
    later = read(user("a"), {"role": "system", "content": "Be kind."}, {"role": "system", "content": " "})
    assert later.system == [{"text": "Be kind."}]
    assert later.folded


def test_blank_text_is_left_out_and_with_it_turns_that_hold_nothing_else() -> None:
    assert read(user([part(""), part("a"), part("\n")]), assistant(""), user(" "), assistant("b")).turns == [
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "assistant", "content": [{"text": "b"}]},
    ]


@pytest.mark.parametrize("media", ["image/png", "IMAGE/PNG"])
def test_images_are_sent_as_their_data(media: str) -> None:
    found = read(user([part("See:"), image(f"data:{media};base64,iVBORw0KGgo=")])).turns
    assert found == [{"role": "user", "content": [{"text": "See:"}, PNG_BLOCK]}]


@pytest.mark.parametrize(("media", "form"), [("jpeg", "jpeg"), ("jpg", "jpeg"), ("gif", "gif"), ("webp", "webp")])
def test_images_of_four_kinds_are_taken(media: str, form: str) -> None:
    found = read(user([image(f"data:image/{media};base64,AA==")])).turns
    assert found == [{"role": "user", "content": [{"image": {"format": form, "source": {"bytes": "AA=="}}}]}]


@pytest.mark.parametrize("url", ["https://example.com/a.png", "data:image/tiff;base64,AA==", "data:image/png,x", "x"])
def test_other_images_are_refused_with_their_place(url: str) -> None:
    refusal = refusal_for(user("a"), user([image(url)]))
    assert (refusal.param, refusal.code) == ("messages", "unsupported_parameter")
    assert "messages[1]" in refusal.message
    assert refusal_for(user([image(url)]), param="images").param == "images"


def file(name: JsonValue, data: str) -> JsonObject:
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def test_files_get_names_that_the_service_takes() -> None:
    pdf, text = "data:application/pdf;base64,JVBERi0=", "data:text/plain;base64,YQ=="
    content = read(
        user(
            [part("Read:"), file("Q3  report_final.v2.pdf", pdf), file("Q3 report final v2.pdf", pdf), file(None, text)]
        )
    ).turns[0]["content"]
    assert content == [
        {"text": "Read:"},
        {"document": {"format": "pdf", "name": "Q3 report final v2", "source": {"bytes": "JVBERi0="}}},
        {"document": {"format": "pdf", "name": "Q3 report final v2 2", "source": {"bytes": "JVBERi0="}}},
        {"document": {"format": "txt", "name": "document", "source": {"bytes": "YQ=="}}},
    ]


def test_audio_is_sent_as_its_data() -> None:
    sound: JsonObject = {"type": "input_audio", "input_audio": {"format": "wav", "data": "UklG"}}
    assert read(user([sound])).turns == [
        {"role": "user", "content": [{"audio": {"format": "wav", "source": {"bytes": "UklG"}}}]}
    ]


@pytest.mark.parametrize(
    "content",
    [
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "file", "file": {"file_data": "data:application/zip;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"format": "midi", "data": "AA=="}},
        {"type": "video_url", "video_url": {"url": "x"}},
        "text",
    ],
)
def test_other_parts_are_refused(content: JsonValue) -> None:
    assert refusal_for(user([content])).param == "messages"


def test_calls_and_results_become_blocks_and_all_results_one_turn() -> None:
    asked = assistant("Wait.", call("look", '{"at": [1]}', "a"), call(number="b"))
    conversation = read(user("go"), asked, result("12:00", "a"), result([part("x"), image(PNG)], "b"), user("so?"))
    assert conversation.calls
    assert conversation.turns[1:] == [
        {
            "role": "assistant",
            "content": [
                {"text": "Wait."},
                {"toolUse": {"toolUseId": "a", "name": "look", "input": {"at": [1]}}},
                {"toolUse": {"toolUseId": "b", "name": "now", "input": {}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "12:00"}]}},
                {"toolResult": {"toolUseId": "b", "content": [{"text": "x"}, PNG_BLOCK]}},
                {"text": "so?"},
            ],
        },
    ]


def test_an_empty_result_holds_nothing() -> None:
    turn = read(user("go"), assistant(None, call()), result("")).turns[2]
    assert turn["content"] == [{"toolResult": {"toolUseId": "call_1", "content": []}}]


@pytest.mark.parametrize("number", ["call 1", "x" * 65, ""])
def test_an_id_that_the_service_refuses_is_changed_alike_in_call_and_result(number: str) -> None:
    turns = read(user("go"), assistant(None, call(number=number)), result("12:00", number)).turns
    match turns:
        case [
            _,
            {"content": [{"toolUse": {"toolUseId": str(one)}}]},
            {"content": [{"toolResult": {"toolUseId": two}}]},
        ]:
            assert one == two
            assert one.startswith("call_")
            assert len(one) <= 64
        case _:
            pytest.fail(f"unexpected turns {turns}")


def test_names_that_the_service_refuses_are_changed() -> None:
    names = BedrockToolNames(["get weather"])
    conversation = BedrockConversation(names, "messages")
    conversation.read([user("go"), assistant(None, call("get weather")), result("3")])
    assert "get_weather" in str(conversation.turns)
    assert names.changed() == {"get_weather": "get weather"}


def test_calls_can_be_told_in_words() -> None:
    turns = read(
        user("go"), assistant(None, call("look", '{"at":1}')), result([part("x"), part("y"), image(PNG)])
    ).turns
    assert without_calls(turns) == [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"text": '[call call_1 of look: {"at":1}]'}]},
        {"role": "user", "content": [{"text": "[result of call call_1: xy]"}, PNG_BLOCK]},
    ]
    assert "toolUse" in str(turns)


def test_marks_of_the_cache_stand_behind_what_they_mark() -> None:
    kept: JsonValue = {"type": "ephemeral", "ttl": "1h"}
    plain: JsonValue = {"type": "ephemeral"}
    conversation = read(
        {"role": "system", "content": [part("Be kind.", cache_control=kept)]},
        user([part("a", cache_control=plain), part("b")]),
        assistant(None, call()),
        result([part("c", cache_control=plain)]),
    )
    point = {"cachePoint": {"type": "default"}}
    assert conversation.system == [{"text": "Be kind."}, {"cachePoint": {"type": "default", "ttl": "1h"}}]
    assert conversation.turns[0]["content"] == [{"text": "a"}, point, {"text": "b"}]
    assert conversation.turns[2]["content"] == [
        {"toolResult": {"toolUseId": "call_1", "content": [{"text": "c"}]}},
        point,
    ]


def test_reasoning_of_earlier_turns_is_not_given_back_and_a_refusal_is_text() -> None:
    found = read(user("a"), assistant(None, reasoning_content="Hm.", refusal="No.")).turns
    assert found[1] == {"role": "assistant", "content": [{"text": "No."}]}
    parts: list[JsonValue] = [{"type": "refusal", "refusal": "Never."}]
    assert read(user("a"), assistant(parts)).turns[1]["content"] == [{"text": "Never."}]


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([], "invalid_value"),
        ([user(" ")], "invalid_value"),
        ([assistant("a"), user("b")], "invalid_value"),
        (["text"], "invalid_value"),
        ([{"content": "a"}], "invalid_value"),
        ([{"role": "critic", "content": "a"}], "unsupported_parameter"),
        ([{"role": "user", "content": "a", "name": "ada"}], "unsupported_parameter"),
        ([{"role": "system", "content": [image(PNG)]}], "unsupported_parameter"),
        ([user("a"), {"role": "tool", "content": "a"}], "invalid_value"),
        ([user("a"), assistant(None, call(arguments="[1]"))], "invalid_value"),
        ([user("a"), assistant(None, call(arguments="{"))], "invalid_value"),
        ([user("a"), assistant(None, {"type": "custom", "custom": {}})], "unsupported_parameter"),
        (
            [user("a"), result([{"type": "input_audio", "input_audio": {"format": "wav", "data": "AA=="}}])],
            "unsupported_parameter",
        ),
    ],
)
def test_what_no_turn_can_say_is_refused(messages: list[JsonValue], code: str) -> None:
    refusal = refusal_for(*messages)
    assert (refusal.param, refusal.code) == ("messages", code)


def test_the_conversation_given_is_not_changed() -> None:
    parts: list[JsonValue] = [part("a")]
    messages: list[JsonObject] = [user(parts), user("b")]
    read(*messages)
    assert messages == [user([part("a")]), user("b")]
