"""The contents of single choices besides text, reasoning and calls."""

from providers.completion import Extras
from providers.dialects.openai.read_extras import ends_block, extras_of, reasoning_in_part, repeated_in
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped


def of_message(message: JsonObject, **choice: JsonValue) -> Extras | None:
    return extras_of({"index": 0, "message": message, **choice}, message, 0, 0, signed=False)


def of_delta(delta: JsonObject, written: int = 0, blocks: int = 0) -> Extras | None:
    return extras_of({"index": 0, "delta": delta}, delta, written, blocks, signed=False)


def test_plain_choices_have_no_extras() -> None:
    assert of_message({"role": "assistant", "content": "Hi", "refusal": None, "reasoning": "Hm"}) is None
    assert of_message({"content": "Hi", "annotations": [], "audio": None, "images": None}) is None
    assert of_message({"content": [{"type": "text", "text": "Hi"}]}) is None
    raw: JsonObject = {"index": 0, "text": "Hi", "logprobs": None, "finish_reason": None}
    assert extras_of(raw, raw, 0, 0, signed=False) is None


def test_members_without_a_common_form_keep_their_name_and_place() -> None:
    found = of_message({"content": "Hi", "executed_tools": [{"index": 0}]}, token_ids=[1, 2])
    assert found == Extras(message={"executed_tools": [{"index": 0}]}, choice={"token_ids": [1, 2]})


def test_members_of_a_text_completion_s_choice_are_the_choice_s() -> None:
    raw: JsonObject = {"index": 0, "text": "Hi", "prompt_logprobs": [None]}
    assert extras_of(raw, raw, 0, 0, signed=False) == Extras(choice={"prompt_logprobs": [None]})


def test_known_forms_have_their_own_place() -> None:
    cited: JsonObject = {"type": "url_citation", "url_citation": {"url": "https://a.example"}}
    image: JsonObject = {"type": "image_url", "image_url": {"url": "data:,"}}
    detail: JsonObject = {"type": "reasoning.text", "text": "Hm", "index": 0}
    found = of_message(
        {"annotations": [cited], "images": [image], "reasoning_details": [detail], "audio": {"id": "a", "data": "QQ"}}
    )
    assert found == Extras((detail,), (cited,), (image,), {"id": "a", "data": "QQ"})


def test_a_known_name_with_another_form_is_passed_on_as_it_is() -> None:
    found = of_message({"annotations": {"a": 1}, "audio": "QQ"})
    assert found == Extras(message={"annotations": {"a": 1}, "audio": "QQ"})


def test_a_signature_that_is_read_elsewhere_is_not_passed_on_twice() -> None:
    message: JsonObject = {"content": "Hi", "extra_content": {"google": {"thought_signature": "QQ"}}}
    choice: JsonObject = {"index": 0, "message": message}
    assert extras_of(choice, message, 0, 0, signed=True) is None
    assert extras_of(choice, message, 0, 0, signed=False) == Extras(message={"extra_content": message["extra_content"]})


def test_whole_blocks_of_thinking_become_details_each_with_an_index() -> None:
    blocks: list[JsonValue] = [
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "QQ"},
        {"type": "thinking", "thinking": "Ah"},
    ]
    found = of_message({"thinking_blocks": blocks})
    assert found is not None
    assert found.reasoning_details == (
        {"type": "reasoning.text", "text": "Hm", "format": "anthropic-claude-v1", "index": 0, "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "QQ", "format": "anthropic-claude-v1", "index": 1},
        {"type": "reasoning.text", "text": "Ah", "format": "unknown", "index": 2},
    )
    assert found.message is None


def test_pieces_of_a_block_share_its_index_until_its_signature() -> None:
    piece = of_delta({"thinking_blocks": [{"type": "thinking", "thinking": "Hm", "signature": ""}]}, blocks=1)
    last = of_delta({"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]}, blocks=1)
    assert piece is not None
    assert last is not None
    (said,), (signed,) = piece.reasoning_details, last.reasoning_details
    assert (said["index"], signed["index"], said["format"], signed["format"]) == (1, 1, *2 * ["anthropic-claude-v1"])
    assert (ends_block(said), ends_block(signed)) == (False, True)


def test_details_win_over_the_blocks_that_say_the_same() -> None:
    detail: JsonObject = {"type": "reasoning.text", "text": "Hm", "index": 0}
    found = of_message({"reasoning_details": [detail], "thinking_blocks": [{"type": "thinking", "thinking": "Hm"}]})
    assert found == Extras((detail,))


def test_parts_of_a_content_find_their_places() -> None:
    parts: list[JsonValue] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}], "signature": "c2ln"},
        "Oslo ",
        {"type": "text", "text": "it is"},
        {"type": "tool_reference", "tool": "web_search", "title": "A", "url": "https://a.example"},
        {"type": "reference", "reference_ids": [1]},
        {"type": "reference", "reference_ids": [2]},
        {"type": "image_url", "image_url": "https://a.example/i.png"},
        7,
    ]
    found = of_delta({"content": parts}, written=10)
    place = {"start_index": 20, "end_index": 20}
    assert found == Extras(
        ({"type": "reasoning.text", "text": "Hm", "format": "unknown", "index": 0, "signature": "c2ln"},),
        ({"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A", **place}},),
        ({"type": "image_url", "image_url": {"url": "https://a.example/i.png"}},),
        message={"tool_reference": [parts[3]], "reference": [parts[4], parts[5]]},
    )


def test_a_signature_may_stand_in_a_summary() -> None:
    part: JsonObject = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm", "signature": "c2ln"}]}
    found = of_message({"content": [part]})
    assert found is not None
    assert [detail.get("signature") for detail in found.reasoning_details] == ["c2ln"]
    assert reasoning_in_part(part) == "Hm"


@looped("value", [None, "", 7, [], {}, [7], {"type": 7}])
def test_members_of_a_wrong_form_break_nothing(value: JsonValue) -> None:
    names = ("annotations", "images", "audio", "reasoning_details", "thinking_blocks", "x")
    of_message({name: value for name in names})
    of_delta({"content": [value, {"type": "tool_reference", "url": value}, {"type": "image_url", "image_url": value}]})


def test_what_every_event_repeats_is_told_once() -> None:
    assert repeated_in({"id": "x", "provider": "Groq"}) == {"provider": "Groq"}
    assert repeated_in({"provider": None}) == {}
