"""The bounds on second attempts: a share of the requests, USD per hour, and an outage."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.hedging.hedge_rules import HedgeRules
from proxy.hedging.hedge_state import HedgeBucket, HedgeStates, HourlySpending, Identity

A, B, C = (("v/m/a", "", ""), ("v/m/b", "", ""), ("v/m/c", "", ""))


@given(st.lists(st.booleans(), max_size=400), st.sampled_from([0.03, 0.1, 1.0]), st.integers(1, 20))
def test_there_are_never_more_than_the_burst_and_the_share(wanted: list[bool], share: float, burst: int) -> None:
    rules, bucket, taken = HedgeRules(share=share, burst=burst), HedgeBucket(), 0
    for number, wants in enumerate(wanted, 1):
        bucket.count(rules)
        if wants and bucket.has_one(rules):
            bucket.take(rules)
            taken += 1
        assert taken <= burst + share * number + 1e-6


def test_a_smaller_burst_of_a_new_configuration_holds_at_once() -> None:
    bucket = HedgeBucket()
    bucket.take(HedgeRules(burst=20))
    small = HedgeRules(burst=1)
    bucket.take(small)
    assert not bucket.has_one(small)


def test_what_runs_counts_until_it_is_known_and_an_hour_later_nothing_does() -> None:
    spending = HourlySpending()
    assert spending.reserve(0.6, 1.0, 0.0)
    assert not spending.reserve(0.6, 1.0, 0.0)
    spending.settle(0.6, 0.2, 10.0)
    assert spending.reserve(0.6, 1.0, 20.0)
    spending.settle(0.6, 0.7, 100.0)
    assert (spending.reserved, round(spending.spent(200.0), 6)) == (0.0, 0.9)
    assert not spending.reserve(0.2, 1.0, 3_609.0)
    assert spending.reserve(0.2, 1.0, 3_611.0)
    spending.settle(0.2, 0.0, 3_611.0)
    assert spending.spent(8_000.0) == 0.0


def test_a_call_without_a_price_needs_no_room() -> None:
    spending = HourlySpending()
    assert spending.reserve(0.0, 0.0, 0.0)
    assert not spending.reserve(0.001, 0.0, 0.0)


def late_in(states: HedgeStates, deployment: Identity, *late: bool) -> HedgeStates:
    for each in late:
        states.note(deployment, late=each)
    return states


def test_a_few_stalls_are_no_outage_and_most_requests_late_are_one_until_they_are_not() -> None:
    states = late_in(HedgeStates(), A, *[True, *[False] * 19] * 10)
    assert not states.closed([A, B])
    assert late_in(states, A, *[True] * 4).closed([A, B])
    assert late_in(states, A, *[False, True] * 20).closed([A, B])
    assert not late_in(states, A, *[False] * 18).closed([A, B])


def test_half_of_the_deployments_decide() -> None:
    states = late_in(HedgeStates(), A, *[True] * 10)
    assert states.closed([A])
    assert states.closed([A, B])
    assert not states.closed([A, B, C])
    assert late_in(states, C, *[True] * 10).closed([A, B, C])


def test_teams_and_names_have_bounds_of_their_own_and_those_that_are_gone_are_forgotten() -> None:
    states, rules = HedgeStates(), HedgeRules(burst=1)
    states.bucket("m", "search").take(rules)
    states.spending("m").reserve(1.0, 1.0, 0.0)
    assert not states.bucket("m", "search").has_one(rules)
    assert states.bucket("m", "ads").has_one(rules)
    assert states.bucket("n", "search").has_one(rules)
    states.keep({"m"}, {"search"})
    assert not states.bucket("m", "search").has_one(rules)
    assert states.spending("m").reserved == 1.0
    states.keep({"n"}, {"search"})
    assert states.bucket("m", "search").has_one(rules)
    assert states.spending("m").reserved == 0.0
