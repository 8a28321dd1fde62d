"""The sections of failover: what is read, and what is refused."""

import pytest
from pydantic import ValidationError

from config.problem import ConfigError
from config.sections.failover_section import CircuitBreakerSection, RetriesSection, RetryBudgetSection
from tests.config.tables import load
from tests.support.looped import looped


def test_what_is_not_written_is_none() -> None:
    assert (RetriesSection().budget, RetryBudgetSection().share, CircuitBreakerSection().cooldown) == (
        RetryBudgetSection(),
        None,
        None,
    )


def test_a_part_may_be_nothing_at_all() -> None:
    budget = RetryBudgetSection.model_validate({"share": 0, "per_second": 0.0, "least": 0})
    assert (budget.share, budget.per_second, budget.least) == (0, 0, 0)


def test_cooldowns_are_durations() -> None:
    own = load("version: 1\ndefaults: {circuit_breaker: {cooldown: 500ms, longest_cooldown: 2m}}\n").config.defaults
    assert (own.circuit_breaker.cooldown, own.circuit_breaker.longest_cooldown) == (0.5, 120.0)


@looped("section", [{"share": 1.1}, {"share": -0.1}, {"per_second": -1}, {"least": -1}, {"least": "many"}, {"most": 1}])
def test_a_budget_that_makes_no_sense_is_refused(section: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RetryBudgetSection.model_validate(section)


@looped(
    ("text", "told"),
    [
        ("{failures: 0}", "2:40 defaults.circuit_breaker.failures: must be at least 1"),
        ("{cooldown: 0s}", "2:40 defaults.circuit_breaker.cooldown: must be more than 0s"),
        (
            "{coldown: 5s}",
            "2:30 defaults.circuit_breaker.coldown: unknown key; did you mean cooldown or longest_cooldown?",
        ),
    ],
)
def test_a_mistake_is_reported_where_it_is(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"version: 1\ndefaults: {{circuit_breaker: {text}}}\n")
    assert [str(problem).partition(":")[2] for problem in caught.value.problems] == [told]
