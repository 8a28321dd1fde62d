"""The promises of second attempts, in virtual time through the dispatcher: the longest waits are shorter by four
fifths, there are few more calls, an outage does not double the calls, nothing is left open, and the booked tokens equal
the tokens that the vendors bill.
"""

import random

import pytest

from proxy.hedging.hedge_rules import HedgeRules
from tests.proxy.kit.hedge_simulation import Delay, Outcome, simulated, usual
from tests.support.looped import looped

BUILT_IN = HedgeRules()
OUTAGE_FROM = 30.0


def check_books(outcome: Outcome) -> None:
    """Assert that nothing is left open, and that the booked tokens equal the tokens that the vendors bill."""
    assert outcome.left == 0
    assert outcome.booked == outcome.vendors.bill[0]


def check_figures(requests: int, *shares: float) -> None:
    """Assert the promises on waits and calls. `shares` are the quantiles of long waits."""
    without, hedged = simulated(None, requests), simulated(BUILT_IN, requests)
    for share in shares:
        assert hedged.quantile(share) <= 0.2 * without.quantile(share)
    assert abs(hedged.quantile(0.5) / without.quantile(0.5) - 1) <= 0.01
    assert hedged.vendors.calls <= 1.03 * without.vendors.calls
    assert {*hedged.hedges} <= {"won", "lost", "refused_share", "closed"}
    assert hedged.hedges.count("closed") <= 0.001 * requests
    for outcome in (without, hedged):
        check_books(outcome)


def test_the_longest_waits_are_shorter_by_four_fifths_for_few_more_calls() -> None:
    check_figures(1_200, 0.99)


@pytest.mark.thorough
def test_so_they_are_over_many_more_requests() -> None:
    check_figures(20_000, 0.99, 0.999)


def two_of_four_dead(rng: random.Random, name: str, now: float) -> float:
    return 45.0 if now >= OUTAGE_FROM and name in ("asia", "home") else usual(rng, name, now)


def half_of_all_stalled(rng: random.Random, name: str, now: float) -> float:
    return rng.uniform(5.0, 30.0) if now >= OUTAGE_FROM and rng.random() < 0.5 else usual(rng, name, now)


def check_outage(delay: Delay, requests: int, names: tuple[str, ...]) -> None:
    """Assert that an outage at the deployments `names` causes few second attempts. They are half of four deployments,
    or all of two.
    """
    outcome = simulated(BUILT_IN, requests, delay, members=2 * len(names) if "asia" in names else 2)
    hedges = [hedge for began, name, hedge in outcome.late if began >= OUTAGE_FROM and name in names]
    second = sum(hedge in ("won", "lost", "failed") for hedge in hedges)
    assert second <= 0.005 * sum(began >= OUTAGE_FROM for began in outcome.began)
    assert hedges.count("closed") > 4 * second
    check_books(outcome)


def test_an_outage_of_half_the_deployments_begins_few_second_attempts_however_many_requests_come() -> None:
    outcome = simulated(BUILT_IN, 1_600, two_of_four_dead, members=4)
    hedges = [hedge for began, name, hedge in outcome.late if began >= OUTAGE_FROM and name in ("asia", "home")]
    assert sum(hedge in ("won", "lost", "failed") for hedge in hedges) <= 10
    assert hedges.count("closed") > 50
    check_books(outcome)


@pytest.mark.thorough
@looped(("delay", "names"), [(two_of_four_dead, ("asia", "home")), (half_of_all_stalled, ("eu", "us"))])
def test_an_outage_of_half_is_not_doubled(delay: Delay, names: tuple[str, ...]) -> None:
    check_outage(delay, 11_500, names)


@pytest.mark.thorough
def test_once_an_outage_is_over_there_are_second_attempts_again() -> None:
    def delay(rng: random.Random, name: str, now: float) -> float:
        return 45.0 if 60.0 <= now < 90.0 and name == "us" else usual(rng, name, now)

    outcome = simulated(BUILT_IN, 5_000, delay)
    after = [hedge for began, _, hedge in outcome.late if began >= 150.0]
    assert after.count("won") > 10
    assert after.count("closed") <= 3
    check_books(outcome)
