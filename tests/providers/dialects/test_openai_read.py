"""The pieces of an answer: usage from every place, finish reasons, text, log probabilities that make no sense."""

from contextlib import suppress
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import ContentLogprobs, LegacyLogprobs, TokenLogprob, Usage
from providers.dialects.openai_read import (
    content_of,
    finish_reason,
    index_of,
    is_json,
    json_object,
    loaded,
    logprobs_of,
    matched_stop,
    message_of,
    parsed,
    reasoning_of,
    text_of,
    usage_of,
)
from providers.failure import FailureKind, UpstreamError
from providers.unified import JsonObject, JsonValue
from tests.faults.memory import growth
from tests.providers.dialects.openai_kit import decoded, sent

NAMES = (
    "choices message delta content text type tool_calls function name arguments id index logprobs tokens "
    "token_logprobs top_logprobs text_offset bytes token logprob finish_reason usage prompt_tokens "
    "completion_tokens total_tokens error x_groq refusal thinking stop_reason prompt_tokens_details"
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5),
    max_leaves=25,
)


@given(values)
def test_no_answer_raises_anything_but_an_upstream_error(value: JsonValue) -> None:
    finished: JsonObject = {"finish_reason": "stop", **value} if isinstance(value, dict) else {}
    bodies: list[JsonValue] = [value, {"choices": value}, {"choices": [value]}, {"choices": [finished]}]
    for body in bodies:
        with suppress(UpstreamError):
            assert decoded(sent(), body).choices


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ({}, None),
        ({"usage": None}, None),
        ({"usage": []}, None),
        ({"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}, None),
        ({"usage": {"prompt_tokens": "6"}}, None),
        ({"usage": {"prompt_tokens": 6, "completion_tokens": 2}}, Usage(6, 2)),
        ({"usage": {"prompt_tokens": 6, "total_tokens": 8}}, Usage(6, 2)),
        ({"usage": {"prompt_tokens": 6, "completion_tokens": 0, "total_tokens": 6}}, Usage(6, 0)),
        ({"x_groq": {"usage": {"prompt_tokens": 6, "completion_tokens": 2}}}, Usage(6, 2)),
        (
            {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "x_groq": {"usage": {"prompt_tokens": 9}}},
            Usage(1, 1),
        ),
        ({"choices": [{"usage": {"prompt_tokens": 6, "completion_tokens": 2}}]}, Usage(6, 2)),
        (
            {"usage": {"prompt_tokens": 6, "completion_tokens": 2, "cached_tokens": 3}},
            Usage(6, 2, {"cached_tokens": 3}),
        ),
        (
            {
                "usage": {
                    "prompt_tokens": 6,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": None, "a": -1},
                }
            },
            Usage(6, 2),
        ),
        # xAI: reasoning is in the total alone.
        (
            {
                "usage": {
                    "prompt_tokens": 6,
                    "completion_tokens": 2,
                    "total_tokens": 18,
                    "completion_tokens_details": {"reasoning_tokens": 10},
                }
            },
            Usage(6, 12, None, {"reasoning_tokens": 10}),
        ),
    ],
)
def test_usage_is_found_in_every_place_and_never_made_up(body: JsonObject, usage: Usage | None) -> None:
    assert usage_of(body) == usage


@pytest.mark.parametrize(
    ("raw", "calls", "expected"),
    [
        (None, False, (None, None)),
        ("", False, (None, None)),
        ("", True, ("tool_calls", None)),
        ("stop", False, ("stop", None)),
        ("stop", True, ("tool_calls", None)),
        ("eos", False, ("stop", "eos")),
        ("length", True, ("length", None)),
        ("model_length", False, ("length", "model_length")),
        ("sensitive", False, ("content_filter", "sensitive")),
        ("function_call", False, ("tool_calls", "function_call")),
        ("never seen", False, ("never seen", "never seen")),
    ],
)
def test_finish_reasons_are_ours_with_the_vendors_word_where_it_says_more(
    raw: JsonValue, calls: bool, expected: tuple[str | None, str | None]
) -> None:
    assert finish_reason(raw, calls) == expected


