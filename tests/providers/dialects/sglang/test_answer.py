"""Responses of SGLang's own endpoint, streaming and not, from servers that repeat the text so far and from others."""

import json
from dataclasses import replace

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Chunk,
    ContentLogprobs,
    Extras,
    LegacyLogprobs,
    StreamEvent,
    TokenLogprob,
    Usage,
)
from providers.dialects.sglang.repeated_parts import RepeatedParts
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.unified_request import LogprobsWanted, TextPrompt
from tests.providers.dialects.kit import (
    chunks,
    decode_failure,
    decoded,
    gathered,
    only,
    reader,
    sent_for,
    streamed,
    target_of,
    text_of,
    text_request,
    token_request,
    usage_in,
)
from tests.support.looped import looped

answer = reader("sglang", "answers", "json")
stream = reader("sglang", "streams", "sse")

TARGET = target_of("sglang_native")
WANTED = {"logprobs": LogprobsWanted(2, "legacy")}
SENT = sent_for(text_request("The sky"), TARGET)
SCORED = sent_for(text_request("The sky", **WANTED), TARGET)
ECHO = sent_for(text_request("The sky", echo=True, **WANTED), TARGET)
BATCH = sent_for(replace(text_request(n=2), prompt=TextPrompt(("a", "b"))), TARGET)
LOGPROBS = ContentLogprobs(
    (
        TokenLogprob("Oslo", -0.25, None, (TokenLogprob("Oslo", -0.25), TokenLogprob("Rome", -2.5))),
        TokenLogprob(" 👋", -0.5, None, (TokenLogprob(" 👋", -0.5),)),
    )
)
ECHOED = LegacyLogprobs(
    ("The", " sky", " is"), (-3.5, -1.25, -0.5), ({"A": -2.0, "The": -3.5}, {" sky": -1.25}, {" is": -0.5}), (0, 3, 7)
)
ANSWERS = {
    "text": Choice(0, " Paris: 3 °C 👋.", "stop", matched_stop=128009, extras=Extras(choice={"e2e_latency": 0.1})),
    "length": Choice(0, " It is", "length"),
    "stop": Choice(0, "one, two", "stop", matched_stop=", three"),
    "empty": Choice(0, "", "length"),
    "unknown": Choice(0, "Still here.", "sunset", "sunset"),
    "reasoning": Choice(0, "Oslo.", "stop", matched_stop=2),
    "logprobs": Choice(0, "Oslo 👋", "stop", matched_stop=2),
}


@looped("name", ANSWERS)
def test_an_answer_becomes_one_choice(name: str) -> None:
    assert only(decoded(SENT, answer(name))) == ANSWERS[name]


def test_usage_tells_what_lay_in_the_cache_and_what_was_reasoning() -> None:
    assert decoded(SENT, answer("text")).usage == Usage(5, 6, {"cached_tokens": 4})
    assert decoded(SENT, answer("reasoning")).usage == Usage(5, 9, {"cached_tokens": 0}, {"reasoning_tokens": 6})
    assert decoded(SENT, answer("unknown")).usage is None


def test_several_prompts_come_in_their_order_and_each_is_counted_once() -> None:
    whole = decoded(BATCH, answer("batch"))
    assert [(choice.index, choice.text) for choice in whole.choices] == [
        (0, " a1"),
        (1, " a2"),
        (2, " b1."),
        (3, " b2"),
    ]
    assert whole.usage == Usage(7, 5, {"cached_tokens": 2})


def test_log_probabilities_come_only_where_they_are_wanted() -> None:
    assert only(decoded(SENT, answer("logprobs"))).logprobs is None
    assert only(decoded(SCORED, answer("logprobs"))).logprobs == LOGPROBS


def test_a_prompt_comes_with_its_log_probabilities_and_without_the_mark_before_it() -> None:
    choice = only(decoded(ECHO, answer("echo")))
    assert (choice.text, choice.logprobs) == ("The sky is", ECHOED)


def test_the_text_of_a_prompt_in_token_ids_is_that_of_its_tokens() -> None:
    sent = sent_for(token_request(1, 450, 7256, echo=True, **WANTED), TARGET)
    choice = only(decoded(sent, answer("echo")))
    assert choice.text == "<s>The sky is"
    assert isinstance(choice.logprobs, LegacyLogprobs)
    assert choice.logprobs.token_logprobs == (None, -3.5, -1.25, -0.5)
    assert gathered(streamed(sent, stream("echo"))) == decoded(sent, answer("echo"))


def test_a_log_probability_that_is_no_triple_is_malformed() -> None:
    assert decode_failure(SCORED, answer("logprobs").replace(b'[-0.25,10,"Oslo"],[-0.5', b"7,[-0.5", 1)) is (
        FailureKind.MALFORMED
    )


