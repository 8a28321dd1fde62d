"""How many made-up examples a property gets: a quarter of them with every change, all of them in the nightly run.

Each run makes other examples, so that the runs of a few changes have tried as many as one nightly run.
"""

from dataclasses import dataclass
from typing import Final

from hypothesis import settings

SHARE: Final = 4
"""The part of the examples that a run for a change tries: one of so many."""

LEAST: Final = 50
"""Examples that are tried with every change, if there are as many. The simplest are among the first."""


@dataclass(slots=True)
class Run:
    """What the run is for. It is set before the tests are imported."""

    nightly: bool = False


run: Final = Run()


def examples(most: int) -> settings:
    """Return the settings of a property that gets so many examples at night."""
    return settings(max_examples=most if run.nightly else min(most, max(LEAST, most // SHARE)))
