"""The state that a process has of a rate: its demand, how long the demand holds, and the share that it has while it
counts alone."""

import math

import pytest

from proxy.limits.leased_units import DEMAND_HOLDS, LONGEST_DEMAND_HOLDS, SHARE_STEPS, LeasedUnits
from tests.proxy.limits.kit.still_keeper import StillKeeper


def test_demand_is_averaged_over_half_a_second_and_before_that_unknown() -> None:
    held = LeasedUnits(StillKeeper())
    held.demanded = 10
    held.count(5.0)
    assert held.demand == 0
    for tick in range(1, 101):
        held.demanded += 10
        held.count(5.0 + tick / 10)
    assert held.demand == pytest.approx(100, rel=0.02)
    held.count(15.5)
    assert held.demand == pytest.approx(100 / math.e, rel=0.05)


def test_a_demand_holds_as_long_as_three_of_its_requests_take_within_bounds() -> None:
    held = LeasedUnits(StillKeeper())
    assert held.believed() == DEMAND_HOLDS
    for demand, seconds in ((100.0, DEMAND_HOLDS), (0.25, 12.0), (0.001, LONGEST_DEMAND_HOLDS)):
        held.demand = demand
        assert held.believed() == seconds


def test_alone_each_has_its_part_and_who_used_nothing_has_what_is_shared_equally() -> None:
    assert LeasedUnits(StillKeeper()).parts(StillKeeper()) == SHARE_STEPS // 4
    link = StillKeeper(has_answered=True, lost_at=20.0)
    held = LeasedUnits(link)
    assert held.parts(link) == SHARE_STEPS // 16
    held.share, held.known_until = 0.75 + 0.25 / 4, 19.0
    assert held.parts(link) == SHARE_STEPS // 16
    held.known_until = 21.0
    assert held.parts(link) == SHARE_STEPS * 13 // 16
    assert held.parts(link) + 3 * LeasedUnits(link).parts(link) == SHARE_STEPS


def test_what_was_assumed_before_anybody_counted_is_void_once_somebody_did() -> None:
    held = LeasedUnits(StillKeeper())
    held.share = 0.8
    assert held.parts(StillKeeper()) == int(SHARE_STEPS * 0.8)
    assert held.parts(StillKeeper(has_answered=True)) == SHARE_STEPS // 16
    held.foreign = True
    assert held.parts(StillKeeper(has_answered=True)) == int(SHARE_STEPS * 0.8)


def test_only_who_uses_a_limit_often_says_that_it_will_speak_again() -> None:
    held = LeasedUnits(StillKeeper())
    held.demand, held.size = 3.9, 1.0
    assert not held.is_busy()
    held.demand = 4.0
    assert held.is_busy()
    held.size = 100.0
    assert not held.is_busy()


def test_no_two_lives_of_a_lease_have_the_same_number_and_none_has_none() -> None:
    assert LeasedUnits(StillKeeper()).life == 1
    assert LeasedUnits(StillKeeper(rounds=7)).life == 8
