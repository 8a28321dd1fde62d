"""Durations, sizes and shares as the configuration writes them."""

from collections.abc import Callable, Mapping
from typing import Final


def duration(seconds: float) -> str:
    """Return a duration as the configuration writes it: whole days as `1d`, whole hours as `1h`, else seconds as
    `600s`."""
    for unit, length in (("d", 86400), ("h", 3600)):
        if seconds and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def size(number: int) -> str:
    """Return a number of bytes as the configuration writes it, in the largest unit of which it is a whole number:
    `32MiB`."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number and number % length == 0:
            return f"{number // length}{unit}"
    return f"{number} bytes"


def share(number: float) -> str:
    """Return a share of 1 as the configuration writes it: `3%`."""
    return f"{100 * number:.6g}%"


AS_WRITTEN: Final[Mapping[str, Callable[[float], str]]] = {
    "duration": duration,
    "size": lambda number: size(int(number)),
    "share": share,
}
"""The function that writes a number, by the title of its type in the schema."""
