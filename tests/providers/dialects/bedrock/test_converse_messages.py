"""Conversations on Converse."""

from functools import partial

import pytest

from providers.dialects.bedrock.converse_messages import BedrockConversation, without_calls
from providers.dialects.bedrock.converse_models import UNKNOWN_MODEL, ConverseModel
from providers.dialects.bedrock.converse_tools import BedrockToolNames
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.bedrock.conversations import (
    CLAUDE,
    LLAMA,
    NOVA,
    PNG,
    PNG_BLOCK,
    QWEN,
    WRITER,
    assistant,
    call,
    file,
    image,
    part,
    read,
    refusal_for,
    result,
)
from tests.providers.dialects.kit import user
from tests.support.cpu_growth import growth
from tests.support.looped import looped


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


@looped(("media", "form"), [("jpeg", "jpeg"), ("jpg", "jpeg"), ("gif", "gif"), ("webp", "webp")])
def test_images_of_four_kinds_are_taken(media: str, form: str) -> None:
    found = read(user([image(f"data:image/{media};base64,AA==")])).turns
    assert found == [{"role": "user", "content": [{"image": {"format": form, "source": {"bytes": "AA=="}}}]}]


@looped("url", ["https://example.com/a.png", "data:image/tiff;base64,AA==", "data:image/png,x", "x"])
def test_other_images_are_refused_with_their_place(url: str) -> None:
    refusal = refusal_for(user("a"), user([image(url)]))
    assert (refusal.param, refusal.code) == ("messages", "unsupported_parameter")
    assert "messages[1]" in refusal.message
    assert refusal_for(user([image(url)]), param="images").param == "images"


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


def test_a_document_on_its_own_gets_a_text_beside_it() -> None:
    conversation = read(user([file("a.pdf", "data:application/pdf;base64,JVBERi0=")]))
    content = conversation.turns[0]["content"]
    assert isinstance(content, list)
    assert content[0] == {"text": "."}
    assert len(content) == 2
    assert conversation.folded


def test_audio_is_sent_as_its_data() -> None:
    sound: JsonObject = {"type": "input_audio", "input_audio": {"format": "wav", "data": "UklG"}}
    assert read(user([sound])).turns == [
        {"role": "user", "content": [{"audio": {"format": "wav", "source": {"bytes": "UklG"}}}]}
    ]


