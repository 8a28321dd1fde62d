"""The rate arithmetic against an exact log of the admitted units."""

import math
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.limits.gcra import MAX_DEBT_BURSTS, ROUNDING_SLACK, LocalRate, part_of, rule_of
from proxy.limits.limit import SECONDS, Period, Rate, Unit
from tests.proxy.limits.kit.simulation import excess
from tests.support.looped import looped

AMOUNTS = st.integers(1, 100_000)
GAPS = st.floats(0, 30, allow_nan=False) | st.sampled_from([0.0, 1e-4, 0.1, 1.0, 60.0])


def rate(amount: int = 60, burst: int | None = None, period: Period = Period.MINUTE) -> Rate:
    return Rate(Unit.REQUESTS, amount, period, amount if burst is None else burst)


def admits(meter: LocalRate, units: float, now: float) -> bool:
    if meter.lacks(units, now, 0.0):
        return False
    meter.take(units, now, 0.0)
    return True


@given(
    amount=AMOUNTS,
    burst=AMOUNTS,
    period=st.sampled_from([Period.SECOND, Period.MINUTE]),
    asked=st.lists(st.tuples(GAPS, st.floats(0.001, 1.0)), max_size=60),
)
def test_no_window_holds_more_than_the_burst_and_what_flows_in_it(
    amount: int, burst: int, period: Period, asked: Sequence[tuple[float, float]]
) -> None:
    meter = LocalRate(rule_of(rate(amount, burst, period)))
    per_second = amount / SECONDS[period]
    now, passed = 1000.0, []
    for gap, part in asked:
        now += gap
        units = max(1, int(part * burst))
        if admits(meter, units, now):
            passed.append((now, units))
    assert excess(passed, burst, per_second) <= per_second * ROUNDING_SLACK * 2 + 1e-6 * burst


@given(amount=AMOUNTS, burst=AMOUNTS, asked=st.lists(st.tuples(GAPS, st.integers(1, 100)), max_size=60))
def test_it_admits_what_an_exact_bucket_admits(amount: int, burst: int, asked: Sequence[tuple[float, int]]) -> None:
    meter = LocalRate(rule_of(rate(amount, burst)))
    per_second, level, now = amount / 60, float(burst), 1000.0
    for gap, units in asked:
        now += gap
        level = min(burst, level + gap * per_second)
        need = min(units, burst)
        if abs(need - level) < 1e-3 + per_second * 1e-5:
            return  # too close to decide with rounded numbers
        assert admits(meter, units, now) is (need <= level)
        level -= units if need <= level else 0
        assert meter.left(now) == pytest.approx(level, abs=1e-2 + per_second * 1e-5)


@looped("amount", [1, 30, 60, 999, 60_000])
def test_the_whole_limit_passes_at_once_and_not_one_more(amount: int) -> None:
    meter = LocalRate(rule_of(rate(amount)))
    assert sum(admits(meter, 1, 5e5) for _ in range(amount + 5)) == amount


def test_whoever_keeps_to_the_limit_is_never_refused() -> None:
    meter = LocalRate(rule_of(rate(60, burst=1)))
    assert all(admits(meter, 1, 1000.0 + number) for number in range(600))


def test_more_than_a_burst_passes_when_all_is_there_and_is_paid_for_later() -> None:
    meter = LocalRate(rule_of(rate(60)))
    assert admits(meter, 1, 0.0)
    assert meter.lacks(500, 0.5, 0.0)
    assert admits(meter, 500, 1.0)
    assert meter.remaining(1.0, 0.0) == 0
    assert meter.left(1.0) == pytest.approx(-440)
    assert meter.wait(1, 1.0, 0.0) == pytest.approx(441)
    assert not meter.lacks(1, 442.1, 0.0)


def test_what_was_not_used_comes_back_but_makes_no_second_burst_and_what_was_used_beyond_is_taken() -> None:
    meter = LocalRate(rule_of(rate(60)))
    meter.take(50, 0.0, 0.0)
    meter.settle(50, 20)
    assert meter.remaining(0.0, 0.0) == 40
    meter.settle(20, 100)
    assert meter.remaining(0.0, 0.0) == 0
    assert meter.wait(1, 0.0, 0.0) == pytest.approx(41)
    meter = LocalRate(rule_of(rate(60)))
    meter.take(50, 0.0, 0.0)
    meter.settle(50, 0)
    assert meter.remaining(1000.0, 0.0) == 60
    meter.settle(50, 0)
    assert meter.remaining(2000.0, 0.0) == 60
    assert sum(admits(meter, 1, 2000.0) for _ in range(100)) == 60


