"""One leased rate: the units that it requests and holds, and how it continues alone."""

import math
from dataclasses import replace

import pytest

from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.leased_rate import FOREIGN_RETRY, LeasedRate
from proxy.limits.leased_units import DEMAND_HOLDS
from proxy.limits.limit import Period, Rate, Unit
from proxy.shared_state.lease import LeaseGrant, RateRequest
from proxy.shared_state.lease_keeper import GONE_SECONDS, REJOIN_SECONDS
from tests.proxy.limits.kit.still_keeper import StillKeeper
from tests.support.not_none import not_none

MINUTE = Rate(Unit.REQUESTS, 600, Period.MINUTE, 600)
WALL = 0.0


@pytest.fixture
def keeper() -> StillKeeper:
    return StillKeeper(rounds=1)


@pytest.fixture
def lease(keeper: StillKeeper) -> LeasedRate:
    return LeasedRate("t", MINUTE, keeper)


def exchange_lease(
    lease: LeasedRate, granted: int, now: float, level: float = 0.0, share: float = 0.5, count: int = 2
) -> RateRequest:
    """Exchange the lease, whatever it requests."""
    ask = not_none(lease.next_request(now))
    lease.apply_grant(LeaseGrant(min(granted, ask.want), level, share, count), now)
    return ask


def grant_waiting(
    lease: LeasedRate, units: int, now: float, level: float = 0.0, share: float = 0.5, count: int = 2
) -> None:
    """Let a request wait for units, and grant them."""
    lease.add_waiting(units)
    exchange_lease(lease, units, now, level, share, count)
    lease.remove_waiting(units)


def test_what_an_attempt_took_is_put_back_here_and_not_given_to_all(lease: LeasedRate, keeper: StillKeeper) -> None:
    grant_waiting(lease, 30, 0.0, 500.0)
    assert not lease.attempt(31, 0.0, WALL)
    assert lease.attempt(30, 0.0, WALL)
    assert lease.balance == 0
    lease.undo(30)
    assert lease.balance == 30
    assert not lease.lacks(30, 0.0, WALL)
    keeper.alone = True
    before = lease.left(0.0) if not lease.lacks(1, 0.0, WALL) else math.nan
    assert lease.attempt(1, 0.0, WALL)
    assert lease.left(0.0) == pytest.approx(before - 1)
    lease.undo(1)
    assert lease.left(0.0) == pytest.approx(before)


def test_at_first_it_asks_for_who_waits_and_no_more(lease: LeasedRate) -> None:
    assert lease.lacks(30, 0.0, WALL)
    assert lease.fetchable(1, 0.0)
    lease.add_waiting(30)
    lease.add_waiting(20)
    ask = exchange_lease(lease, 50, 0.0, 500.0)
    assert (ask.want, ask.least, ask.back, ask.per_second, ask.burst) == (50, 20, 0, 10.0, 600)
    lease.remove_waiting(30)
    lease.remove_waiting(20)
    assert not lease.lacks(50, 0.0, WALL)
    assert lease.lacks(51, 0.0, WALL)


def test_it_leases_ahead_by_its_demand_and_never_a_large_part(lease: LeasedRate) -> None:
    for tick in range(1, 100):
        for _ in range(5):
            lease.refused(1, tick / 100)
        lease.next_request(tick / 100)
    assert lease.demand == pytest.approx(500, rel=0.2)
    lease.apply_grant(LeaseGrant(1, 300.0, 0.5, 2), 1.0)
    assert lease.balance + not_none(lease.next_request(1.0)).want == 3


def test_it_fetches_before_all_is_used(keeper: StillKeeper) -> None:
    lease = LeasedRate("t", Rate(Unit.REQUESTS, 60_000, Period.MINUTE, 60_000), keeper)
    for tick in range(1, 200):
        for _ in range(8):
            lease.refused(1, tick / 100)
        if (ask := lease.next_request(tick / 100)) is not None:
            lease.apply_grant(LeaseGrant(ask.want, 1000.0, 0.5, 2), tick / 100)
    held = lease.balance
    assert held == pytest.approx(800 * 0.05, abs=4)
    while not keeper.noted:
        lease.take(1, 2.0, WALL)
    assert keeper.noted == ["wake"]
    assert lease.balance == pytest.approx(held / 2, abs=2)


