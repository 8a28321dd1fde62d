"""Counts for the last lines of a run, collected from every process that ran tests."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeAlias

import pytest

CountKey: TypeAlias = tuple[str, ...]
"""A topic and its labels: ("contracts", "bodies", "openai")."""

COUNTS: Final = pytest.StashKey[Counter[CountKey]]()

SENT: Final = "facts"
"""The key under which a worker of pytest-xdist sends its counts."""


def counts(config: pytest.Config) -> Counter[CountKey]:
    """Return the counts of this process, for reading and adding."""
    return config.stash.setdefault(COUNTS, Counter())


def hand_over(config: pytest.Config) -> None:
    """In a worker of pytest-xdist, send the counts to the process that started it."""
    output: dict[str, object] | None = getattr(config, "workeroutput", None)
    if output is not None:
        # xdist sends plain types only, no Counter.
        output[SENT] = dict(counts(config))


def take_over(config: pytest.Config, output: Mapping[str, Mapping[CountKey, int]]) -> None:
    """Add the counts of a worker. A worker that crashed sends none, and the crash fails the run."""
    counts(config).update(output.get(SENT, {}))
