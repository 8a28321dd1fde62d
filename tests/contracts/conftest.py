"""The judges for the tests of this folder, and their lines in a run's summary."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from tests.contracts.sdk_judges import Judges
from tests.support.summary_counts import CountKey, counts

PASSED = "contracts"
"""The topic of counts of passed `bodies` by profile, or passed `fixtures` by judge."""

CHECKED = "shelves"
"""The topic of pairs of dialect and check, under `passed` or `cannot`."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The pairs of dialect and check that passed with at least one fixture set, and the pairs that a fixture set
    cannot have."""

    passed: set[tuple[str, str]] = field(default_factory=set)
    cannot: set[tuple[str, str]] = field(default_factory=set)

    def summary(self) -> str:
        """Return the summary line. A check that passed with any fixture set of a dialect does not count as one that
        the dialect cannot have."""
        cells = self.passed | self.cannot
        dialects, checks = {dialect for dialect, _ in cells}, {check for _, check in cells}
        without = len(self.cannot - self.passed)
        reasons = f", {without} cannot (reasons in tests/providers/dialects/*/suite_data.py)" if without else ""
        return f"shelves: {len(dialects)} dialects x {len(checks)} checks: {len(self.passed)} passed{reasons}"


@pytest.fixture(scope="session")
def judges() -> Iterator[Judges]:
    """Yield one process for the whole test run. Tests that use it are marked `clients`, with time for the first
    installation."""
    with Judges() as process:
        yield process


@pytest.fixture
def passed(pytestconfig: pytest.Config) -> Iterator[dict[str, Counter[str]]]:
    counted: dict[str, Counter[str]] = {"bodies": Counter(), "fixtures": Counter()}
    yield counted
    for kind, names in counted.items():
        counts(pytestconfig).update({(PASSED, kind, name): count for name, count in names.items()})


@pytest.fixture
def checked(pytestconfig: pytest.Config) -> Iterator[Checked]:
    found = Checked()
    yield found
    counts(pytestconfig).update((CHECKED, "passed", *cell) for cell in found.passed)
    counts(pytestconfig).update((CHECKED, "cannot", *cell) for cell in found.cannot)


def summary_lines(noted: Mapping[CountKey, int]) -> list[str]:
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
        lines.append(Checked(passed, cannot).summary())
    return lines
