"""Answers of LLM Engine's completions, whole and streamed."""

import pytest

from providers.completion import Choice, ContentLogprobs, TokenLogprob, Usage
from providers.failure import FailureKind
from tests.providers.dialects.native_kit import (
    SIZES,
    check_cuts,
    check_pieces,
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
)

TARGET = target_of("llm_engine", max_output_tokens=16)
SENT = sent_for(text_request("The sky"), TARGET)
LOGPROBS = ContentLogprobs((TokenLogprob("Oslo", -0.25), TokenLogprob(" 👋", -0.5)))
ANSWERS = {
    "text": (Choice(0, " is blue: 3 °C 👋.", "stop"), Usage(3, 7)),
    "length": (Choice(0, " is it", "length"), Usage(3, 16)),
    "logprobs": (Choice(0, "Oslo 👋", "stop", logprobs=LOGPROBS), Usage(3, 2)),
    "empty": (Choice(0, "", "stop"), Usage(3, 0)),
    "uncounted": (Choice(0, "Oslo.", "stop"), None),
}
STREAMS = {**ANSWERS, "length": (Choice(0, " la la la", "length"), Usage(3, 16))}
BROKEN = {
    "error_first": ("", FailureKind.CONTEXT_LENGTH, 400),
    "error_missing": ("", FailureKind.NOT_FOUND, 404),
    "error_after_text": (" is blue", FailureKind.SERVER, 500),
}


def stream(name: str) -> bytes:
    return fixture("llm_engine", "streams", f"{name}.sse")


def test_the_fixtures_are_all_here() -> None:
    assert names_in("llm_engine", "streams") == sorted(f"{name}.sse" for name in (*STREAMS, *BROKEN))
    assert names_in("llm_engine", "answers") == sorted(f"{name}.json" for name in ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_is_one_choice(name: str) -> None:
    completion = decoded(SENT, fixture("llm_engine", "answers", f"{name}.json"))
    assert (only(completion), completion.usage) == ANSWERS[name]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_one_choice_whatever_the_pieces(name: str) -> None:
    completion = gathered(streamed(SENT, stream(name)))
    assert (only(completion), completion.usage) == STREAMS[name]
    check_pieces(SENT, stream(name))


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_at_any_byte_is_never_a_success(name: str) -> None:
    check_cuts(SENT, stream(name), len(stream(name)) - len("\r\n\r\n"))


def test_a_window_that_is_full_ended_the_text() -> None:
    known = sent_for(text_request("The sky"), target_of("llm_engine", max_output_tokens=16, context_window=10))
    assert only(decoded(known, fixture("llm_engine", "answers", "text.json"))).finish_reason == "length"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BROKEN)
def test_an_error_in_the_stream_has_its_own_status(name: str, size: int) -> None:
    text, kind, status = BROKEN[name]
    events, error = stream_failure(SENT, stream(name), size)
    assert text_of(events) == text
    assert (error.failure.kind, error.failure.status) == (kind, status)
    assert "62bc820451dbea002b1c5421" not in error.failure.message


@pytest.mark.parametrize("data", [b"data: nonsense\n\n", b"data: 3\n\n", b'data: {"output": {"text": 3}}\n\n'])
def test_events_that_make_no_sense_are_malformed(data: bytes) -> None:
    assert stream_failure(SENT, data)[1].failure.kind is FailureKind.MALFORMED


@pytest.mark.parametrize("body", [b"", b"<html>", b"3", b"{}", b'{"output": null}', b'{"output": {}}'])
def test_a_body_that_makes_no_sense_is_malformed(body: bytes) -> None:
    assert decode_failure(SENT, body) is FailureKind.MALFORMED
