"""The retry budgets: their size, gains and costs, and their owners."""

from hypothesis import given
from hypothesis import strategies as st

from providers.target import RetryBudget as Budget
from proxy.teams.retry_budget import BudgetRules, RetryBucket, RetryBudgets
from tests.support.looped import looped

RULES = BudgetRules()


def spend_all(budget: RetryBucket, now: float, rules: BudgetRules = RULES) -> int:
    """Spend all tokens and return their number."""
    count = 0
    while budget.spend(rules, now):
        count += 1
    return count


def test_a_budget_begins_with_ten_and_gains_one_a_second_and_a_fifth_a_request() -> None:
    budget = RetryBucket(0.0)
    assert spend_all(budget, 0.0) == 10
    assert spend_all(budget, 5.0) == 5
    budget.requests += 20
    assert spend_all(budget, 5.0) == 4


def test_a_budget_holds_what_ten_seconds_bring() -> None:
    budget = RetryBucket(0.0)
    budget.requests += 100 * 1000
    assert spend_all(budget, 1000.0) == 210
    assert spend_all(budget, 5000.0) == 10


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 500)), max_size=30))
def test_no_more_is_ever_spent_than_was_gained(steps: list[tuple[float, int]]) -> None:
    budget = RetryBucket(0.0)
    now, requests, used = 0.0, 0, 0
    for passed, arrived in steps:
        now += passed
        requests += arrived
        budget.requests += arrived
        used += spend_all(budget, now)
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
    assert spend_all(budget, 0.0, rules) == begins
    budget.requests += 40
    assert spend_all(budget, 10.0, rules) == later


def test_what_is_gained_a_little_at_a_time_adds_up_where_nothing_is_held_to_begin_with() -> None:
    rules, budget = RULES.of(Budget(share=0.1, per_second=0.0, least=0.0)), RetryBucket(0.0)
    paid = 0
    for request in range(100):
        budget.requests += 1
        paid += budget.spend(rules, request / 100)
    assert 9 <= paid <= 10


# The budgets of teams ------------------------------------------------------------------------------------------------


def spend_all_of(budgets: RetryBudgets, tenant: str, *names: str) -> list[int]:
    """Return how many retries a team had left for each name."""
    return [spend_all(budgets.of(tenant, name, 0.0), 0.0) for name in names]


def test_each_name_has_its_retry_budget() -> None:
    assert spend_all_of(RetryBudgets(), "", "a", "b", "a") == [10, 10, 0]


def test_requests_fill_the_retry_budget_of_their_name() -> None:
    budgets = RetryBudgets()
    assert spend_all_of(budgets, "a", "n") == [10]
    counted = [budgets.count_request("a", "n", 0.0) for _ in range(round(1 / RULES.per_request))]
    assert counted[0].spend(RULES, 0.0)
    assert spend_all_of(budgets, "a", "n", "m") == [0, 10]


def test_a_name_that_a_new_table_has_keeps_its_retry_budget_and_one_that_comes_back_begins_anew() -> None:
    budgets = RetryBudgets()
    assert spend_all_of(budgets, "", "a", "b") == [10, 10]
    budgets.keep({""}, {"b"})
    assert spend_all_of(budgets, "", "a", "b") == [10, 0]


def test_a_request_whose_name_a_new_table_lost_still_pays() -> None:
    budgets = RetryBudgets()
    budget = budgets.of("", "gone", 0.0)
    budgets.keep({""}, set())
    assert budget.spend(RULES, 1.0)
    assert budgets.of("", "gone", 1.0).spend(RULES, 1.0)


def test_one_team_s_retries_leave_another_s_budget_alone() -> None:
    budgets = RetryBudgets()
    assert spend_all_of(budgets, "hostile", "a", "b") == [10, 10]
    assert spend_all_of(budgets, "honest", "a") == [10]


def test_a_team_that_a_new_table_does_not_have_is_forgotten_and_the_others_keep_their_budgets() -> None:
    budgets = RetryBudgets()
    old = [budgets.of(tenant, "a", 0.0) for tenant in ("kept", "gone")]
    budgets.keep({"", "kept"}, {"a"})
    assert budgets.of("kept", "a", 0.0) is old[0]
    assert budgets.of("gone", "a", 0.0) is not old[1]
