"""Sets of characters as ranges of code points."""

from collections.abc import Iterable, Iterator

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points, both ends included, sorted and disjoint."""

_LAST = 0x10FFFF
ANY: Ranges = ((0, 0xD7FF), (0xE000, _LAST))
"""Every character. The surrogates between the two ranges are no characters."""
BEYOND_ASCII: Ranges = ((0x80, 0xD7FF), (0xE000, _LAST))


_DIGIT_ZEROS = (
    *(0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20),
    *(0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0),
    *(0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0),
    *(0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x11F50, 0x16A60),
    *(0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E950, 0x1FBF0),
)


def ranges_of(text: str) -> Ranges:
    """Return the set of the characters of a text."""
    return merge_ranges((ord(char), ord(char)) for char in text)


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the same set, sorted and without overlaps or surrogates."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(part for pair in ranges for part in _characters(*pair)):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the set of all other characters."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in merge_ranges(ranges):
        gaps.append((start, low - 1))
        start = high + 1
    gaps.append((start, _LAST))
    return merge_ranges(gaps)


def _characters(low: int, high: int) -> Iterator[tuple[int, int]]:
    for first, last in ANY:
        if max(low, first) <= min(high, last):
            yield max(low, first), min(high, last)


OTHER_DIGITS: Ranges = merge_ranges((zero, zero + 9) for zero in _DIGIT_ZEROS)
"""The decimal digits beyond ASCII (category Nd of Unicode 15.1)."""
_SPACES = "\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"
OTHER_SPACES: Ranges = merge_ranges((*ranges_of(_SPACES), (0x2000, 0x200A)))
"""Characters that some dialect counts as white space, besides the six white space characters of ASCII. Python adds its
separators, ECMAScript the byte order mark, and all dialects that know Unicode the rest."""
