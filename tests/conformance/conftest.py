"""The summary line of a test run about the capability matrix."""

from collections.abc import Iterable

from tests.support.summary_counts import CountKey

WALKED = "matrix"
"""The topic of the matrix's sizes, counted after every cell was sent."""


def summary_lines(found: Iterable[CountKey]) -> list[str]:
    return [f"matrix: {sizes}" for topic, sizes, *_ in sorted(found) if topic == WALKED]
