"""The wording of the project: the number of habits that make a sentence hard to read may only fall."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.plain_words import (
    HABITS,
    ROOT,
    counts_in,
    documents,
    files_of,
    findings_in,
    prose_of,
    prose_of_document,
)

MOST_IN_SOURCE: Final[Mapping[str, int]] = {
    "what, as a noun": 5,
    "answer, for response": 13,
    "where, for if": 1,
    "none, in place of no or None": 101,
    "table, for configuration": 29,
    "those, that of": 1,
    "see, alone": 0,
    "member, for field": 66,
    "place, for slot": 46,
    "thinking, for reasoning": 63,
    "whoever, nobody, somebody": 1,
    "piece, for chunk": 0,
    "tell, for report or return": 1,
    "kept, for cached or stored": 2,
    "phrases of our own": 12,
    "ask, for call": 3,
    "no more, any more": 9,
    "turn, for iteration": 0,
}
MOST_IN_TESTS: Final[Mapping[str, int]] = {
    "what, as a noun": 6,
    "answer, for response": 11,
    "where, for if": 10,
    "whoever, nobody, somebody": 9,
    "table, for configuration": 33,
    "those, that of": 3,
    "none, in place of no or None": 66,
    "tell, for report or return": 1,
    "ask, for call": 3,
    "piece, for chunk": 2,
    "member, for field": 5,
    "place, for slot": 27,
    "phrases of our own": 6,
    "thinking, for reasoning": 19,
    "kept, for cached or stored": 1,
    "see, alone": 0,
    "no more, any more": 1,
    "turn, for iteration": 0,
}
MOST_IN_DOCUMENTS: Final[Mapping[str, int]] = {
    "what, as a noun": 70,
    "where, for if": 38,
    "none, in place of no or None": 166,
    "tell, for report or return": 3,
    "whoever, nobody, somebody": 2,
    "those, that of": 19,
    "ask, for call": 7,
    "kept, for cached or stored": 4,
    "answer, for response": 14,
    "piece, for chunk": 0,
    "member, for field": 2,
    "table, for configuration": 24,
    "place, for slot": 20,
    "turn, for iteration": 0,
    "thinking, for reasoning": 4,
    "phrases of our own": 8,
    "no more, any more": 11,
    "see, alone": 0,
}
"""Ratchets: these numbers only fall."""


@pytest.mark.parametrize(
    ("paths", "most"),
    [
        (files_of("config", "providers", "proxy"), MOST_IN_SOURCE),
        (files_of("tests"), MOST_IN_TESTS),
        (documents(), MOST_IN_DOCUMENTS),
    ],
    ids=["source", "tests", "documents"],
)
def test_habits_that_make_sentences_hard_to_read_become_fewer(paths: Sequence[Path], most: Mapping[str, int]) -> None:
    counts = counts_in(paths)
    more = {habit: (counts[habit], most[habit]) for habit in HABITS if counts[habit] > most[habit]}
    assert not more, f"more than before, (now, most): {more}; `python -m tests.support.plain_words` lists them"


def test_docstrings_texts_of_constants_and_comments_are_read_and_code_is_not() -> None:
    source = '"""A module."""\nwhat = "what"  # A comment.\n"""A text\nof two lines."""\n'
    assert list(prose_of(source)) == [(1, "A module."), (3, "A text"), (4, "of two lines."), (2, "A comment.")]


def test_the_code_of_documents_is_not_read() -> None:
    assert [*prose_of_document("One.\n```sh\nwhat\n```\n  two\n")] == [(1, "One."), (5, "two")]


def test_a_habit_is_found_on_its_line_but_not_in_code_words() -> None:
    path = ROOT / "tests" / "support" / "plain_words.py"
    assert all(str(each).startswith("tests/support/plain_words.py:") for each in findings_in(path))
    assert HABITS["none, in place of no or None"].search("The key, none if there is no key.")
    assert not HABITS["none, in place of no or None"].search("`None` if there is no key.")
