"""How many made-up examples a property gets: a quarter of them with every change, all of them in the nightly run.

Each run makes other examples, so that the runs of a few changes have tried as many as one nightly run.
"""

from typing import Final

from hypothesis import settings

from tests.support.nightly import by_day

SHARE: Final = 4
"""The part of the examples that a run for a change tries: one of so many."""

LEAST: Final = 25
"""Examples that are tried with every change, if there are as many. The simplest are among the first."""

USUAL: Final = 50
"""Examples of a property that names no number."""


def load_profile() -> None:
    """Give a property that names no number its examples. `make trust` gives it 5,000."""
    # How long an example takes says how busy the machine is.
    settings.register_profile("untimed", deadline=None, max_examples=by_day(LEAST, USUAL))
    settings.load_profile("untimed")


def examples(most: int, least: int = LEAST) -> settings:
    """Return the settings of a property that gets so many examples at night."""
    return settings(max_examples=by_day(min(most, max(least, most // SHARE)), most))
