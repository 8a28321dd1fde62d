"""Answers of TGI's own endpoints, streamed and whole."""

from dataclasses import replace

import pytest

from providers.completion import Choice, Chunk, ContentLogprobs, LegacyLogprobs, TokenLogprob, Usage
from providers.dialects.tgi_fields import KEEP
from providers.failure import FailureKind, UpstreamError
from providers.unified import LogprobsWanted
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

TARGET = target_of("tgi_native")
WANTED = {"logprobs": LogprobsWanted(2, "legacy")}
KEPT = {KEEP: True}
SENT = sent_for(text_request("The sky"), TARGET)
SCORED = sent_for(text_request("The sky", **WANTED), TARGET)
STOPS = sent_for(text_request("Count", stop=(", four", ", three")), TARGET)
KEEPING = sent_for(text_request("Count", stop=(", three",), **KEPT), TARGET)
ECHO = sent_for(text_request("The sky", echo=True, **WANTED), TARGET)
LOGPROBS = ContentLogprobs(
    (
        TokenLogprob("Oslo", -0.25, None, (TokenLogprob("Oslo", -0.25), TokenLogprob("Rome", -2.5))),
        TokenLogprob(" 👋", -0.5, None, (TokenLogprob(" 👋", -0.5),)),
    )
)
ANSWERS = {
    "text": Choice(0, " is blue: 3 °C 👋.", "stop"),
    "length": Choice(0, " is it", "length"),
    "stop": Choice(0, "one, two, three", "stop"),
    "logprobs": Choice(0, "Oslo 👋", "stop"),
    "empty": Choice(0, "", "stop"),
    "noise": Choice(0, "Still here.", "sunset", "sunset"),
}
BROKEN = ("error_first", "error_validation", "error_overloaded", "error_after_text")
ECHOED = ("The", " sky")


def stream(name: str) -> bytes:
    return fixture("tgi", "streams", f"{name}.sse")


def answer(name: str) -> bytes:
    return fixture("tgi", "answers", f"{name}.json")


def test_the_fixtures_are_all_here() -> None:
    assert names_in("tgi", "streams") == sorted(f"{name}.sse" for name in (*ANSWERS, *BROKEN))
    assert names_in("tgi", "answers") == ["echo.json", "listed.json", "stop.json", "without_mark.json"]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_is_one_choice_whole_and_in_pieces(name: str) -> None:
    assert only(decoded(SENT, stream(name))) == ANSWERS[name]
    assert gathered(streamed(SENT, stream(name))) == decoded(SENT, stream(name))


@pytest.mark.parametrize("name", ANSWERS)
def test_the_events_are_the_same_whatever_the_pieces(name: str) -> None:
    for sent in (SENT, SCORED, STOPS):
        check_pieces(sent, stream(name))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_cut_at_any_byte_is_never_a_success(name: str) -> None:
    check_cuts(SENT, stream(name), len(stream(name)) - 2)


def test_the_end_of_the_stream_counts() -> None:
    assert decoded(SENT, stream("text")).usage == Usage(5, 5)
    assert usage_in(streamed(SENT, stream("noise"))) is None


def test_marks_and_empty_tokens_add_nothing_and_the_text_comes_once() -> None:
    assert streamed(SENT, stream("text")) == [
        Chunk(text=" is blue"),
        Chunk(text=": 3 °C"),
        Chunk(text=" 👋."),
        Chunk(finish_reason="stop"),
        Usage(5, 5),
    ]


def test_log_probabilities_come_only_where_they_are_wanted() -> None:
    assert only(decoded(SENT, stream("logprobs"))).logprobs is None
    assert only(decoded(SCORED, stream("logprobs"))).logprobs == LOGPROBS


@pytest.mark.parametrize("size", SIZES)
def test_the_stop_that_the_server_leaves_in_the_text_is_taken_out_and_told(size: int) -> None:
    events = streamed(STOPS, stream("stop"), size)
    assert text_of(events) == "one, two"
    assert chunks(events)[-1].matched_stop == ", three"
    assert [chunk.finish_reason for chunk in chunks(events) if chunk.finish_reason] == ["stop"]
    assert usage_in(events) == Usage(5, 4)


