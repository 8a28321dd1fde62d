"""Sets of characters as ranges of code points. Never a pattern's syntax."""

from collections.abc import Iterable, Iterator

Ranges = tuple[tuple[int, int], ...]
"""Code points, both ends included, in order and apart."""

_LAST = 0x10FFFF
ANY: Ranges = ((0, 0xD7FF), (0xE000, _LAST))
"""Every character; the surrogates between the two ranges are none."""
BEYOND_ASCII: Ranges = ((0x80, 0xD7FF), (0xE000, _LAST))


def of(text: str) -> Ranges:
    """The characters of a text."""
    return merged((ord(char), ord(char)) for char in text)


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same characters in order and apart; surrogates fall away."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(part for pair in ranges for part in _characters(*pair)):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Every other character."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in merged(ranges):
        gaps.append((start, low - 1))
        start = high + 1
    gaps.append((start, _LAST))
    return merged(gaps)


def _characters(low: int, high: int) -> Iterator[tuple[int, int]]:
    for first, last in ANY:
        if max(low, first) <= min(high, last):
            yield max(low, first), min(high, last)
