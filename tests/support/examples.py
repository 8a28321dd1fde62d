"""How many made-up examples a property gets: a quarter of them with every change, all of them in the nightly run.

Each run makes other examples, so that the runs of a few changes have tried as many as one nightly run.
"""

from typing import Final

from hypothesis import settings

from tests.support.nightly import run

SHARE: Final = 4
"""The part of the examples that a run for a change tries: one of so many."""

LEAST: Final = 50
"""Examples that are tried with every change, if there are as many. The simplest are among the first."""


def examples(most: int, least: int = LEAST) -> settings:
    """Return the settings of a property that gets so many examples at night."""
    return settings(max_examples=most if run.nightly else min(most, max(least, most // SHARE)))
