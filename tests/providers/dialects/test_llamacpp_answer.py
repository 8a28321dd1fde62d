"""Answers of llama.cpp's own endpoints, whole and streamed."""

from dataclasses import replace

import pytest

from providers.completion import Choice, Chunk, ContentLogprobs, TokenLogprob, Usage
from providers.dialects.llamacpp_fields import KEEP
from providers.failure import FailureKind
from providers.unified import TextPrompt, TokenPrompt
from tests.providers.dialects.native_kit import (
    SIZES,
    check_cuts,
    check_pieces,
    chunks,
    decode_failure,
    decoded,
    fixture,
    gathered,
    names_in,
    only,
    sent_for,
    stream_failure,
    streamed,
    target_of,
    text_of,
    text_request,
    usage_in,
)

TARGET = target_of("llamacpp_native")
SENT = sent_for(text_request(), TARGET)
BATCH = sent_for(replace(text_request(), prompt=TextPrompt(("a", "b"))), TARGET)
OF_TOKENS = sent_for(replace(text_request(), prompt=TokenPrompt(((1, 2), (3,)))), TARGET)


def token(text: str, logprob: float, *top: TokenLogprob) -> TokenLogprob:
    return TokenLogprob(text, logprob, tuple(text.encode()), top)


LOGPROBS = ContentLogprobs(
    (
        token("Oslo", -0.25, token("Oslo", -0.25), token("Rome", -2.5)),
        token(" 👋", -0.5, token(" 👋", -0.5), token("!", -1.5)),
    )
)
ANSWERS = {
    "text": Choice(0, " is blue: 3 °C 👋.", "stop"),
    "limit": Choice(0, " is", "length"),
    "word": Choice(0, "one, two", "stop", matched_stop=", three"),
    "empty": Choice(0, "", "length", "none"),
    "unknown": Choice(0, "Still here.", "sunset", "sunset"),
    "logprobs": Choice(0, "Oslo 👋", "stop", logprobs=LOGPROBS),
}
ALIKE = ("text", "limit", "word", "empty", "logprobs")
BROKEN = ("error_first", "error_after_text", "error_context")


def answer(name: str) -> bytes:
    return fixture("llamacpp", "answers", f"{name}.json")


def stream(name: str) -> bytes:
    return fixture("llamacpp", "streams", f"{name}.sse")


def test_the_fixtures_are_all_here() -> None:
    assert names_in("llamacpp", "answers") == sorted(f"{name}.json" for name in (*ANSWERS, "batch"))
    assert names_in("llamacpp", "streams") == sorted(f"{name}.sse" for name in (*ALIKE, "batch", "noise", *BROKEN))


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_becomes_one_choice(name: str) -> None:
    assert only(decoded(SENT, answer(name))) == ANSWERS[name]


def test_usage_tells_what_lay_in_the_cache() -> None:
    assert decoded(SENT, answer("text")).usage == Usage(4, 9, {"cached_tokens": 1})
    assert decoded(SENT, answer("unknown")).usage is None
    assert decoded(SENT, answer("text").replace(b'"cache_n":1,', b"")).usage == Usage(4, 9)


def test_several_prompts_are_answered_in_their_order_and_counted_together() -> None:
    whole = decoded(BATCH, answer("batch"))
    assert whole.choices == (Choice(0, " quick", "stop"), Choice(1, " each", "length"))
    assert whole.usage == Usage(5, 3, {"cached_tokens": 1})


def test_the_stop_string_is_put_back_when_it_was_asked_for() -> None:
    kept = {KEEP: True}
    sent = sent_for(text_request(stop=(", three",), **kept), TARGET)
    assert only(decoded(sent, answer("word"))).text == "one, two, three"
    assert text_of(streamed(sent, stream("word"))) == "one, two, three"
    assert only(decoded(sent, answer("text"))).text == " is blue: 3 °C 👋."


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"3",
        b"[3]",
        b"{}",
        b'{"content": "a"}',
        b'{"content": 3, "stop_type": "eos"}',
        b'[{"index": 0, "content": "", "stop_type": "eos"}, {"index": 0, "content": "", "stop_type": "eos"}]',
        answer("text")[:-40],
    ],
)
def test_a_body_that_makes_no_sense_is_malformed(body: bytes) -> None:
    assert decode_failure(SENT, body) is FailureKind.MALFORMED


def test_an_error_in_disguise_is_that_error() -> None:
    assert decode_failure(SENT, fixture("llamacpp", "errors", "error_400_context.json")) is FailureKind.CONTEXT_LENGTH


# Streams ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ALIKE, "noise"])
def test_the_events_are_the_same_whatever_the_pieces(name: str) -> None:
    check_pieces(SENT, stream(name))


def test_those_of_several_prompts_are_too() -> None:
    check_pieces(BATCH, stream("batch"))
    check_cuts(BATCH, stream("batch"), len(stream("batch")) - 2, expected=2)


@pytest.mark.parametrize("name", [*ALIKE, "noise"])
def test_a_stream_cut_at_any_byte_is_never_a_success(name: str) -> None:
    check_cuts(SENT, stream(name), len(stream(name)) - 2)


@pytest.mark.parametrize("name", ALIKE)
def test_a_stream_says_what_the_whole_answer_says(name: str) -> None:
    assert gathered(streamed(SENT, stream(name))) == decoded(SENT, answer(name))


@pytest.mark.parametrize("sent", [BATCH, OF_TOKENS], ids=["texts", "tokens"])
def test_a_stream_of_several_ends_when_all_have_ended(sent: object) -> None:
    batch = BATCH if sent is BATCH else OF_TOKENS
    events = streamed(batch, stream("batch"))
    assert gathered(events, 2) == decoded(batch, answer("batch"))
    assert [chunk.index for chunk in chunks(events)] == [1, 0, 1, 0, 0]


def test_one_prompt_of_token_ids_is_one() -> None:
    sent = sent_for(replace(text_request(), prompt=TokenPrompt(((1, 2, 3),))), TARGET)
    assert text_of(streamed(sent, stream("text"))) == " is blue: 3 °C 👋."


def test_noise_changes_nothing() -> None:
    events = streamed(SENT, stream("noise"))
    end = Chunk(finish_reason="sunset", native_finish_reason="sunset")
    assert events == [Chunk(text="Still "), Chunk(text="here."), end]
    assert usage_in(events) is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("error_after_text", " is blue", FailureKind.SERVER),
        ("error_first", "", FailureKind.SERVER),
        ("error_context", "", FailureKind.CONTEXT_LENGTH),
    ],
)
def test_an_error_in_the_stream_ends_it(name: str, text: str, kind: FailureKind, size: int) -> None:
    events, error = stream_failure(SENT, stream(name), size)
    assert text_of(events) == text
    assert error.failure.kind is kind


def test_nothing_is_read_after_the_end() -> None:
    assert streamed(SENT, stream("text") + stream("error_first")) == streamed(SENT, stream("text"))


def test_what_follows_the_end_of_one_of_several_is_passed_over() -> None:
    later = b'data: {"index":0,"content":"ck"'
    data = stream("batch").replace(later, b'data: {"index":1,"content":"!"}\n\n' + later)
    assert streamed(BATCH, data) == streamed(BATCH, stream("batch"))


@pytest.mark.parametrize(
    "data",
    [b"data: nonsense\n\n", b"data: 3\n\n", b'data: {"stop":true}\n\n', b'data: {"index":1,"content":"a"}\n\n'],
)
def test_events_that_make_no_sense_are_malformed(data: bytes) -> None:
    assert stream_failure(SENT, data)[1].failure.kind is FailureKind.MALFORMED
