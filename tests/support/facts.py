"""What tests note for the last lines of a run, gathered from every process that ran some. Never the lines."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeAlias

import pytest

Fact: TypeAlias = tuple[str, ...]
"""What is counted, and of what: ("contracts", "bodies", "openai")."""

FACTS: Final = pytest.StashKey[Counter[Fact]]()

SENT: Final = "facts"
"""The name under which a worker of pytest-xdist hands them over."""


def facts(config: pytest.Config) -> Counter[Fact]:
    """How often each fact was noted, to read and to add to."""
    return config.stash.setdefault(FACTS, Counter())


def hand_over(config: pytest.Config) -> None:
    """In a worker of pytest-xdist, give the facts to the process that started it; elsewhere they stay."""
    output: dict[str, object] | None = getattr(config, "workeroutput", None)
    if output is not None:
        # It takes plain types only, no Counter.
        output[SENT] = dict(facts(config))


def take_over(config: pytest.Config, output: Mapping[str, Mapping[Fact, int]]) -> None:
    """Add what a worker handed over; one that broke down handed over nothing, and fails the run by that."""
    facts(config).update(output.get(SENT, {}))