def test_a_refusal_waits_for_nobody_and_fetches_units_for_the_next_request(keeper: StillKeeper) -> None:
    lease = LeasedRate("t", Rate(Unit.REQUESTS, 60_000, Period.MINUTE, 60_000), keeper)
    for tick in range(1, 20):
        for _ in range(5):
            lease.refused(1, tick / 100)
        if lease.next_request(tick / 100) is not None:
            lease.apply_grant(LeaseGrant(0, 0.0, 0.5, 2), tick / 100)
    keeper.noted.clear()
    assert lease.lacks(1, 0.3, WALL)
    assert not lease.fetchable(1, 0.3)
    lease.refused(1, 0.3)
    assert keeper.noted == ["wake"]
    exchange_lease(lease, 1000, 0.3, 5000.0)
    assert not lease.lacks(1, 0.3, WALL)
    lease.take(lease.balance, 0.3, WALL)
    assert lease.fetchable(1, 0.3)


def test_units_that_are_not_used_go_back_after_half_a_second(lease: LeasedRate, keeper: StillKeeper) -> None:
    grant_waiting(lease, 10, 0.0, 100.0)
    assert not lease.needs_renewal(0.4)
    assert lease.may_need_renewal()
    assert lease.needs_renewal(0.5)
    assert lease.lacks(1, 0.5, WALL)
    assert keeper.noted == ["due"]
    assert not_none(lease.next_request(0.5)).back == 10
    assert not lease.may_need_renewal()


def test_more_than_a_burst_leaves_a_debt_that_is_told_at_once(keeper: StillKeeper) -> None:
    counter = LeaseCounter()
    lease = LeasedRate("t", MINUTE, keeper)
    lease.add_waiting(1500)
    ask = not_none(lease.next_request(0.0))
    assert ask.least == 600
    lease.apply_grant(counter.exchange("one", [ask], 0.0)[0], 0.0)
    lease.remove_waiting(1500)
    assert not lease.lacks(1500, 0.0, WALL)
    lease.take(1500, 0.0, WALL)
    assert keeper.noted == ["wake"]
    ask = not_none(lease.next_request(0.1))
    assert ask.back == -900
    grant = counter.exchange("one", [ask], 0.1e6)[0]
    lease.apply_grant(grant, 0.1)
    assert grant.level == pytest.approx(-899, abs=1)
    assert lease.remaining(0.1, WALL) == 0
    assert lease.wait(1, 0.1, WALL) == pytest.approx(90, abs=0.3)
    assert lease.full_in(0.1, WALL) == pytest.approx(150, abs=0.3)


def test_settled_units_go_back_to_all_and_what_was_used_beyond_is_paid(lease: LeasedRate, keeper: StillKeeper) -> None:
    grant_waiting(lease, 100, 0.0, 400.0)
    lease.take(100, 0.0, WALL)
    lease.settle(100, 40)
    assert keeper.noted == ["due"]
    assert exchange_lease(lease, 0, 0.01, 460.0).back == 60
    lease.settle(40, 45)
    assert exchange_lease(lease, 0, 0.05, 455.0).back == -5


def test_after_nothing_was_granted_it_refuses_for_a_moment_what_is_more_than_was_left(lease: LeasedRate) -> None:
    lease.add_waiting(5)
    exchange_lease(lease, 0, 1.0, 2.0)
    assert lease.lacks(5, 1.0, WALL)
    assert [lease.fetchable(units, 1.01) for units in (1, 2, 3, 5)] == [True, True, False, False]
    assert lease.fetchable(5, 1.02)
    assert lease.wait(5, 1.0, WALL) == pytest.approx(0.3)
    assert lease.wait(1, 1.0, WALL) == pytest.approx(0.02)


def test_alone_it_goes_on_with_its_share_and_what_is_left(lease: LeasedRate, keeper: StillKeeper) -> None:
    keeper.expected = 2
    grant_waiting(lease, 10, 0.0, 200.0, share=0.5, count=2)
    keeper.alone = True
    assert not lease.lacks(110, 0.0, WALL)
    assert lease.lacks(111, 0.0, WALL)
    assert not lease.fetchable(1, 0.0)
    assert lease.next_request(0.0) is None
    lease.take(110, 0.0, WALL)
    lease.settle(110, 109)
    assert lease.remaining(0.0, WALL) == 1
    assert lease.wait(6, 0.0, WALL) == pytest.approx(1.0)
    refused = lease.exceeded("team t", 6, 0.0, WALL)
    assert (refused.limit, refused.used, refused.requested, refused.alone) == (600, 299, 6, 1)
    assert lease.full_in(0.0, WALL) == pytest.approx(299 / 5)
    assert not lease.lacks(300, 60.0, WALL)
    assert lease.lacks(290, 55.0, WALL)


