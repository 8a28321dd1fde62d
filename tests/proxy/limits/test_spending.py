"""The spending of a period, from four sources, and the effects at each step of a budget."""

import math
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.limit import NANO, Period, Quota, ScopeBudget, Unit
from proxy.limits.spending import MAX_MARKS, STATEMENT_HOLDS, SpendingCounter, SpendingNotes, rules_of
from tests.proxy.limits.kit.simulation import BERLIN, WALL

NOW = 100.0
DAY = Quota(Unit.TOKENS, 1000, Period.DAY)
WARN = ScopeBudget(Unit.USD, 100 * NANO, Period.MONTH, 0.5, "warn")
ROUTE = ScopeBudget(Unit.USD, 100 * NANO, Period.MONTH, 0.8, "route", "cheap")
REJECT = ScopeBudget(Unit.USD, 100 * NANO, Period.MONTH)


def counter(*limits: Quota | ScopeBudget, notes: SpendingNotes | None = None) -> SpendingCounter:
    clock = PeriodClock(limits[0].period, BERLIN, WALL)
    return SpendingCounter("team t", rules_of(limits), clock, notes or SpendingNotes())


def spend(each: SpendingCounter, units: int) -> None:
    each.take(units, NOW, WALL)
    each.settle(units, units)


def names(each: SpendingCounter) -> list[str | None]:
    return [budget.route for budget in each.routes(NOW, WALL)]


def test_running_requests_count_before_they_end() -> None:
    each = counter(DAY)
    for _ in range(4):
        assert not each.lacks(250, NOW, WALL)
        each.take(250, NOW, WALL)
    assert each.lacks(1, NOW, WALL)
    each.settle(250, 100)
    assert not each.lacks(150, NOW, WALL)
    assert each.lacks(151, NOW, WALL)
    each.settle(250, 0)
    assert each.remaining(NOW, WALL) == 400


def test_what_the_others_had_settled_is_not_counted_twice_when_the_ledger_holds_it() -> None:
    each = counter(ROUTE)
    spend(each, 10 * NANO)
    each.take(5 * NANO, NOW, WALL)
    each.apply_others(45 * NANO, 0, 0, NOW)
    each.load(each.clock.start, 50 * NANO, 0)  # 10 of this process, at least 40 of the others
    assert (each.settled, each.spent, names(each)) == (55 * NANO, 60 * NANO, [])
    each.apply_others(45 * NANO, 0, 2 * NANO, NOW)
    assert (each.settled, each.spent) == (55 * NANO, 62 * NANO)


def test_a_request_larger_than_the_limit_passes_where_nothing_is_spent() -> None:
    each = counter(DAY)
    assert not each.lacks(5000, NOW, WALL)
    spend(each, 1)
    assert each.lacks(5000, NOW, WALL)


def test_it_says_when_the_period_ends() -> None:
    each = counter(DAY)
    assert each.wait(1, NOW, WALL) == 0
    spend(each, 1000)
    assert each.wait(1, NOW, WALL) == each.clock.end - WALL
    assert each.full_in(NOW, WALL) == each.clock.end - WALL
    assert each.remaining(NOW, WALL) == 0
    assert not each.lacks(1, NOW, each.clock.end)
    assert not each.fetchable(1, NOW)
    each.refused(1, NOW)


def test_what_is_reserved_goes_on_into_the_next_period_and_counts_there() -> None:
    each = counter(DAY)
    spend(each, 300)
    each.take(500, NOW, WALL)
    tomorrow = float(each.clock.end)
    assert each.lacks(501, NOW, tomorrow)
    assert not each.lacks(500, NOW, tomorrow)
    each.settle(500, 200)
    assert each.spent == 200


def test_what_the_ledger_holds_is_not_counted_twice() -> None:
    notes = SpendingNotes()
    each = counter(DAY, notes=notes)
    spend(each, 100)
    notes.mark = 1
    spend(each, 30)
    each.take(7, NOW, WALL)
    each.load(each.clock.start, 500, 0)
    assert each.spent == 537
    assert each.own == 37
    each.load(each.clock.start, 530, 1)
    assert each.spent == 537
    each.load(each.clock.start - 1, 9, 9)
    assert each.spent == 537


def test_a_sum_that_held_more_than_was_known_then_is_not_counted_twice_for_ever() -> None:
    notes = SpendingNotes()
    each = counter(DAY, notes=notes)
    notes.mark = 1
    spend(each, 30)
    each.load(each.clock.start, 30, 0)  # in the ledger, which has not reported it yet
    assert each.spent == 60
    assert notes.unloaded == {each}
    assert not each.unchanged(each.clock.start, 1)
    assert (each.spent, each.own) == (30, 0)


def test_what_is_not_in_the_ledger_stays_where_its_sum_has_not_changed() -> None:
    notes = SpendingNotes()
    each = counter(DAY, notes=notes)
    notes.mark = 2
    spend(each, 30)
    assert each.unchanged(each.clock.start, 1)
    assert each.unchanged(each.clock.start - 1, 2)  # the period before
    assert each.own == 30
    assert not each.unchanged(each.clock.end, 1)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200))
def test_parts_that_wait_for_the_ledger_are_few_and_none_is_lost(amounts: list[int]) -> None:
    notes = SpendingNotes()
    each = counter(DAY, notes=notes)
    for number, amount in enumerate(amounts):
        notes.mark = number
        spend(each, amount)
        assert each.spent == sum(amounts[: number + 1])
    assert len(each._older or ()) <= MAX_MARKS
    each.load(each.clock.start, sum(amounts), len(amounts))
    assert (each.spent, each.own) == (sum(amounts), 0)