def test_it_stays_where_the_client_wants_it() -> None:
    events = streamed(KEEPING, stream("stop"))
    assert text_of(events) == "one, two, three"
    assert chunks(events)[-1].matched_stop == ", three"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "text", "kind", "status"),
    [
        ("error_first", "", FailureKind.CONTEXT_LENGTH, 422),
        ("error_validation", "", FailureKind.INVALID_REQUEST, 422),
        ("error_overloaded", "", FailureKind.OVERLOADED, 429),
        ("error_after_text", " is blue", FailureKind.SERVER, 424),
    ],
)
def test_an_error_in_the_stream_has_the_status_of_its_type(
    name: str, text: str, kind: FailureKind, status: int, size: int
) -> None:
    events, error = stream_failure(SENT, stream(name), size)
    assert text_of(events) == text
    assert (error.failure.kind, error.failure.status) == (kind, status)
    assert decode_failure(SENT, stream(name)) is kind


def test_sizes_are_told_in_the_stream_too() -> None:
    overflow = stream_failure(SENT, stream("error_first"))[1].failure.overflow
    assert overflow is not None
    assert (overflow.window, overflow.prompt, overflow.prompt_alone) == (4096, 5210, True)


def test_nothing_is_read_after_the_end() -> None:
    assert streamed(SENT, stream("text") + stream("error_first")) == streamed(SENT, stream("text"))


@pytest.mark.parametrize("data", [b"data: nonsense\n\n", b"data: 3\n\n"])
def test_events_that_make_no_sense_are_malformed(data: bytes) -> None:
    assert stream_failure(SENT, data)[1].failure.kind is FailureKind.MALFORMED


def test_an_end_without_details_is_an_end() -> None:
    data = b'data:{"token":{"text":" is"},"generated_text":" is","details":null}\n\n'
    assert streamed(SENT, data) == [Chunk(text=" is", finish_reason="stop")]


# Whole answers, with the prompt before them -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["echo", "listed"])
def test_prompt_and_answer_come_with_their_log_probabilities(name: str) -> None:
    whole = decoded(ECHO, answer(name))
    choice = only(whole)
    assert (choice.text, choice.finish_reason) == ("The sky is blue 👋", "stop")
    assert choice.logprobs == LegacyLogprobs(
        (*ECHOED, " is blue", " 👋"),
        (-3.5, -1.25, -0.5, -0.25),
        (None, None, {" is blue": -0.5, " was": -1.5}, {" 👋": -0.25}),
        (0, 3, 7, 15),
    )
    assert whole.usage == Usage(3, 3)


def test_a_first_token_that_is_text_has_no_number() -> None:
    logprobs = only(decoded(ECHO, answer("without_mark"))).logprobs
    assert isinstance(logprobs, LegacyLogprobs)
    assert logprobs.tokens[:2] == ECHOED
    assert logprobs.token_logprobs == (None, -1.25, -0.5, -0.25)


def test_a_stop_ends_the_answer_behind_the_prompt() -> None:
    sent = sent_for(text_request("The sky", echo=True, stop=(".",), **WANTED), TARGET)
    choice = only(decoded(sent, answer("stop")))
    assert (choice.text, choice.matched_stop) == ("The sky is blue", ".")
    assert isinstance(choice.logprobs, LegacyLogprobs)
    assert choice.logprobs.tokens == (*ECHOED, " is blue")


def test_a_stream_of_it_is_one_chunk_at_the_end() -> None:
    sent = replace(ECHO, stream=True)
    events = streamed(sent, answer("echo"), 7)
    assert gathered(events) == decoded(ECHO, answer("echo"))
    assert len(chunks(events)) == 1
    assert stream_failure(sent, answer("echo")[:-1])[1].failure.kind is FailureKind.TRUNCATED


def test_an_endless_body_is_malformed() -> None:
    decoder = ECHO.target.dialect.stream(ECHO)
    with pytest.raises(UpstreamError) as caught:
        all(not list(decoder.feed(b" " * 2**20)) for _ in range(40))
    assert caught.value.failure.kind is FailureKind.MALFORMED


@pytest.mark.parametrize("body", [b"", b"<html>", b"3", b"{}", b'{"generated_text": "a"}', b'{"details": {}}'])
def test_a_body_that_makes_no_sense_is_malformed(body: bytes) -> None:
    assert decode_failure(ECHO, body) is FailureKind.MALFORMED


def test_an_error_in_disguise_is_that_error() -> None:
    assert decode_failure(ECHO, fixture("tgi", "errors", "error_422_inputs.json")) is FailureKind.CONTEXT_LENGTH
