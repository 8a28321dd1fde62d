"""The texts of responses, and responses with other texts in their place."""

from base64 import b64encode
from dataclasses import replace

import pytest

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    LegacyLogprobs,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.json_types import JsonObject
from proxy.plugins.answer_texts import (
    choice_of,
    chunk_of,
    texts_beside,
    texts_of_choice,
    with_choices,
    with_texts,
    without_beside,
)
from tests.support.looped import looped

PICTURE = f"data:image/png;base64,{b64encode(bytes(range(128, 256))).decode()}"
SOUND = b64encode(bytes(range(128, 256))).decode()

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
        images=({"url": PICTURE},),
        choice={"own": "member", "token_ids": [1]},
    ),
)


def test_every_text_of_a_choice_is_shown() -> None:
    assert [(each.text, each.kind) for each in texts_of_choice(CHOICE)] == [
        *(("thought", "reasoning"), ("text", "content"), ("no", "refusal"), ("{}", "tool_arguments")),
        *(("f", "name"), ("g", "name")),
        *(("t", "other"), ("detail", "other"), ("x", "other"), ("cited", "other"), ("quote", "other")),
        *(("own", "other"), ("member", "other"), ("token_ids", "other"), ("signed", "other")),
        *(("sig", "other"), ("s", "other")),
    ]


