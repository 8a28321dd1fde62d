"""The sections of failover: accepted and refused values."""

import pytest
from pydantic import ValidationError

from config.problem import ConfigError
from config.sections.failover_section import CircuitBreakerSection, HedgeSection, RetriesSection, RetryBudgetSection
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


@looped(("value", "mode"), [("auto", "auto"), ("off", "off"), (False, "off"), ({}, "auto"), ({"mode": False}, "off")])
def test_a_bare_word_is_the_mode_of_second_attempts(value: object, mode: str) -> None:
    made = HedgeSection.model_validate(value)
    assert (made.mode, made.after, made.share, made.burst, made.usd_per_hour) == (mode, "1.5x", 0.03, 20, 1.0)


def test_a_share_may_be_a_percentage_and_a_wait_a_multiple_or_a_duration() -> None:
    made = HedgeSection.model_validate({"share": "2.5%", "after": "1m30s"})
    assert (made.share, made.after) == (0.025, "1m30s")
    assert HedgeSection.model_validate({"share": 0.5, "after": "100x"}).share == 0.5


@looped(
    "value",
    [
        *("on", "", 5, True, [], None, {"more": 1}, {"mode": "on"}, {"burst": 0}, {"burst": 1.5}, {"usd_per_hour": -1}),
        *({"share": 0}, {"share": 1.1}, {"share": "3"}, {"share": "101%"}, {"share": "0%"}, {"share": "-1%"}),
        *({"after": 1.5}, {"after": "1.5"}, {"after": "0.9x"}, {"after": "101x"}, {"after": "0s"}, {"after": "11m"}),
        *({"after": "x"}, {"after": "-1s"}, {"after": ""}, {"after": "1.5X"}, {"after": "1e2x"}),
    ],
)
def test_second_attempts_that_make_no_sense_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        HedgeSection.model_validate(value)


@looped(
    ("rest", "told"),
    [
        ("defaults: {hedge: {after: fast}}", "2:27 defaults.hedge.after: must be a multiple of the 95th percentile"),
        ("defaults: {hedge: {share: 3}}", "2:27 defaults.hedge.share: must be at most 1"),
        ("defaults: {hedge: {share: 3 %}}", "2:27 defaults.hedge.share: must be a share, such as 3% or 0.03"),
        ("defaults: {hedge: {birst: 3}}", "2:20 defaults.hedge.birst: unknown key; did you mean burst?"),
        (
            "vendors: {mock: {}}\nmodels: {mock/m: {deployments: {a: {hedge: auto}}}}",
            "3:37 models.mock/m.deployments.a.hedge: has no effect on a deployment: write it for the model, or a route",
        ),
    ],
)
def test_a_mistake_in_second_attempts_is_told_where_it_is_written(rest: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(f"version: 1\n{rest}\n")
    assert told in "\n".join(map(str, refused.value.problems))