def test_back_among_others_it_tells_what_it_used_alone(lease: LeasedRate, keeper: StillKeeper) -> None:
    keeper.alone = True
    assert not lease.lacks(100, 0.0, WALL)
    lease.take(100, 0.0, WALL)
    keeper.alone = False
    assert lease.lacks(1, 10.0, WALL)
    assert keeper.noted == ["watch", "due"]
    ask = not_none(lease.next_request(10.0))
    assert ask.back == -75
    lease.apply_grant(LeaseGrant(ask.want, 500.0, 0.5, 2), 10.0)
    assert lease.remaining(10.0, WALL) == 500 + ask.want


def test_while_others_may_not_have_told_yet_it_keeps_to_its_share(lease: LeasedRate, keeper: StillKeeper) -> None:
    keeper.alone = True
    assert lease.attempt(150, 0.0, WALL)
    keeper.alone, keeper.back_at = False, 0.1
    assert not lease.attempt(1, 0.1, WALL)
    lease.add_waiting(100)
    exchange_lease(lease, 600, 0.1, 500.0, share=1.0, count=1)
    lease.remove_waiting(100)
    assert lease.division(0.1) == (0.25, 4)
    assert not lease.attempt(1, 0.1, WALL)
    assert not lease.fetchable(1, 0.1)
    assert lease.wait(1, 0.1, WALL) == pytest.approx(0.3)
    refused = lease.exceeded("team t", 1, 0.1, WALL)
    assert (refused.used, refused.alone) == (150, 0)
    assert lease.attempt(1, 0.4, WALL)
    keeper.back_at = keeper.all_reported_since = 0.4 - REJOIN_SECONDS
    assert lease.attempt(50, 0.4, WALL)


def test_who_finds_a_memory_lost_keeps_to_its_share_until_all_told(lease: LeasedRate, keeper: StillKeeper) -> None:
    lease.add_waiting(50)
    not_none(lease.next_request(0.0))
    lease.apply_grant(LeaseGrant(50, 150.0, 0.25, 4, epoch=1), 0.0)
    lease.remove_waiting(50)
    assert lease.attempt(50, 0.0, WALL)
    lease.add_waiting(200)
    assert lease.next_request(0.1) is not None
    lease.apply_grant(LeaseGrant(200, 400.0, 0.75, 1, epoch=2), 0.1)
    lease.remove_waiting(200)
    assert "watch" in keeper.noted
    assert not lease.attempt(40, 0.1, WALL)
    assert lease.attempt(35, 0.1, WALL)
    assert not_none(lease.division(0.1))[0] == 0.25
    assert not_none(lease.next_request(0.2)).share == pytest.approx(0.25)
    assert not lease.lacks(0, GONE_SECONDS, WALL)  # one of the processes has not reported
    assert lease.may_need_renewal()
    keeper.all_reported_since = 0.2
    assert not lease.lacks(0, 0.1 + REJOIN_SECONDS, WALL)
    assert not_none(lease._held).local is None


def test_what_is_used_alone_is_told_by_who_is_not_asked_any_more(lease: LeasedRate, keeper: StillKeeper) -> None:
    keeper.alone = True
    assert lease.attempt(100, 0.0, WALL)
    assert not lease.needs_renewal(1.0)
    assert lease.may_need_renewal()
    keeper.alone = False
    assert lease.needs_renewal(2.0)
    assert not_none(lease.next_request(2.0)).back == -95


def test_an_answer_that_is_lost_counts_nothing_twice(lease: LeasedRate) -> None:
    counter = LeaseCounter()
    lease.add_waiting(10)
    ask = not_none(lease.next_request(0.0))
    lease.apply_grant(counter.exchange("one", [ask], 0.0)[0], 0.0)
    lease.remove_waiting(10)
    lease.take(10, 0.0, WALL)
    lease.settle(10, 15)
    for used, back in ((15, -5), (12, -2), (19, -9)):
        ask = not_none(lease.next_request(0.0))
        assert ask.back == back
        level = counter.exchange("one", [replace(ask, want=0)], 0.0)[0].level
        assert level == 590 + back
        lease.exchange_failed()
        lease.settle(used, {15: 12, 12: 19}.get(used, used))