def test_text_is_found_in_delta_message_or_choice() -> None:
    for choice, found in (
        ({"delta": {"content": "a"}, "message": {"content": "b"}}, "a"),
        ({"delta": None, "message": {"content": "b"}}, "b"),
        ({"text": "c"}, "c"),
        ({"delta": {}, "text": "d"}, "d"),
        ({}, ""),
    ):
        raw = cast(JsonObject, choice)
        assert content_of(raw, message_of(raw)) == found
    assert text_of([{"type": "text", "text": "a"}, {"type": "image"}, "x", {"type": "text", "text": 1}]) == "ax"
    assert reasoning_of({"reasoning": "a"}) == reasoning_of({"reasoning_content": "a", "reasoning": "b"}) == "a"


def test_a_refusal_among_the_parts_of_a_message_is_its_text() -> None:
    assert text_of([{"type": "refusal", "refusal": "I cannot."}]) == "I cannot."


@pytest.mark.parametrize("content", [7, True, {"text": "abc"}, [7], [["a"]]])
def test_content_of_another_form_is_no_answer(content: JsonValue) -> None:
    with pytest.raises(UpstreamError) as caught:
        text_of(content)
    assert caught.value.failure.kind is FailureKind.MALFORMED


@pytest.mark.parametrize(("word", "reason"), [("STOP", "stop"), ("Length", "length"), ("SUNSET", "SUNSET")])
def test_known_finish_reasons_are_known_in_any_case(word: str, reason: str) -> None:
    assert finish_reason(word, tool_calls=False) == (reason, word)


def test_log_probabilities_that_say_nothing_are_none() -> None:
    nothing: list[JsonValue] = [None, {}, {"content": [], "refusal": None}, {"tokens": []}, True, "x", []]
    assert [logprobs_of(raw, "a") for raw in nothing] == [None] * len(nothing)


def test_what_json_cannot_say_of_a_log_probability_is_the_floor() -> None:
    assert logprobs_of({"content": [{"token": "a", "logprob": None}, 5]}, "") == ContentLogprobs(
        (TokenLogprob("a", -9999.0),)
    )
    assert logprobs_of({"refusal": [{"token": "a", "logprob": -1}]}, "") == ContentLogprobs(
        (), (TokenLogprob("a", -1.0),)
    )
    assert logprobs_of({"tokens": ["a"], "text_offset": [-1]}, "") == LegacyLogprobs(("a",), (), None, None)


def test_a_stop_that_matched_is_a_string_or_a_token() -> None:
    found = [matched_stop(cast(JsonObject, {"stop_reason": value})) for value in ("a", 5, True, None)]
    assert found == ["a", 5, None, None]
    assert matched_stop({"stop_reason": None, "matched_stop": "b"}) == "b"


def test_an_index_that_is_none_is_the_position() -> None:
    assert [index_of(cast(JsonObject, raw), 3) for raw in ({"index": 1}, {}, {"index": True})] == [1, 3, 3]


def test_blank_lines_around_a_body_are_ignored() -> None:
    assert json_object(b"\n\r\n" + orjson.dumps({"a": 1}) + b"\n") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'"h\xffi"', "h\ufffdi"),
        (b'"\xe2\x82"', "\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b'"h\xc3\xa9"', "h\u00e9"),
        (b"[1]", [1]),
    ],
)
def test_what_is_no_utf8_is_replaced_and_nothing_else(text: bytes, value: JsonValue) -> None:
    assert parsed(text) == value
    assert is_json(text)


@pytest.mark.parametrize("text", [b"", b"\xff", b'"h', b'{"a":\xff}', b'"\xff', b'"\\ud800"'])
def test_replacing_makes_no_json_of_what_is_none(text: bytes) -> None:
    assert not is_json(text)


@pytest.mark.parametrize("piece", [b"{},", b"[],", b'{"a":1},', b'"ab",'])
def test_a_text_whose_values_would_take_many_times_its_size_is_not_read(piece: bytes) -> None:
    text = b'{"choices":[' + piece * (31 * 2**20 // len(piece)) + b"0]}"
    with growth() as grown, pytest.raises(UpstreamError) as caught:
        loaded(text)
    assert caught.value.failure.kind is FailureKind.MALFORMED
    assert grown.bytes < 8 * 2**20


def test_the_log_probabilities_of_a_long_answer_are_read() -> None:
    other = b'{"token":" the","logprob":-0.0123,"bytes":[32,116,104,101]}'
    token = b'{"token":" the","logprob":-0.0123,"top_logprobs":[' + b",".join([other] * 20) + b"]}"
    assert loaded(b'{"content":[' + b",".join([token] * 12_000) + b"]}")
