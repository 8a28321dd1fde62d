"""What the run says at its end of the matrix that it walked. Never a fixture that one test needs."""

from collections.abc import Iterable

from tests.support.facts import Fact

WALKED = "matrix"
"""Noted with the sizes of the matrix in words, once every cell was walked."""


def told(facts: Iterable[Fact]) -> list[str]:
    """The size of the matrix."""
    return [f"matrix: {sizes}" for topic, sizes, *_ in sorted(facts) if topic == WALKED]
