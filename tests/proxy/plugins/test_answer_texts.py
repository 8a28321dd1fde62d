"""The texts of answers, and answers with others in their place."""

import pytest

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.json_types import JsonObject
from proxy.plugins.answer_texts import (
    beside_choices,
    choice_of,
    chunk_of,
    texts_of_choice,
    with_choices,
    with_texts,
    without_beside,
)
from tests.support.looped import looped

CHOICE = Choice(
    1,
    "text",
    "stop",
    reasoning="thought",
    refusal="no",
    tool_calls=(ToolCall("1", "f", "{}", extra={"sig": "s"}), ToolCall("2", "g", "")),
    logprobs=ContentLogprobs(()),
    signature="signed",
    extras=Extras(
        reasoning_details=({"type": "t", "text": "detail", "signature": "x"},),
        annotations=({"cited": "quote"},),
        images=({"url": "data:image/png;base64,aGk="},),
        choice={"own": "member", "token_ids": [1]},
    ),
)


def test_every_text_of_a_choice_is_shown() -> None:
    assert [(each.text, each.kind) for each in texts_of_choice(CHOICE)] == [
        *(("thought", "reasoning"), ("text", "content"), ("no", "refusal"), ("{}", "tool_arguments")),
        *(("detail", "other"), ("quote", "other"), ("member", "other")),
    ]


def test_a_rewritten_choice_keeps_nothing_that_tells_its_first_form() -> None:
    made, dropped = with_texts(CHOICE, ["T", "X", "N", "[]", "", "", ""])
    assert made == Choice(
        1,
        "X",
        "stop",
        reasoning="T",
        refusal="N",
        tool_calls=(ToolCall("1", "f", "[]"), ToolCall("2", "g", "")),
        extras=Extras(images=({"url": "data:image/png;base64,aGk="},)),
    )
    assert dropped == ("logprobs", "signature", "reasoning_details", "annotations", "own", "token_ids")


@looped(
    ("written", "shown"),
    [
        ('{"n":"M\\u00fcller"}', '{"n":"Müller"}'),
        ('{"n":"\\ud83d\\ude00\\u0053\\/"}', '{"n":"😀S/"}'),
        ('{"n":"a\\\\u00fc"}', '{"n":"a\\\\u00fc"}'),  # a backslash and letters
        ('{"n":"\\u0022\\u005c\\u000a\\u0000\\n"}', '{"n":"\\"\\\\\\n\\u0000\\n"}'),
        ('{"n":"\\ud800\\u00fc"}', '{"n":"\\ud800ü"}'),  # half a character
        ('{"n":"\\u00fc', '{"n":"ü'),  # cut off by max_tokens
        (
            '{"a":1.0,"a":123456789012345678901234567890,"\\u00fc":1}',
            '{"a":1.0,"a":123456789012345678901234567890,"ü":1}',
        ),
    ],
)
def test_escapes_of_arguments_hide_nothing(written: str, shown: str) -> None:
    choice = Choice(0, "", "tool_calls", tool_calls=(ToolCall("1", "f", written),))
    assert [each.text for each in texts_of_choice(choice)] == [shown]
    # What no guard changed goes on as the vendor wrote it.
    assert with_texts(choice, [shown])[0].tool_calls[0].arguments == written
    assert with_texts(choice, ["{}"])[0].tool_calls[0].arguments == "{}"


def test_what_is_no_json_has_no_escapes() -> None:
    choice = Choice(0, "", "tool_calls", tool_calls=(ToolCall("1", "f", "\\u00fc", "custom"),))
    assert [each.text for each in texts_of_choice(choice)] == ["\\u00fc"]


def test_a_refusal_that_is_the_text_is_one_text() -> None:
    choice = Choice(0, "no", "stop", refusal="no")
    assert [each.text for each in texts_of_choice(choice)] == ["no"]
    assert with_texts(choice, ["yes"])[0] == Choice(0, "yes", "stop", refusal="yes")


def test_an_answer_with_a_rewritten_choice_is_not_the_vendor_s_body() -> None:
    answer = Completion((CHOICE,), None, native=b"{}", extra={"prompt": "first form"})
    assert with_choices(answer, [CHOICE]) == Completion((CHOICE,), None)


def test_chunks_become_a_choice_and_a_chunk_again() -> None:
    chunks = [
        Chunk(3, "a", tool_calls=(ToolCallDelta(0, "1", "f", "{"),)),
        Chunk(
            3, "b", tool_calls=(ToolCallDelta(0, arguments="}"),), finish_reason="tool_calls", system_fingerprint="fp"
        ),
    ]
    choice = choice_of(chunks, 3)
    assert (choice.index, choice.text, choice.tool_calls) == (3, "ab", (ToolCall("1", "f", "{}"),))
    made = chunk_of(choice, chunks[-1])
    assert made == Chunk(3, "ab", "tool_calls", tool_calls=(ToolCallDelta(0, "1", "f", "{}"),), system_fingerprint="fp")
    assert choice_of([Chunk(3, "a")], 3).text == "a"
    with pytest.raises(ValueError, match="no name"):
        choice_of([Chunk(tool_calls=(ToolCallDelta(0, arguments="{}"),))], 0)


def test_what_an_answer_holds_beside_its_choices_is_shown_and_can_be_left_out() -> None:
    completion = Completion((), Usage(1, 2, extra={"plan": "p"}), extra={"citations": ["c"]}, native=b"{}")
    beside = beside_choices(completion)
    assert beside is not None
    assert [each.text for each in texts_of_choice(beside)] == ["c", "p"]
    assert without_beside(completion) == Completion((), Usage(1, 2))
    assert beside_choices(Completion((), Usage(1, 2))) is None


def test_the_address_of_an_image_is_a_text_and_its_data_are_none() -> None:
    data: JsonObject = {"image_url": {"url": "data:image/png;base64,aGk="}}
    address: JsonObject = {"image_url": {"url": "http://x/secret"}}
    shown = texts_of_choice(Choice(0, "", "stop", extras=Extras(images=(data, address))))
    assert [each.text for each in shown] == ["http://x/secret"]
    made, _ = with_texts(Choice(0, "a", "stop", extras=Extras(images=(address,))), ["b", "http://x/***"])
    assert made.extras is None
