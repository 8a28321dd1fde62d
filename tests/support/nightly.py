"""Whether this run is the nightly one. A test tries fewer cases of one kind with every change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Run:
    """What the run is for. It is set before the tests are imported (`tests/conftest.py`)."""

    nightly: bool = False


run: Final = Run()


def by_day(change: T, night: T) -> T:
    """Return a value for this run: the first with every change, the second at night."""
    return night if run.nightly else change


def some(rows: Sequence[T], step: int) -> list[T]:
    """Return the rows of a table that this run checks: with every change each `step`-th, at night all."""
    return list(rows[:: by_day(step, 1)])
