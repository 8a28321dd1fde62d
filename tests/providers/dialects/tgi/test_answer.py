"""Responses of TGI's own endpoints, streaming and not."""

from dataclasses import replace

import pytest

from providers.completion import Choice, Chunk, ContentLogprobs, LegacyLogprobs, TokenLogprob, Usage
from providers.failure import FailureKind
from providers.request_fields import STOP_STRING
from providers.unified_request import LogprobsWanted
from tests.providers.dialects.kit import (
    SIZES,
    chunks,
    decode_failure,
    decoded,
    gathered,
    only,
    reader,
    sent_for,
    stream_failure,
    streamed,
    target_of,
    text_of,
    text_request,
    usage_in,
)
from tests.providers.dialects.tgi.suite_data import ANSWER_SETS
from tests.providers.kit import failure_of
from tests.support.looped import looped

stream = reader("tgi", "streams", "sse")
answer = reader("tgi", "answers", "json")

TARGET = target_of("tgi_native")
WANTED = {"logprobs": LogprobsWanted(2, "legacy")}
KEPT = {STOP_STRING: True}
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
ECHOED = ("The", " sky")


@looped("name", ANSWERS)
def test_a_stream_is_one_choice_whole_and_in_pieces(name: str) -> None:
    assert only(decoded(SENT, stream(name))) == ANSWERS[name]
    assert gathered(streamed(SENT, stream(name))) == decoded(SENT, stream(name))


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


@looped("size", SIZES)
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


def test_a_stream_that_breaks_makes_no_whole_answer() -> None:
    for name, (_, kind, _) in ANSWER_SETS["tgi"].broken.items():
        assert decode_failure(SENT, stream(name)) is kind


def test_sizes_are_told_in_the_stream_too() -> None:
    overflow = stream_failure(SENT, stream("error_first"))[1].failure.overflow
    assert overflow is not None
    assert (overflow.window, overflow.prompt, overflow.prompt_alone) == (4096, 5210, True)


def test_an_end_without_details_is_an_end() -> None:
    data = b'data:{"token":{"text":" is"},"generated_text":" is","details":null}\n\n'
    assert streamed(SENT, data) == [Chunk(text=" is", finish_reason="stop")]


# Non-streaming responses with the prompt in front ----- ---------------------------------------------------------------


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
    assert failure_of(all, (not list(decoder.feed(b" " * 2**20)) for _ in range(40))).kind is FailureKind.MALFORMED
