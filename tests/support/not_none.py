"""Narrows the type of a value that a test expects to be there."""

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """Return the value, which is asserted not to be `None`."""
    assert value is not None
    return value
