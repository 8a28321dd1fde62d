"""Sets of characters: order, surrogates, and the complement."""

import re
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from providers.constraints.regex_chars import (
    ANY,
    BEYOND_ASCII,
    OTHER_DIGITS,
    OTHER_SPACES,
    complement,
    merge_ranges,
    ranges_of,
)

POINTS = st.integers(0, 0x10FFFF)
RANGES = st.lists(st.tuples(POINTS, POINTS).map(lambda pair: (min(pair), max(pair))), max_size=5)


def holds(ranges: object, point: int) -> bool:
    assert isinstance(ranges, tuple | list)
    return any(low <= point <= high for low, high in ranges)


def test_ranges_that_touch_become_one() -> None:
    assert merge_ranges([(3, 4), (1, 2), (9, 9), (2, 3)]) == ((1, 4), (9, 9))
    assert ranges_of("cabz") == ((97, 99), (122, 122))


def test_surrogates_are_no_characters() -> None:
    assert merge_ranges([(0, 0x10FFFF)]) == ANY
    assert merge_ranges([(0xD800, 0xDFFF)]) == ()
    assert complement([(0, 0x7F)]) == BEYOND_ASCII
    assert complement([]) == ANY
    assert complement(ANY) == ()


@given(RANGES, POINTS)
def test_every_character_is_in_a_set_or_in_its_complement(ranges: list[tuple[int, int]], point: int) -> None:
    inside, outside = merge_ranges(ranges), complement(ranges)
    assert holds(inside, point) == (holds(ranges, point) and holds(ANY, point))
    assert holds(outside, point) == (not holds(ranges, point) and holds(ANY, point))
    assert list(inside) == sorted(inside)
    assert len(merge_ranges(inside)) == len(inside)


BEYOND = "".join(map(chr, [*range(0x80, 0xD800), *range(0xE000, sys.maxunicode + 1)]))


def test_the_other_digits_are_those_that_python_knows() -> None:
    listed = {chr(point) for low, high in OTHER_DIGITS for point in range(low, high + 1)}
    known = {char for char in BEYOND if char.isdecimal()}
    # Unicode adds some from time to time.
    assert known - listed == set() or unicodedata.unidata_version > "15.1"
    assert {char for char in listed - known if unicodedata.category(char) != "Cn"} == set()


def test_the_other_spaces_are_those_that_python_knows_and_the_byte_order_mark() -> None:
    listed = {chr(point) for low, high in OTHER_SPACES for point in range(low, high + 1)}
    assert listed == {*re.findall(r"\s", BEYOND), *"\x1c\x1d\x1e\x1f\ufeff"}
