"""The judges for every test of this folder, and what the run says of them at its end. Never a judgement."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.contracts.judges import Judges

PASSED = pytest.StashKey[dict[str, Counter[str]]]()
"""How many bodies of each row, and how many fixtures of each folder, passed."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Which dialect passed which check on one of its shelves, and which check a shelf of its cannot have, by name."""

    passed: set[tuple[str, str]] = field(default_factory=set)
    cannot: set[tuple[str, str]] = field(default_factory=set)

    def told(self) -> str:
        """Both in one line. A check that any shelf of a dialect passed is none that the dialect cannot have."""
        cells = self.passed | self.cannot
        dialects, checks = {dialect for dialect, _ in cells}, {check for _, check in cells}
        without = len(self.cannot - self.passed)
        reasons = f", {without} cannot (reasons in tests/contracts/shelves.py)" if without else ""
        return f"shelves: {len(dialects)} dialects x {len(checks)} checks: {len(self.passed)} passed{reasons}"


CHECKED = pytest.StashKey[Checked]()


@pytest.fixture(scope="session")
def judges() -> Iterator[Judges]:
    """One process for the whole run. Tests with it are marked `clients`, and get time for the first installation."""
    with Judges() as process:
        yield process


@pytest.fixture
def passed(pytestconfig: pytest.Config) -> dict[str, Counter[str]]:
    """Where a test writes down what passed: under `bodies` or `fixtures`."""
    return pytestconfig.stash.setdefault(PASSED, {"bodies": Counter(), "fixtures": Counter()})


@pytest.fixture
def checked(pytestconfig: pytest.Config) -> Checked:
    """Where a test of the shelves writes down what passed."""
    return pytestconfig.stash.setdefault(CHECKED, Checked())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how much passed, however quiet the run is."""
    if PASSED in config.stash:
        bodies, fixtures = config.stash[PASSED]["bodies"], config.stash[PASSED]["fixtures"]
        counts = f"{len(bodies)} vendors, {bodies.total()} bodies, {fixtures.total()} fixtures passed"
        terminalreporter.write_line(f"contracts: {counts}")
    if CHECKED in config.stash:
        terminalreporter.write_line(config.stash[CHECKED].told())
