"""The judges for every test of this folder, and what the run says of them at its end. Never a judgement."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from tests.contracts.judges import Judges
from tests.support.facts import Fact, facts

PASSED = "contracts"
"""Noted with `bodies` and their row, or `fixtures` and their folder, as often as one passed."""

CHECKED = "shelves"
"""Noted with `passed` or `cannot`, a dialect and a check."""


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


@pytest.fixture(scope="session")
def judges() -> Iterator[Judges]:
    """One process for the whole run. Tests with it are marked `clients`, and get time for the first installation."""
    with Judges() as process:
        yield process


@pytest.fixture
def passed(pytestconfig: pytest.Config) -> Iterator[dict[str, Counter[str]]]:
    """Where a test writes down what passed: under `bodies` or `fixtures`."""
    counted: dict[str, Counter[str]] = {"bodies": Counter(), "fixtures": Counter()}
    yield counted
    for kind, names in counted.items():
        facts(pytestconfig).update({(PASSED, kind, name): count for name, count in names.items()})


@pytest.fixture
def checked(pytestconfig: pytest.Config) -> Iterator[Checked]:
    """Where a test of the shelves writes down what passed."""
    found = Checked()
    yield found
    facts(pytestconfig).update((CHECKED, "passed", *cell) for cell in found.passed)
    facts(pytestconfig).update((CHECKED, "cannot", *cell) for cell in found.cannot)


def told(noted: Mapping[Fact, int]) -> list[str]:
    """How much passed, of what these tests ran."""
    bodies, fixtures = (
        {fact: n for fact, n in noted.items() if fact[:2] == (PASSED, kind)} for kind in ("bodies", "fixtures")
    )
    passed, cannot = (
        {(fact[2], fact[3]) for fact in noted if fact[:2] == (CHECKED, way)} for way in ("passed", "cannot")
    )
    lines = []
    if bodies or fixtures:
        counts = f"{sum(bodies.values())} bodies, {sum(fixtures.values())} fixtures"
        lines.append(f"contracts: {len(bodies)} vendors, {counts} passed")
    if passed or cannot:
        lines.append(Checked(passed, cannot).told())
    return lines