@looped(
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


@looped("number", ["call 1", "x" * 65, ""])
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


def test_the_name_of_a_message_is_left_out_and_named() -> None:
    conversation = read({"role": "user", "content": "a", "name": "ada"})
    assert conversation.turns == [{"role": "user", "content": [{"text": "a"}]}]
    assert conversation.dropped == ["name"]


def test_a_failed_result_says_so_in_the_model_s_way() -> None:
    messages = (user("go"), assistant(None, call()), result("boom", is_error=True))
    held = read(*messages, model=CLAUDE).turns[2]["content"]
    assert held == [{"toolResult": {"toolUseId": "call_1", "content": [{"text": "boom"}], "status": "error"}}]
    held = read(*messages, model=WRITER).turns[2]["content"]
    told = [{"text": "The call failed:"}, {"text": "boom"}]
    assert held == [{"toolResult": {"toolUseId": "call_1", "content": told}}]


@looped(
    ("model", "failed", "content"),
    [
        (CLAUDE, False, "(empty)"),
        (WRITER, False, "(empty)"),
        (CLAUDE, True, "(empty)"),
        (WRITER, True, "The call failed."),
    ],
)
def test_a_result_is_never_empty(model: ConverseModel, failed: bool, content: str) -> None:
    blank: list[JsonValue] = ["", " ", []]
    for empty in blank:
        messages = (user("go"), assistant(None, call()), result(empty, is_error=failed))
        match read(*messages, model=model).turns[2]["content"]:
            case [{"toolResult": {"content": [{"text": said}]}}]:
                assert said == content
            case other:
                pytest.fail(f"{other}")


def test_a_text_beside_results_gets_a_turn_of_its_own_where_the_model_demands_it() -> None:
    messages = (user("go"), assistant(None, call()), result("3"), user("so?"))
    answer: JsonObject = {"toolResult": {"toolUseId": "call_1", "content": [{"text": "3"}]}}
    joined = read(*messages, model=CLAUDE)
    assert joined.turns[2:] == [{"role": "user", "content": [answer, {"text": "so?"}]}]
    assert not joined.folded
    apart = read(*messages, model=LLAMA)
    assert apart.turns[2:] == [
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": [{"text": "."}]},
        {"role": "user", "content": [{"text": "so?"}]},
    ]
    assert apart.folded


def test_a_document_behind_results_stands_apart_on_claude_and_an_image_does_not() -> None:
    pdf = file("a.pdf", "data:application/pdf;base64,JVBERi0=")
    messages = (user("go"), assistant(None, call()), result("3"))
    assert len(read(*messages, user([pdf]), model=CLAUDE).turns) == 5
    assert len(read(*messages, user([image(PNG)]), model=CLAUDE).turns) == 3


@looped(("model", "turns"), [(QWEN, 3), (LLAMA, 3), (CLAUDE, 3)])
def test_media_that_no_result_may_hold_follow_all_results(model: ConverseModel, turns: int) -> None:
    given = read(
        user("go"),
        assistant(None, call(number="a"), call(number="b")),
        result([part("x"), image(PNG)], "a"),
        result("y", "b"),
        model=model,
    ).turns
    assert len(given) == turns
    content = given[2]["content"]
    assert isinstance(content, list)
    if model is QWEN:
        assert content == [
            {"toolResult": {"toolUseId": "a", "content": [{"text": "x"}, {"text": "[image 1 follows]"}]}},
            {"toolResult": {"toolUseId": "b", "content": [{"text": "y"}]}},
            {"text": "[image 1]"},
            PNG_BLOCK,
        ]
    else:
        assert content[0] == {"toolResult": {"toolUseId": "a", "content": [{"text": "x"}, PNG_BLOCK]}}


@looped(("model", "first"), [(CLAUDE, "assistant"), (QWEN, "assistant"), (NOVA, "user"), (UNKNOWN_MODEL, "user")])
def test_the_user_begins_where_the_model_demands_it(model: ConverseModel, first: str) -> None:
    conversation = read(assistant("Hello!"), user("hi"), model=model)
    assert conversation.turns[0]["role"] == first
    assert conversation.folded == (first == "user")


def test_claude_s_own_beginning_of_the_answer_ends_without_white_space() -> None:
    assert read(user("a"), assistant("b \n"), model=CLAUDE).turns[1]["content"] == [{"text": "b"}]
    assert read(user("a"), assistant("b \n"), model=NOVA).turns[1]["content"] == [{"text": "b \n"}]


def test_search_results_and_guarded_texts_are_blocks_of_their_own() -> None:
    found: JsonObject = {
        "type": "search_result",
        "source": "https://example.com",
        "title": "A page",
        "content": [{"type": "text", "text": "deep"}],
        "citations": {"enabled": True},
    }
    content = read(user([found, {"type": "guarded_text", "text": "Be safe."}])).turns[0]["content"]
    assert content == [
        {
            "searchResult": {
                "source": "https://example.com",
                "title": "A page",
                "content": [{"text": "deep"}],
                "citations": {"enabled": True},
            }
        },
        {"guardContent": {"text": {"text": "Be safe."}}},
    ]


@looped("model", [UNKNOWN_MODEL, CLAUDE, LLAMA])
def test_a_long_conversation_is_read_in_linear_time(model: ConverseModel) -> None:
    marked = part("a", cache_control={"type": "ephemeral"})
    loop = [user([marked]), assistant(None, call()), result([marked, image(PNG)]), user([marked])]
    small, large = (partial(read, *(loop * times), model=model) for times in (250, 1000))
    assert growth(small, large) == ""


def test_a_refusal_of_the_model_s_is_text() -> None:
    found = read(user("a"), assistant(None, reasoning_content="Hm.", refusal="No.")).turns
    assert found[1] == {"role": "assistant", "content": [{"text": "No."}]}
    parts: list[JsonValue] = [{"type": "refusal", "refusal": "Never."}]
    assert read(user("a"), assistant(parts)).turns[1]["content"] == [{"text": "Never."}]


@looped(
    ("messages", "code"),
    [
        ([], "invalid_value"),
        ([user(" ")], "invalid_value"),
        (["text"], "invalid_value"),
        ([{"content": "a"}], "invalid_value"),
        ([{"role": "critic", "content": "a"}], "unsupported_parameter"),
        ([{"role": "system", "content": [image(PNG)]}], "unsupported_parameter"),
        ([user("a"), {"role": "tool", "content": "a"}], "invalid_value"),
        (
            [user("a"), result([{"type": "input_audio", "input_audio": {"format": "wav", "data": "AA=="}}])],
            "unsupported_parameter",
        ),
    ],
)
def test_what_no_turn_can_say_is_refused(messages: list[JsonValue], code: str) -> None:
    refusal = refusal_for(*messages)
    assert (refusal.param, refusal.code) == ("messages", code)
