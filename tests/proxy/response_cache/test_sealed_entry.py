"""Entries that open only unchanged, under their own key, with the secret."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.response_cache.packed_response import AHEAD, age_at, open_sealed, seal

SECRET, KEY, OTHER = b"s" * 32, "ab" * 24, "cd" * 24


@settings(max_examples=30)
@given(st.binary(max_size=200), st.floats(min_value=0, max_value=1e10))
def test_an_entry_opens_as_it_was_sealed(data: bytes, made: float) -> None:
    assert open_sealed(SECRET, KEY, seal(SECRET, KEY, made, data), 200) == (made, data)


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_what_nobody_sealed_does_not_open(entry: bytes) -> None:
    assert open_sealed(SECRET, KEY, entry, 200) is None


@settings(max_examples=30)
@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_one_changed_byte_keeps_it_shut(place: int, change: int) -> None:
    entry = bytearray(seal(SECRET, KEY, 1.0, b"an answer"))
    entry[place % len(entry)] ^= change
    assert open_sealed(SECRET, KEY, bytes(entry), 200) is None


def test_another_key_secret_or_size_keeps_it_shut() -> None:
    entry = seal(SECRET, KEY, 1.0, b"an answer")
    assert open_sealed(SECRET, OTHER, entry, 200) is None
    assert open_sealed(b"t" * 32, KEY, entry, 200) is None
    assert open_sealed(SECRET, KEY, entry, 8) is None
    assert open_sealed(SECRET, KEY, entry[:-1], 200) is None


def test_an_entry_of_the_future_is_too_old() -> None:
    assert age_at(100.0, 130.0) == 30.0
    assert age_at(100.0 + AHEAD, 100.0) == 0.0
    assert age_at(101.0 + AHEAD, 100.0) == math.inf
