"""Sets of characters: order, surrogates, and the complement."""

from hypothesis import given
from hypothesis import strategies as st

from providers.regex_chars import ANY, BEYOND_ASCII, complement, merged, of

POINTS = st.integers(0, 0x10FFFF)
RANGES = st.lists(st.tuples(POINTS, POINTS).map(lambda pair: (min(pair), max(pair))), max_size=5)


def holds(ranges: object, point: int) -> bool:
    assert isinstance(ranges, tuple | list)
    return any(low <= point <= high for low, high in ranges)


def test_ranges_that_touch_become_one() -> None:
    assert merged([(3, 4), (1, 2), (9, 9), (2, 3)]) == ((1, 4), (9, 9))
    assert of("cabz") == ((97, 99), (122, 122))


def test_surrogates_are_no_characters() -> None:
    assert merged([(0, 0x10FFFF)]) == ANY
    assert merged([(0xD800, 0xDFFF)]) == ()
    assert complement([(0, 0x7F)]) == BEYOND_ASCII
    assert complement([]) == ANY
    assert complement(ANY) == ()


@given(RANGES, POINTS)
def test_every_character_is_in_a_set_or_in_its_complement(ranges: list[tuple[int, int]], point: int) -> None:
    inside, outside = merged(ranges), complement(ranges)
    assert holds(inside, point) == (holds(ranges, point) and holds(ANY, point))
    assert holds(outside, point) == (not holds(ranges, point) and holds(ANY, point))
    assert list(inside) == sorted(inside)
    assert len(merged(inside)) == len(inside)
