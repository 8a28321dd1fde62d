"""Log probabilities in every shape, and invalid ones."""

from providers.completion import ContentLogprobs, LegacyLogprobs, TokenLogprob
from providers.dialects.shared.read_logprobs import logprobs_of
from providers.json_types import JsonValue


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
