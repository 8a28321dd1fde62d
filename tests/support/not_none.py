"""A function that excludes `None` from the type of a value that a test expects to exist."""

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """Return the value. Assert that it is not `None`."""
    assert value is not None
    return value
