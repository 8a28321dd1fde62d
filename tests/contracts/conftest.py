"""The judges for every test of this folder, and what the run says of them at its end. Never a judgement."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.contracts.judges import Judges

PASSED = pytest.StashKey[dict[str, Counter[str]]]()
"""How many bodies of each row, and how many fixtures of each folder, passed."""


@pytest.fixture(scope="session")
def judges() -> Iterator[Judges]:
    """One process for the whole run. Tests with it are marked `clients`, and get time for the first installation."""
    with Judges() as process:
        yield process


@pytest.fixture
def passed(pytestconfig: pytest.Config) -> dict[str, Counter[str]]:
    """Where a test writes down what passed: under `bodies` or `fixtures`."""
    return pytestconfig.stash.setdefault(PASSED, {"bodies": Counter(), "fixtures": Counter()})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how much passed, however quiet the run is."""
    if PASSED in config.stash:
        bodies, fixtures = config.stash[PASSED]["bodies"], config.stash[PASSED]["fixtures"]
        counts = f"{len(bodies)} vendors, {bodies.total()} bodies, {fixtures.total()} fixtures passed"
        terminalreporter.write_line(f"contracts: {counts}")
