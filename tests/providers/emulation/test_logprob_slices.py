"""Log probabilities split between tokens and joined again, in either form."""

from hypothesis import given
from hypothesis import strategies as st

from providers.completion import ContentLogprobs, LegacyLogprobs, TokenLogprob
from providers.emulation.logprob_slices import join_logprobs, slice_logprobs, text_of_tokens

A, B, C = (TokenLogprob(text, -1.0, tuple(text.encode())) for text in "abc")
ARRAYS = LegacyLogprobs(("a", "b", "c"), (None, -1.0, -2.0), (None, {"b": -1.0}, {"c": -2.0}), (0, 1, 2))


@given(st.integers(0, 3))
def test_what_was_split_is_joined_to_the_same(count: int) -> None:
    for whole in (ContentLogprobs((A, B), (C,)), ARRAYS, LegacyLogprobs(("a", "b"), (-1.0, -2.0), None, None)):
        assert join_logprobs([slice_logprobs(whole, 0, count), slice_logprobs(whole, count)]) == whole


def test_a_split_falls_between_two_tokens_of_each_array() -> None:
    head, tail = slice_logprobs(ARRAYS, 0, 1), slice_logprobs(ARRAYS, 1)
    assert head == LegacyLogprobs(("a",), (None,), (None,), (0,))
    assert tail == LegacyLogprobs(("b", "c"), (-1.0, -2.0), ({"b": -1.0}, {"c": -2.0}), (1, 2))


def test_the_tokens_of_a_refusal_stay_with_the_rest() -> None:
    whole = ContentLogprobs((A, B), (C,))
    assert (slice_logprobs(whole, 0, 1), slice_logprobs(whole, 1)) == (
        ContentLogprobs((A,)),
        ContentLogprobs((B,), (C,)),
    )


def test_nothing_joined_is_nothing_and_one_piece_is_itself() -> None:
    assert join_logprobs([]) is None
    assert join_logprobs([ARRAYS]) is ARRAYS


def test_offsets_need_every_piece_and_alternatives_only_one() -> None:
    with_both = LegacyLogprobs(("a",), (-1.0,), ({"a": -1.0},), (0,))
    with_neither = LegacyLogprobs(("b",), (-2.0,), None, None)
    assert join_logprobs([with_both, with_neither]) == LegacyLogprobs(
        ("a", "b"), (-1.0, -2.0), ({"a": -1.0}, None), None
    )
    assert join_logprobs([with_neither, with_neither]) == LegacyLogprobs(("b", "b"), (-2.0, -2.0), None, None)


def test_a_short_array_does_not_pull_the_next_pieces_values_to_other_tokens() -> None:
    short = LegacyLogprobs(("a", "b"), (-1.0,), ({"a": -1.0},), None)
    long = LegacyLogprobs(("c",), (-3.0, -9.0), ({"c": -3.0}, {"x": -9.0}), None)
    assert join_logprobs([short, long]) == LegacyLogprobs(
        ("a", "b", "c"), (-1.0, None, -3.0), ({"a": -1.0}, None, {"c": -3.0}), None
    )


def test_pieces_of_both_forms_become_a_list() -> None:
    arrays = LegacyLogprobs(("a",), (-1.0,), None, None)
    assert join_logprobs([arrays, ContentLogprobs((B,), (C,))]) == ContentLogprobs((A, B), (C,))


def test_tokens_spell_their_text_across_halved_characters() -> None:
    halves = (TokenLogprob("\\xc3", -1.0, (0xC3,)), TokenLogprob("\\xa9", -1.0, (0xA9,)))
    assert text_of_tokens(ContentLogprobs((A, *halves), (C,))) == "aé"
    assert text_of_tokens(ContentLogprobs((A, halves[0]))) == "a\ufffd"
    assert text_of_tokens(ARRAYS) == "abc"
