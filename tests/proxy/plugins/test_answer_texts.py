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
)
from proxy.plugins.answer_texts import choice_of, chunk_of, texts_of_choice, with_choices, with_texts

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
        images=({"url": "i"},),
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
        extras=Extras(images=({"url": "i"},)),
    )
    assert dropped == ("logprobs", "signature", "reasoning_details", "annotations", "own", "token_ids")


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