@given(asked=st.lists(st.tuples(GAPS, st.integers(1, 60), st.integers(0, 120)), max_size=60))
def test_settled_units_keep_the_limit_over_time(asked: Sequence[tuple[float, int, int]]) -> None:
    meter = LocalRate(rule_of(rate(60)))
    now = 1000.0
    debts = []
    used_all = 0
    for gap, reserved, used in asked:
        now += gap
        if admits(meter, reserved, now):
            meter.settle(reserved, used)
            used_all += used
            debts.append(max(0, used - reserved))
    assert used_all <= 60 + (now - 1000.0) + max(debts, default=0) + 1e-3


def test_numbers_are_those_of_openai() -> None:
    requests = LocalRate(rule_of(rate(5000)))
    requests.take(1, 0.0, 0.0)
    assert requests.full_in(0.0, 0.0) == pytest.approx(0.012)
    tokens = LocalRate(rule_of(Rate(Unit.TOKENS, 10_000, Period.MINUTE, 10_000)))
    tokens.take(8554, 0.0, 0.0)
    assert tokens.wait(3082, 0.0, 0.0) == pytest.approx(9.816)
    assert tokens.remaining(0.0, 0.0) == 1446


@looped("back", [1.0, 59.0, 600.0, 1e6])
def test_a_clock_that_steps_back_silences_no_longer_than_the_largest_debt(back: float) -> None:
    meter = LocalRate(rule_of(rate(60)))
    meter.take(60, 1e7, 0.0)
    now = 1e7 - back
    meter.lacks(1, now, 0.0)
    assert meter.wait(1, now, 0.0) <= min(back + 1, 60 * MAX_DEBT_BURSTS + 1) + 1e-6


@looped("step", [1.0, 30.0, 600.0])
def test_a_clock_that_steps_forward_gives_one_burst_at_most(step: float) -> None:
    meter = LocalRate(rule_of(rate(60)))
    meter.take(60, 0.0, 0.0)
    assert sum(admits(meter, 1, step) for _ in range(200)) == min(60, step)


def test_another_limit_keeps_the_units_that_are_used() -> None:
    meter = LocalRate(rule_of(rate(60)))
    meter.take(40, 0.0, 0.0)
    meter.follow(rate(600), 0.0)
    assert meter.remaining(0.0, 0.0) == 560
    meter.follow(rate(30), 0.0)
    assert meter.remaining(0.0, 0.0) == 0
    assert meter.left(0.0) == pytest.approx(-10)


@given(amount=AMOUNTS, count=st.integers(1, 8))
def test_parts_of_a_limit_add_up_to_it(amount: int, count: int) -> None:
    parts = [part_of(rate(amount), 1 / count) for _ in range(count)]
    assert math.fsum(1 / each.interval for each in parts) == pytest.approx(amount / 60)
    assert all(burst <= amount + count for burst in accumulate(each.burst for each in parts))


def test_nobody_else_has_units() -> None:
    meter = LocalRate(rule_of(rate()))
    meter.refused(5, 0.0)
    assert not meter.fetchable(1, 0.0)
    assert meter.remaining(0.0, 0.0) == 60


def test_asking_for_more_than_any_debt_and_using_less_gives_nothing_back_that_was_not_taken() -> None:
    meter = LocalRate(rule_of(rate(1000)))
    assert admits(meter, 10**9, 0.0)
    assert not admits(meter, 1, 1.0)
    meter.settle(10**9, 30_000)
    assert meter.wait(1000, 1.0, 0.0) >= 60 * MAX_DEBT_BURSTS - 2
    assert not admits(meter, 1, 60.0 * (MAX_DEBT_BURSTS - 2))


@given(reserved=st.integers(1, 10**12), used=st.integers(0, 10**12), share=st.floats(0.01, 1.0))
def test_a_settled_request_took_what_it_used_up_to_the_largest_debt(reserved: int, used: int, share: float) -> None:
    rule = part_of(rate(1000), share)
    meter = LocalRate(rule)
    meter.take(reserved, 0.0, 0.0)
    meter.lacks(1, 0.0, 0.0)
    meter.settle(reserved, used)
    assert meter.arrival >= min(used, rule.most) * rule.interval * (1 - 1e-9)
