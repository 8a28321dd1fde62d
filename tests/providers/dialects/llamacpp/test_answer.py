"""Responses of llama.cpp's own endpoints, streaming and not."""

from dataclasses import replace

import pytest

from providers.completion import Choice, Chunk, ContentLogprobs, Extras, TokenLogprob, Usage
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.request_fields import STOP_STRING
from providers.unified_request import TextPrompt, TokenPrompt
from tests.providers.dialects.kit import (
    chunks,
    decoded,
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

answer = reader("llamacpp", "answers", "json")
stream = reader("llamacpp", "streams", "sse")

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


def own(cached: int, **timings: float) -> Extras:
    """Return the engine's own fields of a result."""
    times: JsonObject = {**timings, "predicted_ms": 12.5}
    return Extras(choice={"truncated": False, "tokens_cached": cached, "timings": times})


ANSWERS = {
    "text": Choice(0, " is blue: 3 °C 👋.", "stop", extras=own(13, cache_n=1, prompt_n=3, predicted_n=9)),
    "limit": Choice(0, " is", "length", extras=own(5, cache_n=0, prompt_n=4, predicted_n=1)),
    "word": Choice(0, "one, two", "stop", matched_stop=", three", extras=own(9, cache_n=0, prompt_n=4, predicted_n=5)),
    "empty": Choice(0, "", "length", "none", extras=own(0, cache_n=0, prompt_n=0, predicted_n=0)),
    "unknown": Choice(
        0,
        "Still here.",
        "sunset",
        "sunset",
        extras=Extras(choice={"truncated": False, "tokens_cached": 7, "novelty": [1]}),
    ),
    "logprobs": Choice(0, "Oslo 👋", "stop", logprobs=LOGPROBS, extras=own(6, cache_n=0, prompt_n=4, predicted_n=2)),
}


@looped("name", ANSWERS)
def test_an_answer_becomes_one_choice(name: str) -> None:
    assert only(decoded(SENT, answer(name))) == ANSWERS[name]


def test_usage_tells_what_lay_in_the_cache() -> None:
    assert decoded(SENT, answer("text")).usage == Usage(4, 9, {"cached_tokens": 1})
    assert decoded(SENT, answer("unknown")).usage is None
    assert decoded(SENT, answer("text").replace(b'"cache_n":1,', b"")).usage == Usage(4, 9)


def test_several_prompts_are_answered_in_their_order_and_counted_together() -> None:
    whole = decoded(BATCH, answer("batch"))
    assert whole.choices == (
        Choice(0, " quick", "stop", extras=own(5, cache_n=1, prompt_n=2, predicted_n=2)),
        Choice(1, " each", "length", extras=own(3, cache_n=0, prompt_n=2, predicted_n=1)),
    )
    assert whole.usage == Usage(5, 3, {"cached_tokens": 1})


def test_the_stop_string_is_put_back_when_it_was_asked_for() -> None:
    kept = {STOP_STRING: True}
    sent = sent_for(text_request(stop=(", three",), **kept), TARGET)
    assert only(decoded(sent, answer("word"))).text == "one, two, three"
    assert text_of(streamed(sent, stream("word"))) == "one, two, three"
    assert only(decoded(sent, answer("text"))).text == " is blue: 3 °C 👋."


# Streams ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [BATCH, OF_TOKENS], ids=["texts", "tokens"])
def test_a_stream_of_several_ends_when_all_have_ended(sent: object) -> None:
    batch = BATCH if sent is BATCH else OF_TOKENS
    events = streamed(batch, stream("batch"))
    assert [chunk.index for chunk in chunks(events)] == [1, 0, 1, 0, 0]


def test_one_prompt_of_token_ids_is_one() -> None:
    sent = sent_for(replace(text_request(), prompt=TokenPrompt(((1, 2, 3),))), TARGET)
    assert text_of(streamed(sent, stream("text"))) == " is blue: 3 °C 👋."


def test_noise_changes_nothing() -> None:
    events = streamed(SENT, stream("noise"))
    extras = own(7, cache_n=0, prompt_n=4, predicted_n=3)
    end = Chunk(finish_reason="sunset", native_finish_reason="sunset", extras=extras)
    assert events == [Chunk(text="Still "), Chunk(text="here."), end]
    assert usage_in(events) is None


def test_what_follows_the_end_of_one_of_several_may_say_nothing() -> None:
    later = b'data: {"index":0,"content":"ck"'
    data = stream("batch").replace(later, b'data: {"index":1,"content":""}\n\n' + later)
    assert streamed(BATCH, data) == streamed(BATCH, stream("batch"))
    data = stream("batch").replace(later, b'data: {"index":1,"content":"!"}\n\n' + later)
    assert stream_failure(BATCH, data, expected=2)[1].failure.kind is FailureKind.MALFORMED