@looped(
    ("body", "kind"),
    [
        (b'{"text":"","meta_info":{"finish_reason":{"type":"abort","message":"x","status_code":503}}}', "overloaded"),
        (b'{"text":"","meta_info":{"finish_reason":{"type":"abort","message":"x"}}}', "server"),
        (b'{"error": {"message": "The request queue is full.", "code": 503}}', "overloaded"),
    ],
)
def test_an_error_in_disguise_is_that_error(body: bytes, kind: str) -> None:
    assert decode_failure(SENT, body).value == kind


# Streams ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["text", "logprobs"])
def test_a_server_that_sends_only_what_is_new_says_the_same(name: str) -> None:
    assert gathered(streamed(SCORED, stream(f"{name}_incremental"))) == decoded(SCORED, answer(name))


def test_the_same_words_again_are_new_where_the_counts_say_so() -> None:
    events = streamed(SENT, stream("repeated_incremental"))
    assert text_of(events) == " ha ha ha ha"
    assert usage_in(events) == Usage(5, 4, {"cached_tokens": 0})


def test_what_has_come_is_not_said_again_and_half_a_character_waits() -> None:
    assert [chunk.text for chunk in chunks(streamed(SENT, stream("text")))] == [" Paris", ": 3 °C", " ", "👋."]


def test_the_prompt_comes_first() -> None:
    events = streamed(ECHO, stream("echo"))
    assert [chunk.text for chunk in chunks(events)] == ["The sky", " is"]
    assert gathered(events) == decoded(ECHO, answer("echo"))


def test_a_stream_of_several_counts_when_all_have_ended() -> None:
    events = streamed(BATCH, stream("batch"))
    assert sum(isinstance(event, Usage) for event in events) == 1


def test_noise_changes_nothing() -> None:
    events = streamed(SENT, stream("noise"))
    assert events == [Chunk(text="Still "), Chunk(text="here.", finish_reason="sunset", native_finish_reason="sunset")]
    assert usage_in(events) is None


def event(text: str, ids: list[int], count: int, last: bool) -> bytes:
    meta: JsonObject = {"finish_reason": {"type": "stop"} if last else None, "completion_tokens": count}
    return b"data: %b\n\n" % orjson.dumps({"text": text, "output_ids": [*ids], "meta_info": meta})


@given(st.lists(st.lists(st.sampled_from(["a", "aa", "", "é", "\n"]), min_size=1, max_size=3), min_size=1, max_size=6))
def test_both_kinds_of_server_give_the_text_that_they_made(events: list[list[str]]) -> None:
    repeating, fresh = b"", b""
    text, count = "", 0
    for place, tokens in enumerate(events):
        piece = "".join(tokens)
        text, count = text + piece, count + len(tokens)
        last = place == len(events) - 1
        repeating += event(text, list(range(count)), count, last)
        fresh += event(piece, list(range(len(tokens))), count, last)
    for data in (repeating, fresh):
        assert text_of(streamed(SENT, data + b"data: [DONE]\n\n")) == text


_SAID = st.sampled_from(["a", "aa", "", "\ufffd", "é", "\n", '"', "\ud83d", "👋"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["on", "again", "new", "uncounted"]), st.integers(0, 3), _SAID, st.integers(0, 2)),
        min_size=1,
        max_size=8,
    )
)
@example([("on", 1, "x", 1), ("on", 0, "ab", 2), ("again", 1, "abc", 2)])
@example([("on", 1, "a", 0), ("on", 1, "a", 1), ("again", 1, "a", 0), ("on", 1, "a", 0)])
def test_an_event_means_the_same_whatever_came_before_it(events: list[tuple[str, int, str, int]]) -> None:
    texts, counts, said = [""] * 4, [0] * 4, b""
    for how, index, piece, tokens in events:
        texts[index] = texts[index] * (how != "again") + piece
        counts[index] += tokens
        shown, ids = (piece, tokens) if how == "new" else (texts[index], counts[index])
        meta = {"finish_reason": None} | ({} if how == "uncounted" else {"completion_tokens": counts[index]})
        shown_ids = list(range(ids))
        data = {"text": shown, "output_ids": shown_ids, "meta_info": meta, "index": index}
        said += b"data: %b\n\n" % json.dumps(data, separators=(",", ":")).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RepeatedParts, "without", lambda parts, event: event)
        expected = broken_off(said)
    assert broken_off(said) == expected


def broken_off(data: bytes) -> list[StreamEvent]:
    """Return the events of a stream of four choices that has not ended."""
    return list(BATCH.target.dialect.stream(BATCH).feed(data))
