"""The coordinator of several processes: the units that it grants, to which process, and the effect of a clock that
steps."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.limits.lease_counter import SWEEP_ABOVE, LeaseCounter
from proxy.shared_state.lease import GRANT_EARLY, LeaseGrant, RateRequest, SlotsRequest, SpendingRequest
from tests.proxy.limits.kit.simulation import excess
from tests.support.looped import looped

S = 1_000_000


@pytest.fixture
def counter() -> LeaseCounter:
    return LeaseCounter()


def ask(want: int, least: int = 1, back: int = 0, demand: float = 0.0, burst: int = 600) -> RateRequest:
    return RateRequest("t", 10.0, burst, want, min(least, want), back, demand)


@given(
    st.lists(
        st.tuples(st.integers(0, 3 * S), st.integers(0, 300), st.integers(0, 40), st.sampled_from(["a", "b", "c"])),
        max_size=60,
    )
)
def test_all_together_get_no_more_than_the_burst_and_what_flows(asked: list[tuple[int, int, int, str]]) -> None:
    counter, now, granted = LeaseCounter(), 0, []
    for gap, want, least, process in asked:
        now += gap
        (grant,) = counter.exchange(process, [ask(want, least, 0, float(want))], now)
        assert grant.granted == 0 or min(least, want) <= grant.granted <= want
        granted.append((now / S, grant.granted))
    assert excess(granted, 600, 10.0) <= 10.0 * GRANT_EARLY + 1e-3


def test_fewer_than_the_least_are_none(counter: LeaseCounter) -> None:
    assert counter.exchange("a", [ask(595)], 0)[0].granted == 595
    assert counter.exchange("b", [ask(20, least=6)], 0)[0].granted == 0
    assert counter.exchange("b", [ask(20, least=5)], 0)[0].granted == 5


def test_units_that_come_back_are_there_for_all_and_debts_are_paid_by_all(counter: LeaseCounter) -> None:
    counter.exchange("a", [ask(600)], 0)
    assert counter.exchange("b", [ask(0, back=100)], 0)[0].level == 100
    assert counter.exchange("b", [ask(0, back=-150)], 0)[0].level == -50
    assert counter.exchange("a", [ask(1)], 4 * S)[0].granted == 0
    assert counter.exchange("a", [ask(1)], 6 * S)[0].granted == 1


def test_a_debt_counts_from_now_on_and_what_comes_back_late_makes_no_second_burst(counter: LeaseCounter) -> None:
    counter.exchange("a", [ask(600)], 0)
    assert counter.exchange("a", [ask(0, back=-150)], 110 * S)[0].level == 450
    counter = LeaseCounter()
    counter.exchange("a", [ask(100)], 0)
    assert counter.exchange("a", [ask(0, back=100)], 60 * S)[0].level == 600


def test_scarce_units_go_to_each_by_its_demand() -> None:
    counter, got = LeaseCounter(), {"a": 0, "b": 0}
    counter.exchange("a", [RateRequest("t", 1000.0, 1000, 1000, 1, 0, 0.0)], 0)
    for tick in range(1, 400):
        for process, demand in (("a", 1350.0), ("b", 150.0)):
            asks = [RateRequest("t", 1000.0, 1000, 100, 1, 0, demand)]
            got[process] += counter.exchange(process, asks, tick * S // 20)[0].granted
    total = sum(got.values())
    assert total == pytest.approx(20_000, rel=0.01)
    assert got["b"] / total == pytest.approx(0.14, abs=0.025)


@looped("back", [1, 600, 86_400])
def test_a_clock_that_steps_back_neither_silences_nor_opens(back: int) -> None:
    counter = LeaseCounter()
    start = 100_000 * S
    counter.exchange("a", [ask(590)], start)
    (grant,) = counter.exchange("a", [ask(100)], start - back * S)
    assert grant.granted == 10
    assert counter.exchange("a", [ask(100)], start - back * S + S)[0].granted == 10


def test_a_clock_that_steps_forward_gives_one_burst_at_most(counter: LeaseCounter) -> None:
    counter.exchange("a", [ask(600)], 0)
    assert counter.exchange("a", [ask(10**6)], 10**6 * S)[0].granted == 600


def test_one_who_is_silent_has_no_demand_after_three_seconds(counter: LeaseCounter) -> None:
    counter.exchange("a", [ask(1, demand=5.0)], 0)
    assert counter.exchange("b", [ask(1, demand=5.0)], 2 * S)[0].processes == 2
    assert counter.exchange("b", [ask(1, demand=5.0)], 4 * S)[0].processes == 1


def test_places_are_absolute_and_never_more_than_there_are(counter: LeaseCounter) -> None:
    assert counter.exchange("a", [SlotsRequest("p", 10, 0, 6)], 0)[0].granted == 6
    assert counter.exchange("b", [SlotsRequest("p", 10, 0, 6)], 0)[0].granted == 4
    assert counter.exchange("a", [SlotsRequest("p", 10, 2, 0, 2)], 0)[0].level == 2  # no process uses the units of b
    assert counter.exchange("b", [SlotsRequest("p", 10, 4, 0, 3)], 0)[0].level == 5
    assert counter.exchange("b", [SlotsRequest("p", 10, 4, 6)], 0)[0].granted == 4
    assert counter.exchange("b", [SlotsRequest("p", 3, 8, 6)], 0)[0].granted == 0
    assert counter.exchange("a", [SlotsRequest("p", 10, 0, 0)], 0)[0].share == pytest.approx(0.05)


@looped("held", range(1, 200))
def test_nobody_has_a_larger_part_of_places_than_all_of_them(held: int) -> None:
    (grant,) = LeaseCounter().exchange("a", [SlotsRequest("p", 200, held, 0, held)], 0)
    assert grant.share <= 1  # without a bound, 13 of 13 slots are a share of 1.0000000000000002


def test_spending_is_heard_by_the_others_for_ten_seconds(counter: LeaseCounter) -> None:
    counter.exchange("a", [SpendingRequest("s", 70)], 0)
    counter.exchange("c", [SpendingRequest("s", 5)], 5 * S)
    assert counter.exchange("b", [SpendingRequest("s", 1)], 10 * S)[0].level == 75
    assert counter.exchange("b", [SpendingRequest("s", 1)], 11 * S)[0].level == 5
    assert counter.exchange("c", [SpendingRequest("s", 0)], 11 * S)[0].level == 1


def test_claims_and_what_is_spent_are_never_more_than_the_limit(counter: LeaseCounter) -> None:
    assert counter.exchange("a", [SpendingRequest("s", 30, 0, 100, 0, 50, 0)], 0)[0].granted == 50
    assert counter.exchange("b", [SpendingRequest("s", 0, 0, 100, 0, 50, 0)], 0)[0] == LeaseGrant(20, 30, 1.0, 2, 0, 50)
    assert counter.exchange("c", [SpendingRequest("s", 0, 0, 100, 0, 1, 0)], 0)[0].granted == 0
    assert counter.exchange("a", [SpendingRequest("s", 80, 0, 100, 0, 9, 0)], 1)[0].granted == 0
    assert counter.exchange("b", [SpendingRequest("s", 0, 0, 100, 5, 0, 0)], 2)[0].claimed == 0
    assert counter.exchange("a", [SpendingRequest("s", 80, 0, 100, 0, 16, 16)], 3)[0].granted == 0
    assert counter.exchange("a", [SpendingRequest("s", 80, 0, 100, 0, 16, 15)], 4)[0].granted == 15
    assert counter.exchange("b", [SpendingRequest("s", 5, 0, 90, 0, 9, 0)], 5)[0].granted == 0


def test_a_claim_lapses_with_the_process_that_has_it(counter: LeaseCounter) -> None:
    counter.exchange("a", [SpendingRequest("s", 0, 0, 100, 0, 100, 0)], 0)
    assert counter.exchange("b", [SpendingRequest("s", 0, 0, 100, 0, 9, 9)], 10 * S)[0].granted == 0
    assert counter.exchange("b", [SpendingRequest("s", 0, 0, 100, 0, 9, 9)], 10 * S + 1)[0].granted == 9
    counter.exchange("a", [SpendingRequest("s", 0, 0, 100, 0, 91, 0)], 11 * S)
    counter.forget("a")
    assert counter.exchange("b", [SpendingRequest("s", 0, 0, 100, 9, 91, 91)], 11 * S)[0].granted == 91


def test_the_highest_sum_of_the_ledger_counts_for_all_until_they_have_read_it(counter: LeaseCounter) -> None:
    counter.exchange("a", [SpendingRequest("s", 20, 0, 100, 0, 0, 0)], 0)
    counter.exchange("b", [SpendingRequest("s", 10, 50, 100, 0, 0, 0)], 1)
    (grant,) = counter.exchange("a", [SpendingRequest("s", 20, 0, 100, 0, 60, 0)], 2)
    assert (grant.granted, grant.level, grant.claimed) == (20, 40, 20)
    (grant,) = counter.exchange("a", [SpendingRequest("s", 0, 50, 100, 20, 60, 0)], 3)
    assert (grant.granted, grant.level, grant.claimed) == (20, 10, 0)


def test_what_a_killed_process_had_spent_is_in_the_ledger_after_three_seconds(counter: LeaseCounter) -> None:
    counter.exchange("a", [SpendingRequest("s", 70, 5, 100, 0, 0, 0)], 0)
    (grant,) = counter.exchange("b", [SpendingRequest("s", 0, 70, 100, 0, 30, 0)], 2 * S)
    assert (grant.granted, grant.level, grant.claimed) == (0, 5, 65)
    (grant,) = counter.exchange("b", [SpendingRequest("s", 0, 70, 100, 0, 30, 0)], 3 * S)
    assert (grant.granted, grant.level, grant.claimed) == (25, 5, 0)


def test_keys_that_are_over_are_forgotten(counter: LeaseCounter) -> None:
    for number in range(SWEEP_ABOVE + 1):
        counter.exchange("a", [SpendingRequest(f"s{number}", 1)], 0)
    counter.exchange("a", [SpendingRequest("s", 1)], 60 * S)
    assert len(counter._keys) == 1
    counter.exchange("a", [ask(600)], 60 * S)
    assert counter.exchange("a", [ask(600)], 60 * S + 500 * S)[0].granted == 600
    assert math.isfinite(counter._keys["t"].over)


def test_what_a_process_held_that_has_ended_is_free(counter: LeaseCounter) -> None:
    assert counter.exchange("p1", [SlotsRequest("k", 2, 0, 2)], 0.0)[0].granted == 2
    assert counter.exchange("p2", [SlotsRequest("k", 2, 0, 1)], 1.0)[0].granted == 0
    counter.forget("p1")
    counter.forget("unknown")
    assert counter.exchange("p2", [SlotsRequest("k", 2, 0, 2)], 2.0)[0].granted == 2


def test_what_one_that_has_ended_took_alone_is_set_aside(counter: LeaseCounter) -> None:
    told = RateRequest("t", 10.0, 600, 600, 1, 0, 20.0, 60.0, 1, silence=0.25, equal=0.125)
    counter.exchange("p1", [told], 0)
    counter.exchange("p2", [told], 0)
    counter.forget("p1")
    (grant,) = counter.exchange("p2", [replace(told, want=0)], 8 * S)
    assert grant.level == pytest.approx(80 - 80 * 0.875)
    assert counter.exchange("p2", [replace(told, want=0)], 9 * S)[0].level == pytest.approx(90 - 80 * 0.875)


def test_one_that_comes_back_to_a_lost_memory_pays_for_what_its_part_took_since(counter: LeaseCounter) -> None:
    fresh = RateRequest("t", 10.0, 600, 0, 1, 0, 20.0, 60.0, 1)
    counter.exchange("p1", [replace(fresh, owed=0, epoch=7)], S)
    back = replace(fresh, epoch=7, owed=100, paid=40, share=0.25)
    assert counter.exchange("p2", [back], 5 * S)[0].level == 600 - 100 - 10
    (grant,) = counter.exchange("p2", [replace(back, epoch=S, paid=0, owed=0)], 5 * S)
    assert (grant.level, grant.epoch) == (490, S)


def test_places_tell_how_long_the_most_silent_of_the_others_was_not_heard(counter: LeaseCounter) -> None:
    for at, process in ((0, "a"), (S, "b")):
        counter.exchange(process, [SlotsRequest("p", 9, 1, 0)], at)
    (grant,) = counter.exchange("c", [SlotsRequest("p", 9, 1, 0)], 3 * S)
    assert (grant.claimed, grant.processes) == (3.0, 3)