@pytest.mark.parametrize("wiped", [False, True])
def test_after_a_memory_was_lost_all_of_it_is_told_again(lease: LeasedRate, keeper: StillKeeper, wiped: bool) -> None:
    counter, keeper.expected = LeaseCounter(), 1
    lease = LeasedRate("t", MINUTE, keeper)
    lease.add_waiting(500)
    ask = not_none(lease.next_request(0.0))
    lease.apply_grant(counter.exchange("one", [ask], 1e6)[0], 0.0)
    lease.remove_waiting(500)
    assert lease.attempt(500, 0.0, WALL)
    keeper.alone = True
    assert lease.attempt(50, 0.0, WALL)
    keeper.alone = False
    if wiped:
        counter = LeaseCounter()
    for _ in range(2):  # the first response is lost
        lease.lacks(1, 1.0, WALL)
        ask = not_none(lease.next_request(1.0))
        assert (ask.back, ask.owed) == (-50, 490)
        assert counter.exchange("one", [replace(ask, want=0)], 2e6)[0].level == 60


def test_at_rest_it_forgets_all_but_when_everything_is_paid_for(lease: LeasedRate) -> None:
    lease.add_waiting(10)
    exchange_lease(lease, 10, 0.0, 400.0)
    assert not lease.forget_if_idle(60.0)
    lease.remove_waiting(10)
    assert lease.attempt(10, 0.0, WALL)
    assert not lease.forget_if_idle(1.0)
    assert lease.forget_if_idle(DEMAND_HOLDS)
    assert lease.remaining(DEMAND_HOLDS, WALL) == 430
    lease.settle(10, 4)
    assert not lease.forget_if_idle(60.0)


def test_where_something_else_is_kept_it_goes_on_alone_and_tries_again(lease: LeasedRate, keeper: StillKeeper) -> None:
    lease.add_waiting(1)
    lease.next_request(0.0)
    lease.apply_grant(None, 0.0)
    lease.remove_waiting(1)
    assert not lease.lacks(150, 0.0, WALL)
    lease.take(150, 0.0, WALL)
    assert lease.lacks(1, 0.0, WALL)
    assert not lease.needs_renewal(0.5)
    assert lease.needs_renewal(FOREIGN_RETRY)
    assert exchange_lease(lease, 1, FOREIGN_RETRY, 599.0).want >= 1
    assert not lease.lacks(1, FOREIGN_RETRY, WALL)
    assert not_none(lease.next_request(FOREIGN_RETRY)).back <= -140


def test_a_division_from_before_a_restart_is_assumed(lease: LeasedRate, keeper: StillKeeper) -> None:
    keeper.expected = 2
    lease.assume(0.77, 2)
    assert lease.division(0.0) == (0.77, 2)
    keeper.alone = True
    assert not lease.lacks(1, 0.0, WALL)
    assert lease.remaining(0.0, WALL) == 461  # in whole units of 1/1024 of the limit


def test_another_limit_holds_at_once(lease: LeasedRate, keeper: StillKeeper) -> None:
    keeper.expected = 2
    lease.add_waiting(10)
    exchange_lease(lease, 10, 0.0, 500.0)
    lease.follow(Rate(Unit.REQUESTS, 1200, Period.MINUTE, 1200), 0.0)
    assert lease.remaining(0.0, WALL) == 1110
    keeper.alone = True
    assert not lease.lacks(1, 0.0, WALL)
    left = lease.remaining(0.0, WALL)
    lease.follow(MINUTE, 0.0)
    assert lease.remaining(0.0, WALL) == pytest.approx(max(0, left - 300), abs=1)


def test_what_was_refused_by_another_limit_says_nothing_about_this_one(lease: LeasedRate) -> None:
    for tick in range(1, 20):
        for _ in range(5):
            lease.refused(1, tick / 100)
        if lease.next_request(tick / 100) is not None:
            lease.apply_grant(LeaseGrant(0, 0.0, 0.5, 2), tick / 100)
    assert not lease.fetchable(1, 0.19)
    lease.follow(Rate(Unit.REQUESTS, 6000, Period.MINUTE, 6000), 0.19)
    assert lease.fetchable(1, 0.19)
    assert lease.next_request(0.19) is not None
    lease.follow(Rate(Unit.REQUESTS, 60_000, Period.MINUTE, 60_000), 0.2)
    lease.apply_grant(LeaseGrant(0, 0.0, 0.5, 2), 0.2)  # a grant of the previous limit
    assert lease.fetchable(1, 0.2)


def test_one_request_takes_no_more_than_the_largest_debt_and_gives_no_more_back(lease: LeasedRate) -> None:
    grant_waiting(lease, 600, 0.0, 0.0)
    assert lease.balance == 600
    most = lease.rule.most
    lease.take(10**9, 0.0, WALL)
    assert lease.balance == 600 - most
    lease.settle(10**9, 10**12)
    assert not_none(lease.next_request(0.1)).back == 600 - 2 * most
    lease.settle(10**9, 100)
    assert lease.next_request(0.2) is not None
