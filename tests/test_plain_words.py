"""The wording of the project: the number of habits that make a sentence hard to read may only fall."""

from collections.abc import Mapping
from typing import Final

import pytest

from tests.support.plain_words import HABITS, ROOT, counts_in, findings_in, prose_of

SOURCE: Final = ("config", "providers", "proxy")

MOST_IN_SOURCE: Final[Mapping[str, int]] = {
    "what, as a noun": 1837,
    "answer, for response": 1007,
    "where, for if": 923,
    "none, in place of no or None": 859,
    "table, for configuration": 587,
    "those, that of": 546,
    "see, alone": 418,
    "member, for field": 392,
    "place, for slot": 302,
    "thinking, for reasoning": 268,
    "whoever, nobody, somebody": 265,
    "piece, for chunk": 265,
    "tell, for report or return": 220,
    "kept, for cached or stored": 170,
    "phrases of our own": 145,
    "ask, for call": 119,
    "no more, any more": 78,
    "turn, for iteration": 18,
}
MOST_IN_TESTS: Final[Mapping[str, int]] = {
    "what, as a noun": 1456,
    "answer, for response": 746,
    "where, for if": 283,
    "whoever, nobody, somebody": 256,
    "table, for configuration": 214,
    "those, that of": 204,
    "none, in place of no or None": 191,
    "tell, for report or return": 184,
    "ask, for call": 145,
    "piece, for chunk": 122,
    "member, for field": 113,
    "place, for slot": 82,
    "phrases of our own": 69,
    "thinking, for reasoning": 69,
    "kept, for cached or stored": 43,
    "see, alone": 17,
    "no more, any more": 17,
    "turn, for iteration": 5,
}
"""Ratchets: these numbers only fall."""


@pytest.mark.parametrize(("folders", "most"), [(SOURCE, MOST_IN_SOURCE), (("tests",), MOST_IN_TESTS)])
def test_habits_that_make_sentences_hard_to_read_become_fewer(
    folders: tuple[str, ...], most: Mapping[str, int]
) -> None:
    counts = counts_in(*folders)
    more = {habit: (counts[habit], most[habit]) for habit in HABITS if counts[habit] > most[habit]}
    assert not more, f"more than before, (now, most): {more}; `python -m tests.support.plain_words` lists them"


def test_docstrings_texts_of_constants_and_comments_are_read_and_code_is_not() -> None:
    source = '"""A module."""\nwhat = "what"  # A comment.\n"""A text\nof two lines."""\n'
    assert list(prose_of(source)) == [(1, "A module."), (3, "A text"), (4, "of two lines."), (2, "A comment.")]


def test_a_habit_is_found_on_its_line_but_not_in_code_words() -> None:
    path = ROOT / "tests" / "support" / "plain_words.py"
    assert all(str(each).startswith("tests/support/plain_words.py:") for each in findings_in(path))
    assert HABITS["none, in place of no or None"].search("The key, none if there is no key.")
    assert not HABITS["none, in place of no or None"].search("`None` if there is no key.")
