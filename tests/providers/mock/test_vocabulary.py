"""The mock's tokens, sentences and numbers."""

import re
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from providers.mock.vocabulary import Draw, alternatives, sentences, tokenize, word


@given(st.text())
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokenize(text)) == text


def test_a_token_is_a_word_or_a_mark_with_the_space_before_it() -> None:
    assert tokenize("Say hi, please!\n") == ["Say", " hi", ",", " please", "!", "\n"]


def test_a_long_word_is_several_tokens() -> None:
    assert tokenize("x" * 30) == ["x" * 12, "x" * 12, "x" * 6]


def test_the_same_key_draws_the_same_numbers_and_another_key_others() -> None:
    first, again, other = Draw("a", 1), Draw("a", 1), Draw("a", 2)
    numbers = [first.below(1000) for _ in range(8)]
    assert numbers == [again.below(1000) for _ in range(8)]
    assert numbers != [other.below(1000) for _ in range(8)]


@given(st.text(max_size=5), st.integers(1, 10**6))
def test_a_number_stays_below_its_limit(key: str, limit: int) -> None:
    assert 0 <= Draw(key).below(limit) < limit


def test_sentences_look_like_sentences_and_vary() -> None:
    made = list(islice(sentences(Draw("demo")), 20))
    assert len(set(made)) > 15
    assert all(re.fullmatch(r"[A-Z][a-z ]+\.", sentence) for sentence in made)


def test_every_token_id_has_a_text() -> None:
    assert word(3) == word(3)
    assert re.fullmatch(r" \w+", word(10**9))


@given(st.integers(0, 10**6), st.integers(0, 20))
def test_alternatives_are_different_from_each_other_and_from_the_token(start: int, count: int) -> None:
    token = word(start)
    others = alternatives(start, token, count)
    assert len(set(others)) == len(others) == count
    assert token not in others
