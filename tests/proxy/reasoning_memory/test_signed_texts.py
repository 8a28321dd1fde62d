"""Signatures of texts: which are stored, and in which message of the client's next request they are restored."""

from dataclasses import replace
from functools import partial

from providers.completion import Chunk, Extras, ToolCallDelta, Usage
from providers.json_types import JsonObject, JsonValue
from proxy.reasoning_memory.signed_texts import (
    MOST_LOOKED_UP,
    MOST_TEXT,
    GatheredSignatures,
    SignedText,
    key_of_text,
    marks_of,
    signed_text,
    texts_of,
    unsigned_texts,
    with_signature,
)
from tests.support.cpu_growth import excess
from tests.support.looped import looped

USER: JsonObject = {"role": "user", "content": "Weather?"}
SAID: JsonObject = {"role": "assistant", "content": "It is sunny."}
DETAIL: JsonObject = {"type": "reasoning.encrypted", "data": "s", "format": "google-gemini-v1", "index": 0}
OF_CALL: JsonObject = {**DETAIL, "id": "call_1"}
THOUGHT: JsonObject = {"type": "reasoning.text", "text": "hm", "format": "unknown"}
EXTRA: JsonObject = {"google": {"thought_signature": "s"}}


@looped(
    ("text", "signature", "details", "kept"),
    [
        ("Yes.", "s", (), SignedText("Yes.", "s")),
        ("Yes.", "s", (DETAIL,), SignedText("Yes.", "s")),
        ("Yes.", None, (THOUGHT, DETAIL, OF_CALL), SignedText("Yes.", None, (DETAIL,))),
        ("Yes.", None, (THOUGHT,), None),
        (" \n", "s", (), None),
        ("x" * (MOST_TEXT + 1), "s", (), None),
    ],
)
def test_the_signature_of_a_text_is_stored(
    text: str, signature: str | None, details: tuple[JsonObject, ...], kept: SignedText | None
) -> None:
    assert signed_text(text, signature, Extras(reasoning_details=details)) == kept


@looped(
    "content",
    [
        "It is sunny.",
        " It is sunny.\n",
        [{"type": "text", "text": "It is "}, {"type": "text", "text": "sunny."}],
        [{"type": "text", "text": "It is"}, {"type": "text", "text": "\n\nsunny."}],
    ],
)
def test_a_text_is_found_as_clients_send_it_back(content: JsonValue) -> None:
    (found,) = unsigned_texts([USER, {"role": "assistant", "content": content}, USER])
    assert found == (1, key_of_text("It is sunny.", marks_of(USER)))


@looped(
    "message",
    [
        {**SAID, "extra_content": EXTRA},
        {**SAID, "reasoning_details": [DETAIL]},
        {**SAID, "tool_calls": [{"id": "c"}]},
        {**SAID, "role": "user"},
        {**SAID, "content": None},
        {**SAID, "content": "x" * (MOST_TEXT + 1)},
    ],
)
def test_what_has_a_signature_or_no_text_is_not_looked_up(message: JsonObject) -> None:
    assert unsigned_texts([USER, message]) == []


def test_another_question_or_text_has_another_key() -> None:
    keys = {key_of_text(text, marks) for text in ("a", "b") for marks in (("c",), ("d",), ())}
    assert len(keys) == 6


def test_the_latest_texts_are_looked_up() -> None:
    found = unsigned_texts([USER, SAID] * (MOST_LOOKED_UP + 5))
    assert [position for position, _ in found] == [2 * number + 9 for number in range(MOST_LOOKED_UP, 0, -1)]
    long: JsonObject = {**SAID, "content": "x" * MOST_TEXT}
    assert len(unsigned_texts([long] * 20)) == 8
    assert excess(partial(unsigned_texts, [long] * 4096), 30) == ""


def test_a_signature_stands_beside_what_the_client_sent() -> None:
    message: JsonObject = {**SAID, "reasoning_details": [THOUGHT]}
    assert with_signature(message, "s", ()) == {**message, "extra_content": EXTRA}
    assert with_signature(message, None, (DETAIL,)) == {**message, "reasoning_details": [THOUGHT, DETAIL]}
    assert message == {**SAID, "reasoning_details": [THOUGHT]}


def test_long_marks_are_hashed() -> None:
    long = "x" * 100_000
    (mark,) = marks_of({"content": long})
    assert len(mark) == 64
    assert [*texts_of({"content": [{"text": "a"}, 3, {"image": "b"}]}), *texts_of("x")] == ["a"]


@looped(
    ("chunks", "kept"),
    [
        ([Chunk(text="It "), Chunk(text="is."), Chunk(signature="s", finish_reason="stop")], SignedText("It is.", "s")),
        ([Chunk(text="It is.", signature="s"), Chunk(finish_reason="stop")], SignedText("It is.", "s")),
        (
            [Chunk(text="a"), Chunk(extras=Extras(reasoning_details=(DETAIL,))), Chunk(finish_reason="stop")],
            SignedText("a", None, (DETAIL,)),
        ),
        ([Chunk(text="It is."), Chunk(finish_reason="stop")], None),
        ([Chunk(text="a", tool_calls=(ToolCallDelta(0, "c", "f"),)), Chunk(signature="s", finish_reason="stop")], None),
        ([Chunk(text="x" * (MOST_TEXT + 1)), Chunk(signature="s", finish_reason="stop")], None),
    ],
)
def test_a_stream_is_gathered_until_it_ends(chunks: list[Chunk], kept: SignedText | None) -> None:
    gathered = GatheredSignatures()
    assert gathered.add(Usage(1, 1)) is None
    assert [gathered.add(chunk) for chunk in chunks][-1] == kept


def test_choices_are_gathered_apart() -> None:
    gathered = GatheredSignatures()
    for index in (0, 1):
        gathered.add(Chunk(index, f"choice {index}"))
    ended = Chunk(signature="s", finish_reason="stop")
    assert gathered.add(replace(ended, index=1)) == SignedText("choice 1", "s")
    assert gathered.add(ended) == SignedText("choice 0", "s")
