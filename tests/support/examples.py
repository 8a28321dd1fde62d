"""The number of generated examples for a property: a quarter of them with every change, all of them in the nightly run.

Each run generates other examples, so a few runs for changes try as many examples as one nightly run.
"""

from typing import Final

from hypothesis import settings

from tests.support.nightly import by_day

SHARE: Final = 4
"""A run for a change tries one of so many examples."""

LEAST: Final = 25
"""The least number of examples that are tried with every change, if the property has as many. The first examples are
among the simplest."""

USUAL: Final = 50
"""Examples of a property that sets no number of its own."""


def load_profile() -> None:
    """Set the number of examples for properties that set none of their own. `make trust` sets 5,000."""
    # The duration of an example depends on how busy the machine is.
    settings.register_profile("untimed", deadline=None, max_examples=by_day(LEAST, USUAL))
    settings.load_profile("untimed")


def examples(most: int, least: int = LEAST) -> settings:
    """Return the settings of a property that tries `most` examples at night."""
    return settings(max_examples=by_day(min(most, max(least, most // SHARE)), most))
