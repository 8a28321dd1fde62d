"""The retry budget: what it holds, gains and pays for."""

from hypothesis import given
from hypothesis import strategies as st

from providers.target import RetryBudget as Budget
from proxy.teams.retry_budget import BudgetRules, RetryBucket
from tests.support.looped import looped

RULES = BudgetRules()


def spent(budget: RetryBucket, now: float, rules: BudgetRules = RULES) -> int:
    """How many tokens there were."""
    count = 0
    while budget.spend(rules, now):
        count += 1
    return count


def test_a_budget_begins_with_ten_and_gains_one_a_second_and_a_fifth_a_request() -> None:
    budget = RetryBucket(0.0)
    assert spent(budget, 0.0) == 10
    assert spent(budget, 5.0) == 5
    budget.requests += 20
    assert spent(budget, 5.0) == 4


def test_a_budget_holds_what_ten_seconds_bring() -> None:
    budget = RetryBucket(0.0)
    budget.requests += 100 * 1000
    assert spent(budget, 1000.0) == 210
    assert spent(budget, 5000.0) == 10


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 500)), max_size=30))
def test_no_more_is_ever_spent_than_was_gained(steps: list[tuple[float, int]]) -> None:
    budget = RetryBucket(0.0)
    now, requests, used = 0.0, 0, 0
    for passed, arrived in steps:
        now += passed
        requests += arrived
        budget.requests += arrived
        used += spent(budget, now)
        assert used <= 10 + now + 0.2 * requests + 1e-6


@looped(
    ("own", "begins", "later"),
    [
        (Budget(), 10, 18),
        (Budget(least=25), 25, 18),
        (Budget(share=0.5), 10, 30),
        (Budget(per_second=3), 10, 38),
        (Budget(share=0.0, per_second=0.0), 10, 0),
        (Budget(share=0.0, per_second=0.0, least=0.0), 0, 0),
        (Budget(share=0.1, per_second=0.0, least=0.0), 0, 4),
    ],
)
def test_a_deployment_s_own_word_counts_for_each_part(own: Budget, begins: int, later: int) -> None:
    rules, budget = RULES.of(own), RetryBucket(0.0)
    assert spent(budget, 0.0, rules) == begins
    budget.requests += 40
    assert spent(budget, 10.0, rules) == later


def test_what_is_gained_a_little_at_a_time_adds_up_where_nothing_is_held_to_begin_with() -> None:
    rules, budget = RULES.of(Budget(share=0.1, per_second=0.0, least=0.0)), RetryBucket(0.0)
    paid = 0
    for request in range(100):
        budget.requests += 1
        paid += budget.spend(rules, request / 100)
    assert 9 <= paid <= 10
