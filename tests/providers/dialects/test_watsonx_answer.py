"""Answers of watsonx.ai, to raw prompts and to chats, whole and streamed."""

import pytest

from providers.completion import Choice, ContentLogprobs, TokenLogprob, ToolCall, Usage
from providers.dialects.watsonx_answer import classify
from providers.failure import FailureKind
from providers.profiles import load_profiles
from providers.unified import LogprobsWanted
from tests.providers.dialects.native_kit import (
    SIZES,
    chat_request,
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

TARGET = target_of("watsonx", base_url="https://host/projects/p")
SENT = sent_for(text_request("The sky"), TARGET)
WANTED = {"logprobs": LogprobsWanted(2, "legacy")}
SCORED = sent_for(text_request("The sky", **WANTED), TARGET)
CHAT = sent_for(chat_request(), TARGET)
LOGPROBS = ContentLogprobs(
    (
        TokenLogprob("Oslo", -0.25, None, (TokenLogprob("Oslo", -0.25), TokenLogprob("Rome", -2.5))),
        TokenLogprob(" 👋", -0.5, None, (TokenLogprob(" 👋", -0.5),)),
    )
)
COMMON = {
    "text": (Choice(0, " is blue: 3 °C 👋.", "stop"), Usage(3, 7)),
    "logprobs": (Choice(0, "Oslo 👋", "stop"), Usage(3, 2)),
}
ANSWERS = {
    **COMMON,
    "length": (Choice(0, " is it", "length"), Usage(3, 16)),
    "time": (Choice(0, " is", "length", "time_limit"), Usage(3, 2)),
    "stop": (Choice(0, "one, two", "stop"), Usage(2, 4)),
    "new_word": (Choice(0, "Good night", "sunset", "sunset"), Usage(3, 2)),
    "empty": (Choice(0, "", "stop"), Usage(3, 0)),
    "uncounted": (Choice(0, "Oslo.", "stop"), None),
}
STREAMS = {
    **COMMON,
    "length": (Choice(0, " la la", "length"), Usage(3, 16)),
    "noise": (Choice(0, "Oslo.", "sunset", "sunset"), None),
}
CALL = ToolCall("chatcmpl-tool-1", "look", '{"at": "Oslo"}')
CHATS = {
    "chat": (Choice(0, "It is blue: 3 °C 👋.", "stop"), Usage(12, 7)),
    "chat_tools": (Choice(0, "", "tool_calls", tool_calls=(CALL,)), Usage(12, 7)),
}
BROKEN = {
    "error_first": ("", FailureKind.CONTEXT_LENGTH, 400),
    "error_unnamed": ("", FailureKind.QUOTA, 403),
    "error_after_text": (" is blue", FailureKind.SERVER, 500),
    "error_word": (" is blue", FailureKind.SERVER, None),
}


def stream(name: str) -> bytes:
    return fixture("watsonx", "streams", f"{name}.sse")


def answer(name: str) -> bytes:
    return fixture("watsonx", "answers", f"{name}.json")


def test_the_fixtures_are_all_here() -> None:
    streams = (*STREAMS, *CHATS, *BROKEN, "chat_error")
    assert names_in("watsonx", "streams") == sorted(f"{name}.sse" for name in streams)
    assert names_in("watsonx", "answers") == sorted(f"{name}.json" for name in (*ANSWERS, *CHATS))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_is_one_choice(name: str) -> None:
    completion = decoded(SENT, answer(name))
    assert (only(completion), completion.usage) == ANSWERS[name]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_one_choice_whatever_the_pieces(name: str) -> None:
    completion = gathered(streamed(SENT, stream(name)))
    assert (only(completion), completion.usage) == STREAMS[name]
    check_pieces(SENT, stream(name))


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_at_any_byte_is_never_a_success(name: str) -> None:
    check_cuts(SENT, stream(name), len(stream(name)) - len("\n\n"))


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_one_choice_whole_and_streamed(name: str) -> None:
    for completion in (decoded(CHAT, answer(name)), gathered(streamed(CHAT, stream(name)))):
        assert (only(completion), completion.usage) == CHATS[name]
    check_pieces(CHAT, stream(name))


def test_a_chats_stream_that_is_cut_before_its_reason_is_never_a_success() -> None:
    data = stream("chat")
    for place in range(data.index(b'"stop"')):
        assert stream_failure(CHAT, data[:place])[1].failure.kind is FailureKind.TRUNCATED, place


def test_a_chats_event_over_several_lines_is_one_event() -> None:
    spread = stream("chat").replace(b', "object"', b',\ndata:  "object"')
    assert streamed(CHAT, spread) == streamed(CHAT, stream("chat"))


def test_log_probabilities_come_only_where_they_are_wanted() -> None:
    assert only(decoded(SENT, answer("logprobs"))).logprobs is None
    assert only(decoded(SCORED, answer("logprobs"))).logprobs == LOGPROBS
    assert only(gathered(streamed(SCORED, stream("logprobs")))).logprobs == LOGPROBS


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BROKEN)
def test_an_error_in_the_stream_has_its_own_status(name: str, size: int) -> None:
    text, kind, status = BROKEN[name]
    events, error = stream_failure(SENT, stream(name), size)
    assert text_of(events) == text
    assert (error.failure.kind, error.failure.status) == (kind, status)
    assert "10.0.0.7" not in error.failure.message


@pytest.mark.parametrize("size", SIZES)
def test_an_error_in_a_chats_stream_does_too(size: int) -> None:
    events, error = stream_failure(CHAT, stream("chat_error"), size)
    assert text_of(events) == "It"
    assert (error.failure.kind, error.failure.status) == (FailureKind.SERVER, 500)


@pytest.mark.parametrize("data", [b"data: nonsense\n\n", b"data: 3\n\n", b'data: {"results": [3]}\n\n'])
def test_events_that_make_no_sense_are_malformed(data: bytes) -> None:
    assert stream_failure(SENT, data)[1].failure.kind is FailureKind.MALFORMED


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"3", b"{}", b'{"results": []}', b'{"results": [{"generated_text": "a"}]}']
)
def test_a_body_that_makes_no_sense_is_malformed(body: bytes) -> None:
    assert decode_failure(SENT, body) is FailureKind.MALFORMED


def test_an_error_in_disguise_is_that_error() -> None:
    assert decode_failure(SENT, fixture("watsonx", "errors", "error_403_quota.json")) is FailureKind.QUOTA


def test_a_code_means_more_than_its_status() -> None:
    body = fixture("watsonx", "errors", "error_403_quota.json")
    assert classify(load_profiles()["watsonx"], 403, {}, body).kind is FailureKind.QUOTA
