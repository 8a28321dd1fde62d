"""What may be repeated, who pays for it, and how long it waits."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialect import RetryBudget as Budget
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.retries import (
    RetryBudget,
    RetryBudgets,
    RetryRules,
    is_free,
    least_useful,
    may_repeat,
    retried,
    wait_for_other,
    wait_for_same,
)
from tests.proxy.virtual_time import run

RULES = RetryRules()
KINDS = st.sampled_from(FailureKind)
DRAWS = st.floats(0, 1, exclude_max=True)


def failure(kind: FailureKind, asked: float | None = None, unsent: bool = False) -> Failure:
    """A failure of that kind."""
    return Failure(kind, "why", 500, retry_after=asked, unsent=unsent)


@given(KINDS, st.booleans())
def test_what_is_repeatable_strictly_is_so_safely_and_nothing_when_it_is_off(kind: FailureKind, unsent: bool) -> None:
    failed = failure(kind, unsent=unsent)
    assert may_repeat(failed, "safe")
    assert not may_repeat(failed, "off")
    assert may_repeat(failed, "strict") or not is_free(failed)


@pytest.mark.parametrize("kind", [FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER, FailureKind.RATE_LIMITED])
def test_what_a_vendor_would_not_have_was_not_generated_and_may_be_asked_elsewhere_strictly(kind: FailureKind) -> None:
    assert may_repeat(failure(kind), "strict")


@pytest.mark.parametrize(
    "kind", [FailureKind.SERVER, FailureKind.TIMEOUT, FailureKind.TRUNCATED, FailureKind.MALFORMED]
)
def test_what_may_have_been_generated_is_not_repeated_strictly_unless_it_was_not_sent(kind: FailureKind) -> None:
    assert not may_repeat(failure(kind), "strict")
    assert may_repeat(failure(kind, unsent=True), "strict")
    assert not is_free(failure(kind))
    assert is_free(failure(kind, unsent=True))


@given(KINDS, st.none() | st.floats(0, 1e6), st.floats(0, 100), DRAWS)
def test_a_wait_is_never_shorter_than_asked_for_and_never_much_longer(
    kind: FailureKind, asked: float | None, away: float, draw: float
) -> None:
    wait = wait_for_same(failure(kind, asked), away, RULES, lambda: draw)
    if wait is not None:
        least = max(asked or 0.0, away)
        assert least <= wait <= max(least * 1.1, RULES.throttled)
        assert least <= RULES.longest_asked


@pytest.mark.parametrize(
    ("kind", "asked", "away", "expected"),
    [
        (FailureKind.RATE_LIMITED, 1.0, 0.0, 1.05),
        (FailureKind.RATE_LIMITED, 10.0, 0.0, 10.5),
        (FailureKind.RATE_LIMITED, 10.1, 0.0, None),
        (FailureKind.RATE_LIMITED, 0.2, 1.0, 1.05),
        (FailureKind.OVERLOADED, None, 0.0, 0.5),
        (FailureKind.SERVER, None, 0.0, 0.125),
        (FailureKind.SERVER, 3.0, 0.0, 3.15),
        (FailureKind.CONNECT, None, 0.0, None),
        (FailureKind.TIMEOUT, None, 0.0, None),
        (FailureKind.INVALID_REQUEST, None, 0.0, None),
    ],
)
def test_the_same_deployment_is_asked_again_after(
    kind: FailureKind, asked: float | None, away: float, expected: float | None
) -> None:
    wait = wait_for_same(failure(kind, asked), away, RULES, lambda: 0.5)
    assert wait == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("kind", FailureKind)
def test_another_deployment_is_asked_at_once_after_what_this_one_did_not_begin(kind: FailureKind) -> None:
    unreached = {FailureKind.CONNECT, FailureKind.TLS, FailureKind.BUSY}
    expected = 0.0 if kind in unreached | {FailureKind.RATE_LIMITED, FailureKind.QUOTA} else 0.025
    assert wait_for_other(failure(kind), RULES, lambda: 0.5) == expected
    assert wait_for_other(failure(kind, unsent=True), RULES, lambda: 0.5) == 0.0


def test_who_hung_up_without_an_answer_is_not_asked_again() -> None:
    assert wait_for_same(Failure(FailureKind.SERVER, "why"), 0.0, RULES, lambda: 0.5) is None


def test_a_try_needs_the_usual_time_or_two_seconds_or_a_tenth_of_the_whole() -> None:
    assert least_useful(30.0, 600.0, RULES) == 30.0
    assert least_useful(None, 600.0, RULES) == 2.0
    assert least_useful(None, 5.0, RULES) == 0.5


def spent(budget: RetryBudget, now: float, rules: RetryRules = RULES) -> int:
    """How many tokens there were."""
    count = 0
    while budget.spend(rules, now):
        count += 1
    return count


def test_a_budget_begins_with_ten_and_gains_one_a_second_and_a_fifth_a_request() -> None:
    budget = RetryBudget(0.0)
    assert spent(budget, 0.0) == 10
    assert spent(budget, 5.0) == 5
    budget.requests += 20
    assert spent(budget, 5.0) == 4


def test_a_budget_holds_what_ten_seconds_bring() -> None:
    budget = RetryBudget(0.0)
    budget.requests += 100 * 1000
    assert spent(budget, 1000.0) == 210
    assert spent(budget, 5000.0) == 10


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 500)), max_size=30))
def test_no_more_is_ever_spent_than_was_gained(steps: list[tuple[float, int]]) -> None:
    budget = RetryBudget(0.0)
    now, requests, used = 0.0, 0, 0
    for passed, arrived in steps:
        now += passed
        requests += arrived
        budget.requests += arrived
        used += spent(budget, now)
        assert used <= 10 + now + 0.2 * requests + 1e-6


@pytest.mark.parametrize(
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
    rules, budget = RULES.of(own), RetryBudget(0.0)
    assert spent(budget, 0.0, rules) == begins
    budget.requests += 40
    assert spent(budget, 10.0, rules) == later


def test_what_is_gained_a_little_at_a_time_adds_up_where_nothing_is_held_to_begin_with() -> None:
    rules, budget = RULES.of(Budget(share=0.1, per_second=0.0, least=0.0)), RetryBudget(0.0)
    paid = 0
    for request in range(100):
        budget.requests += 1
        paid += budget.spend(rules, request / 100)
    assert 9 <= paid <= 10


def test_each_name_has_its_budget() -> None:
    budgets = RetryBudgets(RULES)
    for name in ("a", "b"):
        budgets.arrived(name, "", 0.0)
    assert [budgets.spend("a", "", 0.0) for _ in range(11)] == [True] * 10 + [False]
    assert [budgets.spend("b", "", 0.0) for _ in range(11)] == [True] * 10 + [False]


def test_a_name_that_a_new_table_has_keeps_its_budget_and_one_that_comes_back_begins_anew() -> None:
    budgets = RetryBudgets(RULES)
    for name in ("a", "b"):
        while budgets.spend(name, "", 0.0):
            pass
    budgets.keep({"b"}, {""})
    assert not budgets.spend("b", "", 0.0)
    assert budgets.spend("a", "", 0.0)


def test_calling_again_ends_with_the_last_failure_and_waits_as_decided() -> None:
    failures = [failure(kind) for kind in (FailureKind.SERVER, FailureKind.TIMEOUT, FailureKind.AUTH)]
    seen: list[FailureKind] = []
    waits = iter([1.0, 2.0, None])
    times: list[float] = []

    async def decide(failed: Failure) -> float | None:
        seen.append(failed.kind)
        return next(waits)

    async def ask() -> None:
        times.append(asyncio.get_running_loop().time())
        raise UpstreamError(failures[len(times) - 1])

    async def main() -> None:
        with pytest.raises(UpstreamError) as caught:
            await retried(ask, decide)
        assert caught.value.failure is failures[-1]

    run(main())
    assert (seen, times) == ([each.kind for each in failures], [0.0, 1.0, 3.0])


@pytest.mark.parametrize("error", [asyncio.CancelledError, LookupError])
def test_nothing_else_is_called_again(error: type[BaseException]) -> None:
    async def ask() -> None:
        raise error

    async def decide(failed: Failure) -> float | None:
        return 0.0

    async def main() -> None:
        with pytest.raises(error):
            await retried(ask, decide)

    run(main())


def test_a_request_whose_name_a_new_table_lost_still_pays() -> None:
    budgets = RetryBudgets(RULES)
    budgets.arrived("gone", "", 0.0)
    budgets.keep(set(), {""})
    assert budgets.spend("gone", "", 1.0)


def test_one_team_s_retries_leave_another_s_budget_alone() -> None:
    budgets = RetryBudgets(RULES)
    for name in ("a", "b", "a", "b"):
        while budgets.spend(name, "hostile", 0.0):
            pass
    assert budgets.spend("a", "honest", 0.0)
    budgets.keep({"a"}, {"honest"})
    assert budgets.spend("a", "hostile", 0.0)
