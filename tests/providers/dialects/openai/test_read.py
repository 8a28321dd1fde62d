"""The parts of a response: usage from every field, finish reasons, text, and invalid log probabilities."""

from contextlib import suppress
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.dialects.openai.read import (
    content_of,
    finish_reason,
    lift_fields,
    matched_stop,
    message_of,
    only_end_of,
    reasoning_of,
    usage_of,
)
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from tests.providers.dialects.openai.kit import decoded, sent
from tests.support.looped import looped

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
            assert decoded(sent("openai_compatible"), body).choices


@looped(
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
        ({"usage": {"prompt_tokens": 10**15, "completion_tokens": 2, "total_tokens": 8}}, None),
        ({"usage": {"prompt_tokens": 6, "completion_tokens": 10**15, "total_tokens": 8}}, Usage(6, 2)),
        (
            {"usage": {"prompt_tokens": 6, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}}},
            Usage(6, 2),
        ),
        # xAI counts reasoning only in the total.
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
        (
            {"usage": {"prompt_tokens": 6, "completion_tokens": 2, "num_search_queries": 3}},
            Usage(6, 2, None, {"web_search_requests": 3}, extra={"num_search_queries": 3}),
        ),
    ],
)
def test_usage_is_read_and_never_made_up(body: JsonObject, usage: Usage | None) -> None:
    assert usage_of(body) == usage


COUNTS: JsonObject = {"prompt_tokens": 6, "completion_tokens": 2}
OTHER: JsonObject = {"prompt_tokens": 1, "completion_tokens": 1}


@looped(
    ("row", "body", "usage"),
    [
        ("groq", {"x_groq": {"usage": COUNTS}}, COUNTS),
        ("groq", {"usage": OTHER, "x_groq": {"usage": COUNTS}}, OTHER),
        ("groq", {"x_groq": 1}, None),
        ("groq", {"choices": [{"usage": COUNTS}]}, None),
        ("moonshot", {"choices": [{"usage": COUNTS}]}, COUNTS),
        ("moonshot", {"usage": OTHER, "choices": [{"usage": COUNTS}]}, OTHER),
        ("moonshot", {"choices": [1]}, None),
        ("moonshot", {"x_groq": {"usage": COUNTS}}, None),
        ("openai_compatible", {"x_groq": {"usage": COUNTS}}, COUNTS),
        ("openai_compatible", {"choices": [{"usage": COUNTS}]}, COUNTS),
        ("openai", {"x_groq": {"usage": COUNTS}, "choices": [{"usage": COUNTS}]}, None),
    ],
)
def test_usage_is_lifted_from_the_places_that_a_profile_names(
    row: str, body: JsonObject, usage: JsonObject | None
) -> None:
    assert lift_fields(load_profiles()[row], body).get("usage") == usage


def test_an_error_is_lifted_from_the_vendors_own_member() -> None:
    assert lift_fields(load_profiles()["groq"], {"x_groq": {"error": "x"}})["error"] == "x"


@looped(
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
        ({"text": "e", "content": "a member of the vendor's own"}, "e"),
        ({"text": "", "content": "f"}, "f"),
        ({}, ""),
    ):
        raw = cast(JsonObject, choice)
        assert content_of(raw, message_of(raw)) == found
    assert reasoning_of({"reasoning": "a"}) == reasoning_of({"reasoning_content": "a", "reasoning": "b"}) == "a"


def test_a_stop_that_matched_is_a_string_or_a_token() -> None:
    found = [matched_stop(cast(JsonObject, {"stop_reason": value})) for value in ("a", 5, True, None)]
    assert found == ["a", 5, None, None]
    assert matched_stop({"stop_reason": None, "matched_stop": "b"}) == "b"


def test_only_the_usual_end_of_a_choice_is_known_to_be_nothing_else() -> None:
    usual: JsonObject = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert only_end_of(usual) == only_end_of({"delta": {}, "finish_reason": "stop"}) == "stop"
    assert only_end_of({**usual, "finish_reason": "length"}) == "length"
    others: list[JsonObject] = [{"finish_reason": None}, {"finish_reason": "STOP"}, {"delta": {"content": ""}}]
    others += [{"delta": None}, {"logprobs": {}}, {"text": ""}, {"stop_reason": None}]
    assert {only_end_of({**usual, **other}) for other in others} == {""}


@looped(("word", "reason"), [("STOP", "stop"), ("Length", "length"), ("SUNSET", "SUNSET")])
def test_known_finish_reasons_are_known_in_any_case(word: str, reason: str) -> None:
    assert finish_reason(word, tool_calls=False) == (reason, word)
