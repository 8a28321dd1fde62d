"""The requests of a process to the coordinator, and its use of the responses."""

import pytest

from proxy.shared_state.lease import (
    ENTRY_WORDS,
    MAX_ENTRIES,
    LeaseGrant,
    RateRequest,
    SlotsRequest,
    SpendingRequest,
    decode_reply,
    decode_requests,
    encode_reply,
    encode_requests,
)
from tests.support.looped import looped

ASKS = (
    RateRequest("a", 2.5, 10, 4, 1, -2, 0.5, 6.0, 7, -30, 99, 8, 3, 0.25, 0.5, 0.125),
    SlotsRequest("b", 8, 2, 1),
    SpendingRequest("c", 77, 500, 900, 20, 30, 10, 7),
)
GOOD = [
    *(b"4", b"6", b"0.5", b"2", b"99", b"0", b"0", b"0"),
    *(b"1", b"3", b"1", b"1", b"0", b"0", b"0", b"0"),
    *(b"10", b"12", b"1", b"3", b"0", b"44", b"5", b"6"),
]
REST = [LeaseGrant(1, 3.0, 1.0, 1), LeaseGrant(10, 12.0, 1.0, 3, 0, 44.0, 5.0, 6.0)]
"""The responses to the last two entries."""


def test_every_entry_is_as_wide_as_the_next() -> None:
    words = encode_requests(ASKS)
    assert len(words) == ENTRY_WORDS * len(ASKS)
    numbers = ["2.5", "10", "4", "1", "-2", "0.5", "6.0", "7", "-30", "99", "8", "3", "0.25", "0.5", "0.125"]
    assert words[:ENTRY_WORDS] == ["r", *numbers]
    assert [words[ENTRY_WORDS], words[2 * ENTRY_WORDS]] == ["c", "s"]


def test_an_answer_is_read_for_each_entry() -> None:
    grants = decode_reply(GOOD, ASKS)
    assert grants == [LeaseGrant(4, 6.0, 0.5, 2, 99), *REST]


@looped("reply", [None, b"4", [], GOOD[:-1], {"a": 1}, [*GOOD, b"1"]])
def test_an_answer_of_another_form_is_none(reply: object) -> None:
    with pytest.raises(ConnectionError):
        decode_reply(reply, ASKS)


@looped(
    ("place", "word"),
    [
        *((0, word) for word in (b"5", b"-1", b"1.5", b"nan", b"inf", 4, None, b"9" * 40)),
        *((1, word) for word in (b"nan", b"-inf", b"x")),
        *((2, word) for word in (b"1.5", b"-0.1")),
        *((3, word) for word in (b"0", b"1e9", [b"1"])),
        *((4, word) for word in (b"-1", b"nan", None)),
        *((place, word) for place in (5, 6, 7) for word in (b"-1", b"inf", 7)),
    ],
)
def test_a_number_that_cannot_be_takes_its_entry_out_and_no_other(place: int, word: object) -> None:
    reply: list[object] = list(GOOD)
    reply[place] = word
    assert decode_reply(reply, ASKS) == [None, *REST]


def test_who_counts_without_redis_reads_the_same_words_and_writes_the_same_answers() -> None:
    assert decode_requests([ask.key for ask in ASKS], encode_requests(ASKS)) == list(ASKS)
    grants = [LeaseGrant(4, 6.5, 1 / 3, 2, 17), LeaseGrant(0, -3.0, 1.0, 1)]
    assert decode_reply(encode_reply(grants), ASKS[:2]) == grants


@looped(
    ("keys", "words"),
    [
        (["a"], ["r"]),
        (["a"], ["x", *"12345678901"]),
        (["a"], ["r", "x", *"2345678901"]),
        (["a"] * (MAX_ENTRIES + 1), ["s", *"00000000000"] * (MAX_ENTRIES + 1)),
    ],
)
def test_words_that_are_no_entries_are_a_value_error(keys: list[str], words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"entr|float"):
        decode_requests(keys, words)