def test_the_word_of_others_counts_for_ten_seconds() -> None:
    each = counter(DAY)
    each.apply_others(900, 0, 90, NOW)
    assert each.lacks(11, NOW, WALL)
    each.apply_others(890, 0, 10, NOW + 1)
    assert not each.lacks(100, NOW + 1, WALL)
    assert each.lacks(101, NOW + 1 + STATEMENT_HOLDS, WALL)
    assert not each.lacks(1000, NOW + 2 + STATEMENT_HOLDS, WALL)


def test_each_step_is_reached_once_by_what_is_settled_and_stays_for_the_period() -> None:
    notes = SpendingNotes()
    each = counter(REJECT, ROUTE, WARN, notes=notes)
    spend(each, 49 * NANO)
    each.take(40 * NANO, NOW, WALL)
    each.settle(40 * NANO, 2 * NANO)
    assert (names(each), list(notes.reached)) == ([], [("team t", WARN)])
    spend(each, 29 * NANO)
    assert names(each) == ["cheap"]
    assert list(notes.reached) == [("team t", WARN), ("team t", ROUTE)]
    assert not each.lacks(20 * NANO, NOW, WALL)
    assert each.lacks(21 * NANO, NOW, WALL)
    assert each.routes(NOW, float(each.clock.end)) == ()
    spend(each, 50 * NANO)
    assert list(notes.reached)[2:] == [("team t", WARN)]


def test_refusing_comes_before_routing_and_routing_before_warning() -> None:
    each = counter(WARN, ROUTE, REJECT)
    spend(each, 100 * NANO)
    assert each.lacks(1, NOW, WALL)
    assert names(each) == ["cheap"]
    assert each.rules.refuses == REJECT


def test_a_raised_budget_holds_at_once_and_keeps_what_is_spent() -> None:
    notes = SpendingNotes()
    each = counter(REJECT, ROUTE, notes=notes)
    spend(each, 100 * NANO)
    raised = ScopeBudget(Unit.USD, 200 * NANO, Period.MONTH)
    each.follow(rules_of([raised, ScopeBudget(Unit.USD, 200 * NANO, Period.MONTH, 0.8, "route", "cheap")]), each.clock)
    assert names(each) == []
    assert not each.lacks(100 * NANO, NOW, WALL)
    assert each.lacks(101 * NANO, NOW, WALL)
    each.follow(rules_of([REJECT, ROUTE]), each.clock)
    assert names(each) == ["cheap"]


def test_a_budget_that_was_reached_is_not_told_again_by_a_reload() -> None:
    notes = SpendingNotes()
    each = counter(WARN, notes=notes)
    spend(each, 60 * NANO)
    notes.reached.clear()
    each.follow(rules_of([WARN, REJECT]), each.clock)
    assert list(notes.reached) == []
    assert each.reached == (WARN,)


def test_the_ledger_and_the_others_reach_steps_too() -> None:
    each = counter(ROUTE)
    each.load(each.clock.start, 85 * NANO, 0)
    assert names(each) == ["cheap"]
    other = counter(ROUTE)
    other.apply_others(85 * NANO, 0, 0, NOW)
    assert names(other) == ["cheap"]


def test_another_time_zone_keeps_what_is_spent() -> None:
    each = counter(DAY)
    spend(each, 600)
    tokyo = PeriodClock(Period.DAY, ZoneInfo("Asia/Tokyo"), WALL)
    each.follow(each.rules, tokyo)
    assert each.lacks(401, NOW, WALL)
    assert not each.lacks(401, NOW, float(tokyo.end))


def test_a_ledger_that_is_ahead_of_this_process_begins_its_period() -> None:
    each = counter(DAY)
    spend(each, 600)
    each.clock.move(each.clock.end)
    each.load(each.clock.start, 11, 0)
    assert each.spent == 11


def test_a_cost_that_nobody_knows_is_refused_or_nothing_as_the_budget_says() -> None:
    assert not counter(REJECT).lacks(None, NOW, WALL)
    strict = counter(ScopeBudget(Unit.USD, NANO, Period.MONTH, 0.9, "warn", unpriced="reject"), REJECT)
    assert strict.lacks(None, NOW, WALL)
    assert not strict.lacks(0, NOW, WALL)
    each = counter(REJECT)
    each.take(None, NOW, WALL)
    each.settle(None, None)
    assert each.spent == 0


def test_warnings_alone_refuse_nothing() -> None:
    each = counter(WARN)
    spend(each, 10**6 * NANO)
    assert not each.lacks(10**6 * NANO, NOW, WALL)
    assert each.rules.most == math.inf
    assert each.remaining(NOW, WALL) > 10**17


@pytest.mark.parametrize("limits", [(DAY,), (REJECT, ROUTE, WARN)])
def test_the_lowest_limit_that_refuses_is_named(limits: tuple[Quota | ScopeBudget, ...]) -> None:
    assert rules_of(limits).refuses == limits[0]
    assert rules_of(limits).limits == limits


def test_looking_changes_nothing_also_after_the_period_ended() -> None:
    each = counter(WARN)
    spend(each, 60 * NANO)
    each.take(5 * NANO, NOW, WALL)
    each.apply_others(67 * NANO, 0, 7 * NANO, NOW)
    end = each.clock.end
    before = [(name, getattr(each, name)) for name in SpendingCounter.__slots__]
    (view,) = each.views("team t", NOW + STATEMENT_HOLDS + 1, WALL)
    assert (view.used, view.reached, view.ends) == (65 * NANO, True, end)
    (view,) = each.views("team t", NOW, float(end))
    assert (view.used, view.reached) == (5 * NANO, False)
    assert view.ends is not None
    assert view.ends > end
    assert [(name, getattr(each, name)) for name in SpendingCounter.__slots__] == before
    assert each.clock.end == end
