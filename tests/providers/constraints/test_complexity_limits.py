"""The complexity of one constraint, counted against its limits."""

from collections.abc import Callable

import pytest

from providers.constraints.complexity_limits import (
    MAX_PATTERN,
    MAX_PATTERNS,
    MAX_RANGES,
    MAX_SCHEMAS,
    Budget,
    OverBudget,
)
from tests.support.looped import looped


@looped(
    ("use", "times", "reason"),
    [
        (Budget.count_schema, MAX_SCHEMAS, f"brings it to more than {MAX_SCHEMAS} schemas"),
        (
            lambda budget: budget.count_pattern(MAX_PATTERN),
            MAX_PATTERNS // MAX_PATTERN,
            f"brings the patterns to more than {MAX_PATTERNS} characters together",
        ),
        (
            lambda budget: budget.count_ranges(100),
            MAX_RANGES // 100,
            f"has bracketed classes of more than {MAX_RANGES} ranges of characters together",
        ),
    ],
)
def test_each_limit_is_reached_and_not_passed(use: Callable[[Budget], None], times: int, reason: str) -> None:
    budget = Budget()
    for _ in range(times):
        use(budget)
    with pytest.raises(OverBudget, match=reason):
        use(budget)


def test_a_single_pattern_has_a_limit_of_its_own() -> None:
    with pytest.raises(OverBudget, match=f"is longer than {MAX_PATTERN} characters"):
        Budget().count_pattern(MAX_PATTERN + 1)
