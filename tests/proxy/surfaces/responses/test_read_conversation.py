"""Items converted to the messages of a chat."""

import pytest

from providers.dialects.shared.read_conversation import read_conversation as read_turns
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.thinking_envelope import seal
from tests.proxy.surfaces.responses.kit import ask, losses, messages_of, read, refused, typed
from tests.support.looped import looped

HI: JsonObject = {"role": "user", "content": "hi"}
CALL: JsonObject = typed("function_call", call_id="c1", name="f", arguments='{"a":1}')
RESULT: JsonObject = typed("function_call_output", call_id="c1", output="done")
CALLED: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
DETAILS: list[JsonObject] = [{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]


def test_messages_keep_their_roles_and_order() -> None:
    given: list[JsonValue] = [{"role": role, "content": "x"} for role in ("developer", "user", "system", "assistant")]
    assert read(*given, instructions="first") == [{"role": "system", "content": "first"}, *given]


def test_one_text_is_a_text_and_parts_keep_their_members() -> None:
    image = typed("input_image", image_url="https://x/y.png", detail="low", file_id=None)
    said: JsonObject = {"role": "user", "content": [typed("input_text", text="see"), image]}
    (message,) = read(said)
    assert message["content"] == [
        typed("text", text="see"),
        typed("input_image", image_url="https://x/y.png", detail="low"),
    ]
    assert read({"role": "user", "content": [typed("input_text", text="see")]}) == [{"role": "user", "content": "see"}]


def test_what_the_model_made_between_others_is_one_turn() -> None:
    thought = typed("reasoning", id="rs_1", summary=[typed("summary_text", text="hm")])
    said = typed("message", role="assistant", content=[typed("output_text", text="so", annotations=[])], phase="x")
    other = {**CALL, "call_id": "c2"}
    assert read(HI, thought, said, CALL, other, RESULT, {**RESULT, "call_id": "c2"}) == [
        HI,
        {
            "role": "assistant",
            "content": "so",
            "reasoning_content": "hm",
            "tool_calls": [CALLED, {**CALLED, "id": "c2"}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "tool", "tool_call_id": "c2", "content": "done"},
    ]


def test_calls_of_two_turns_stay_apart() -> None:
    assert [message["role"] for message in read(HI, CALL, RESULT, {**CALL, "call_id": "c2"})] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_call_without_text_has_no_content() -> None:
    assert read(HI, CALL)[1] == {"role": "assistant", "content": None, "tool_calls": [CALLED]}


def test_calls_of_custom_tools_and_of_namespaces_have_their_names() -> None:
    custom = typed("custom_tool_call", call_id="c1", name="patch", input="*** Begin")
    spaced = {**CALL, "namespace": "ns"}
    (turn,) = read(custom, spaced)
    assert turn["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
        {"id": "c1", "type": "function", "function": {"name": "ns__f", "arguments": '{"a":1}'}},
    ]


def test_results_may_hold_media() -> None:
    listed = typed(
        "function_call_output", call_id="c1", output=[typed("input_image", image_url="data:image/png;base64,AA")]
    )
    assert read(CALL, listed)[1]["content"] == [typed("input_image", image_url="data:image/png;base64,AA")]


def test_sealed_thinking_is_opened() -> None:
    sealed = typed("reasoning", summary=[typed("summary_text", text="hm")], encrypted_content=seal(DETAILS))
    assert read(sealed, CALL)[0]["reasoning_details"] == DETAILS


@looped("sealed", ["gAAAAABfb3JlaWdu", "dragoman.thinking.1:spoilt", "dragoman.thinking.9:x"])
def test_foreign_and_spoilt_thinking_is_left_out_and_named(sealed: str) -> None:
    request = ask(input=[typed("reasoning", summary=[], encrypted_content=sealed), CALL])
    assert messages_of(request) == [{"role": "assistant", "content": None, "tool_calls": [CALLED]}]
    assert losses(request).left_out == ("reasoning",)


def test_raw_thoughts_come_before_their_summary_and_thinking_alone_is_no_message() -> None:
    both = typed("reasoning", summary=[typed("summary_text", text="s")], content=[typed("reasoning_text", text="raw")])
    assert read(both, CALL)[0]["reasoning_content"] == "raw"
    assert read(HI, typed("reasoning", summary=[typed("summary_text", text="hm")]), HI) == [HI, HI]


def test_empty_texts_and_refusals_of_the_model_are_read() -> None:
    said: list[JsonValue] = [typed("output_text", text=""), typed("refusal", refusal="no")]
    assert read(HI, {"role": "assistant", "content": said})[1]["content"] == [typed("refusal", refusal="no")]


def test_a_signature_beside_a_text_or_a_call_goes_back() -> None:
    extra: JsonObject = {"google": {"thought_signature": "s"}}
    said = typed("message", role="assistant", content="x", extra_content=extra)
    (turn,) = read(said, {**CALL, "extra_content": extra})
    assert turn["extra_content"] == extra
    assert turn["tool_calls"] == [{**CALLED, "extra_content": extra}]


def test_searches_of_the_past_are_left_out_and_named() -> None:
    request = ask(input=[HI, typed("web_search_call", id="ws_1", status="completed")])
    assert messages_of(request) == [HI]
    assert losses(request).left_out == ("input.web_search_call",)


@looped("kind", ["computer_call_output", "program", "unheard_of"])
def test_other_items_go_to_openai_alone(kind: str) -> None:
    item: JsonValue = typed(kind)
    for before in ([HI], []):
        assert losses(ask(input=[*before, item])).binding == {"input": f"an item of type '{kind}'"}


def test_a_conversation_without_a_message_goes_to_openai_alone() -> None:
    request = ask(input=[typed("reasoning", summary=[], encrypted_content="theirs")])
    assert losses(request).binding == {"input": "a conversation without a message"}
    assert refused(input=[typed("reasoning", summary=[])], seed=1).param == "input"


@pytest.mark.parametrize("kind", ["input_image", "input_file"])
def test_a_file_of_openai_s_store_is_for_openai_alone(kind: str) -> None:
    def binding(**members: JsonValue) -> object:
        return losses(ask(input=[{"role": "user", "content": [typed(kind, **members)]}])).binding

    assert binding(file_id="file-1") == {"input": "a file of OpenAI's store"}
    assert binding(file_id="s3://bucket/x.png") == {}
    assert binding(file_id="file-1", image_url="https://x/y.png") == {}
    shown: JsonObject = typed(kind, file_id="file-1")
    output: JsonObject = {"type": "function_call_output", "call_id": "c", "output": [shown]}
    call: JsonObject = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    assert losses(ask(input=[call, output])).binding == {"input": "a file of OpenAI's store"}


def test_thinking_between_calls_keeps_its_place_for_claude() -> None:
    first, second = (
        typed(
            "reasoning",
            summary=[],
            encrypted_content=seal([{**DETAILS[0], "signature": name, "format": "anthropic-claude-v1"}]),
        )
        for name in ("S1", "S2")
    )
    said, more = (typed("message", role="assistant", content=text) for text in ("first", "second"))
    turn = list(read_turns(read(HI, first, said, CALL, second, more, {**CALL, "call_id": "c2"})))[1]
    shown = [(type(it).__name__, getattr(it, "signature", None) or getattr(it, "text", "")) for it in turn.parts]
    assert shown == [
        ("Reasoning", "S1"),
        ("Text", "first"),
        ("ToolUse", ""),
        ("Reasoning", "S2"),
        ("Text", "\n\nsecond"),
        ("ToolUse", ""),
    ]


def test_successive_messages_of_the_model_stay_apart() -> None:
    said, empty, more = (typed("message", role="assistant", content=text) for text in ("A", "", "B"))
    assert read(HI, said, empty, more)[1]["content"] == [typed("text", text="A"), typed("text", text="\n\nB")]


def test_annotations_of_an_earlier_text_are_left_out_and_named() -> None:
    cited: JsonObject = {"type": "url_citation", "url": "https://e.x", "title": "t", "start_index": 0, "end_index": 1}
    rows: list[tuple[list[JsonValue], tuple[str, ...]]] = [([cited], ("annotations",)), ([], ())]
    for annotations, named in rows:
        said: list[JsonValue] = [typed("output_text", text="a", annotations=annotations)]
        assert losses(ask(input=[HI, {"role": "assistant", "content": said}])).left_out == named