def test_a_rewritten_choice_keeps_nothing_that_tells_its_first_form() -> None:
    made, dropped = with_texts(CHOICE, ["T", "X", "N", "[]", "h", "g"])
    assert made == Choice(
        1,
        "X",
        "stop",
        reasoning="T",
        refusal="N",
        tool_calls=(ToolCall("1", "h", "[]"), ToolCall("2", "g", "")),
        extras=Extras(images=({"url": PICTURE},)),
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
    assert [each.text for each in texts_of_choice(choice)] == [shown, "f"]
    # Arguments that no guard changed keep the vendor's form.
    assert with_texts(choice, [shown, "f"])[0].tool_calls[0].arguments == written
    assert with_texts(choice, ["{}", "f"])[0].tool_calls[0].arguments == "{}"


def test_what_is_no_json_has_no_escapes() -> None:
    choice = Choice(0, "", "tool_calls", tool_calls=(ToolCall("1", "f", "\\u00fc", "custom"),))
    assert [each.text for each in texts_of_choice(choice)] == ["\\u00fc", "f"]


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


@looped(
    ("completion", "texts", "left"),
    [
        (Completion((), Usage(1, 2)), [], None),
        (
            Completion((), Usage(1, 2, extra={"plan": "p"}), extra={"citations": ["c"]}, native=b"{}"),
            ["c", "plan", "p"],
            Completion((), Usage(1, 2)),
        ),
        (Completion((), None, "fp_44709d6fcb", "default"), [], None),
        (Completion((), None, "say it", "default"), ["say it"], Completion((), None)),
        (Completion((), None, None, "say it"), ["say it"], Completion((), None)),
        (
            Completion(
                (CHOICE,), None, native=b'{"model":"m","content":[{"type":"text","text":"text"},{"new":"more"}]}'
            ),
            ["new", "more"],
            Completion((CHOICE,), None),
        ),
        (Completion((), None, native=b'{"stop_reason":"end_turn","stop_sequence":"s"}'), ["s"], Completion((), None)),
        (Completion((), None, native=b'{"instructions":"mine","tools":[{"name":"f"}]}'), ["f"], Completion((), None)),
    ],
)
def test_what_an_answer_holds_beside_its_choices_is_shown_and_can_be_left_out(
    completion: Completion, texts: list[str], left: Completion | None
) -> None:
    assert [each.text for each in texts_beside(completion, {"instructions": "mine"})] == texts
    if left is not None:
        assert without_beside(completion) == left


@looped(
    ("choice", "shown"),
    [
        (Choice(0, "", "stop", "eos_token"), []),
        (Choice(0, "", "MAX_TOKENS"), []),
        (Choice(0, "", "odd"), ["odd"]),
        (Choice(0, "", "stop", "odd"), ["odd"]),
        (Choice(0, "", "stop", matched_stop="s"), ["s"]),
        (Choice(0, "", "stop", matched_stop=7), []),
        (Choice(0, "", "stop", tool_calls=(ToolCall("1", "f", ""), ToolCall("an id", "", ""))), ["f", "an id"]),
    ],
)
def test_names_of_calls_and_unknown_words_for_an_end_are_shown_and_replaced(choice: Choice, shown: list[str]) -> None:
    assert [each.text for each in texts_of_choice(choice)] == shown
    made, _ = with_texts(choice, [each.upper() for each in shown])
    assert made == _upper(choice)


def _upper(choice: Choice) -> Choice:
    """Return the choice with all text that a client is shown in capitals."""
    calls = tuple([replace(call, name=call.name.upper(), id=call.id.upper()) for call in choice.tool_calls])
    finish = "ODD" if choice.finish_reason == "odd" else choice.finish_reason
    native = "ODD" if choice.native_finish_reason == "odd" else choice.native_finish_reason
    matched = choice.matched_stop.upper() if isinstance(choice.matched_stop, str) else choice.matched_stop
    return replace(choice, tool_calls=calls, finish_reason=finish, native_finish_reason=native, matched_stop=matched)


def google(signature: str) -> JsonObject:
    return {"extra_content": {"google": {"thought_signature": signature}}}


CITED: JsonObject = {"type": "file_citation", "file_id": "f-1", "quote": "q"}
ONE = TokenLogprob("a", -1.0, top=(TokenLogprob("a", -1.0), TokenLogprob("b", -2.0)))


@looped(
    ("choice", "shown"),
    [
        (Choice(0, "a", "stop", logprobs=ContentLogprobs((ONE,))), ["a", "b"]),
        (Choice(0, "", "stop", logprobs=ContentLogprobs((ONE, ONE))), ["aa", "b\nb"]),
        (
            Choice(
                0, "", "stop", logprobs=LegacyLogprobs(("x", "y"), (None, -1.0), (None, {"y": -1.0, "z": -2.0}), None)
            ),
            ["xy", "z"],
        ),
        (Choice(0, "", "stop", signature="s" * 64), []),
        (Choice(0, "", "stop", signature="in words"), ["in words"]),
        (
            Choice(
                0,
                "",
                "stop",
                tool_calls=(ToolCall("1", "", "", extra=google("s" * 64)),),
            ),
            [],
        ),
        (
            Choice(
                0,
                "",
                "stop",
                tool_calls=(ToolCall("1", "", "", extra=google("s s")),),
            ),
            ["s s"],
        ),
        (Choice(0, "", "stop", extras=Extras(audio={"id": "audio_1", "data": SOUND, "transcript": "said"})), ["said"]),
        (Choice(0, "", "stop", extras=Extras(audio={"id": "audio_1", "data": "in words!"})), ["in words!"]),
        (
            Choice(
                0, "", "stop", extras=Extras(annotations=({"type": "file_citation", "file_id": "f-1", "quote": "q"},))
            ),
            ["file_citation", "quote", "q"],
        ),
    ],
)
def test_what_has_the_form_of_no_seal_id_or_sound_is_shown(choice: Choice, shown: list[str]) -> None:
    assert [each.text for each in texts_of_choice(choice)] == shown


def test_members_that_chunks_repeat_are_shown_each_and_joined() -> None:
    chunks = [Chunk(extras=Extras(message={"content": each}, answer={"content": each})) for each in ("sword", "fish")]
    assert [each.text for each in texts_of_choice(choice_of(chunks, 0))] == ["sword", "fish", "swordfish"] * 2


def test_the_address_of_an_image_is_a_text_and_its_data_are_none() -> None:
    data: JsonObject = {"image_url": {"url": PICTURE}}
    address: JsonObject = {"image_url": {"url": "http://x/secret"}}
    shown = texts_of_choice(Choice(0, "", "stop", extras=Extras(images=(data, address))))
    assert [each.text for each in shown] == ["http://x/secret"]
    made, _ = with_texts(Choice(0, "a", "stop", extras=Extras(images=(address,))), ["b", "http://x/***"])
    assert made.extras is None
