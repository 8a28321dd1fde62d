"""Whether this run is the nightly one. With every change a test tries fewer cases of one kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Run:
    """The purpose of the run. It is set before the tests are imported (`tests/conftest.py`)."""

    nightly: bool = False


run: Final = Run()


def by_day(change: T, night: T) -> T:
    """Return a value for this run: `change` with every change, `night` in the nightly run."""
    return night if run.nightly else change


def some(rows: Sequence[T], step: int) -> list[T]:
    """Return the rows of a table that this run checks: every `step`-th row with every change, all rows in the nightly
    run."""
    return list(rows[:: by_day(step, 1)])
