"""Responses of Triton's generate extension, streaming and not."""

from providers.completion import Choice, Chunk, Usage
from providers.failure import FailureKind
from providers.request_fields import STOP_STRING
from tests.providers.dialects.kit import (
    SIZES,
    chunks,
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
from tests.support.looped import looped

stream = reader("triton", "streams", "sse")
answer = reader("triton", "answers", "json")

TARGET = target_of("triton", max_output_tokens=16)
KEPT = {STOP_STRING: True}
SENT = sent_for(text_request("The sky"), TARGET)
STOPS = sent_for(text_request("Count", stop=(", four", ", three")), TARGET)
KEEPING = sent_for(text_request("Count", stop=(", three",), **KEPT), TARGET)
ANSWERS = {
    "text": (Choice(0, " is blue: 3 °C 👋.", "stop"), Usage(3, 7)),
    "length": (Choice(0, " is it", "length"), Usage(3, 16)),
    "listed": (Choice(0, " is blue.", "stop"), Usage(3, 4)),
    "stop": (Choice(0, "one, two, three", "stop"), Usage(4, 5)),
    "empty": (Choice(0, "", "stop"), Usage(3, 0)),
    "uncounted": (Choice(0, "Oslo.", "stop"), None),
}
STREAMS = {
    "text": ANSWERS["text"],
    "length": (Choice(0, " la la", "length"), Usage(3, 16)),
    "stop": ANSWERS["stop"],
    "empty": ANSWERS["empty"],
    "uncounted": ANSWERS["uncounted"],
}


@looped("name", ANSWERS)
def test_a_whole_answer_is_one_choice(name: str) -> None:
    completion = decoded(SENT, answer(name))
    assert (only(completion), completion.usage) == ANSWERS[name]


@looped("name", STREAMS)
def test_a_stream_is_one_choice(name: str) -> None:
    completion = gathered(streamed(SENT, stream(name)))
    assert (only(completion), completion.usage) == STREAMS[name]


def test_the_counts_of_the_responses_are_added() -> None:
    assert streamed(SENT, stream("text")) == [
        Chunk(text=" is blue"),
        Chunk(text=": 3 °C"),
        Chunk(text=" 👋."),
        Chunk(finish_reason="stop"),
        Usage(3, 7),
    ]


def test_a_stream_cut_within_an_event_is_never_a_success() -> None:
    data = stream("text")
    for event in data.split(b"\n\n")[:-1]:
        begin = data.index(event)
        for place in range(begin + len("data: "), begin + len(event)):
            assert stream_failure(SENT, data[:place])[1].failure.kind is FailureKind.TRUNCATED, place


def test_a_window_that_is_full_ended_the_text() -> None:
    known = sent_for(text_request("The sky"), target_of("triton", max_output_tokens=16, context_window=10))
    assert only(decoded(known, answer("text"))).finish_reason == "length"


@looped("size", SIZES)
def test_the_stop_that_the_engine_leaves_in_the_text_is_taken_out_and_told(size: int) -> None:
    events = streamed(STOPS, stream("stop"), size)
    assert text_of(events) == "one, two"
    assert chunks(events)[-1].matched_stop == ", three"
    assert [chunk.finish_reason for chunk in chunks(events) if chunk.finish_reason] == ["stop"]
    assert usage_in(events) == Usage(4, 5)
    assert only(decoded(STOPS, answer("stop"))) == Choice(0, "one, two", "stop", matched_stop=", three")


def test_it_stays_where_the_client_wants_it() -> None:
    assert text_of(streamed(KEEPING, stream("stop"))) == "one, two, three"
    assert only(decoded(KEEPING, answer("stop"))).text == "one, two, three"
