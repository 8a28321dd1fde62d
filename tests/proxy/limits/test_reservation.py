"""What a request holds, and what it is told of each kind of limit."""

import pytest

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import Places
from proxy.limits.gcra import LocalRate, rule_of
from proxy.limits.limit import Period, Quota, Rate, TeamBudget, Unit
from proxy.limits.limit_views import Exceeded, LimitKind
from proxy.limits.reservation import PLACE, Meter, Meters, Reservation, joined
from proxy.limits.spending import SpendingCounter, SpendingNotes, rules_of
from tests.proxy.limits.kit.simulation import BERLIN, WALL

RATE = Rate(Unit.TOKENS, 600, Period.MINUTE, 100)
QUOTA = Quota(Unit.TOKENS, 500, Period.DAY)


def rate() -> LocalRate:
    return LocalRate(rule_of(RATE))


def counter(limit: Quota | TeamBudget) -> SpendingCounter:
    return SpendingCounter("team t", rules_of([limit]), PeriodClock(limit.period, BERLIN, WALL), SpendingNotes())


def test_a_rate_says_how_much_of_its_burst_is_used_and_how_long_to_wait() -> None:
    meter = rate()
    meter.take(80, 0.0, WALL)
    told = meter.exceeded("team t", 50, 0.0, WALL)
    assert told == Exceeded("team t", LimitKind.RATE, Unit.TOKENS, Period.MINUTE, 600, 80, 50, told.wait, None)
    assert told.wait == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("limit", "kind"),
    [
        (Quota(Unit.TOKENS, 5, Period.DAY), LimitKind.QUOTA),
        (TeamBudget(Unit.TOKENS, 5, Period.DAY), LimitKind.BUDGET),
    ],
)
def test_what_is_counted_by_the_calendar_says_when_it_ends(limit: Quota | TeamBudget, kind: LimitKind) -> None:
    meter = counter(limit)
    meter.take(4, 0.0, WALL)
    told = meter.exceeded("team t", 3, 0.0, WALL)
    assert (told.kind, told.limit, told.used, told.requested) == (kind, 5, 4, 3)
    assert told.ends == meter.clock.end
    assert told.wait == meter.clock.end - WALL


def test_what_is_left_is_told_from_what_is_spent_and_what_is_reserved() -> None:
    meter = counter(TeamBudget(Unit.TOKENS, 10, Period.DAY, 0.8))
    meter.take(5, 0.0, WALL)
    held = meter.exceeded("team t", 4, 0.0, WALL)
    assert (held.limit, held.used, held.reserved, held.unspent) == (8, 5, 5, True)
    meter.settle(5, 8)
    spent = meter.exceeded("team t", 4, 0.0, WALL)
    assert (spent.used, spent.reserved, spent.unspent) == (8, 0, False)


def test_a_cost_that_nobody_knows_is_no_amount() -> None:
    meter = counter(TeamBudget(Unit.USD, 5, Period.DAY, 0.5, "warn", unpriced="reject"))
    told = meter.exceeded("team t", None, 0.0, WALL)
    assert (told.kind, told.limit, told.requested) == (LimitKind.UNPRICED, 0, 0)


def test_places_say_how_many_are_taken() -> None:
    meter = Places(1)
    meter.take(1, 0.0, WALL)
    told = meter.exceeded("team t", 1, 0.0, WALL)
    assert (told.kind, told.limit, told.used, told.period) == (LimitKind.CONCURRENT, 1, 1, None)
    assert told.wait > 0


def test_headers_speak_of_rates_and_quotas_only() -> None:
    quota = counter(Quota(Unit.REQUESTS, 7, Period.DAY))
    budget = counter(TeamBudget(Unit.TOKENS, 5, Period.DAY))
    tokens, places = rate(), Places(3)
    meters: list[Meter] = [tokens, quota, budget, places]
    resets = quota.clock.end - WALL
    assert [each.shown(0.0, WALL) for each in meters] == [(100, 600, 0.0), (7, 7, resets), None, None]
    held = Meters((places,), (tokens,), (quota, budget))
    assert held.facts(0.0, WALL) == ((7, 7, resets), (100, 600, 0.0))
    assert list(held) == [(PLACE, places), (1, tokens), (0, quota), (1, budget)]


def test_of_several_scopes_headers_show_the_tightest() -> None:
    first, second = rate(), rate()
    second.take(80, 0.0, WALL)
    both = joined([Meters((), (first,), ()), Meters((Places(1),), (second,), (counter(QUOTA),))])
    assert both.facts(0.0, WALL) == (None, second.shown(0.0, WALL))
    second.settle(80, 0)
    both.counters[0].take(450, 0.0, WALL)
    assert both.facts(0.0, WALL) == (None, (50, 500, both.counters[0].clock.end - WALL))


def test_what_one_refuses_is_put_back_into_those_before_it() -> None:
    places, first, second = Places(2), rate(), rate()
    held = Meters((places,), (first, second), ())
    assert places.attempt()
    assert first.attempt(90, 0.0, WALL)
    second.take(100, 0.0, WALL)
    assert not second.attempt(90, 0.0, WALL)
    held.undo(second, 90)
    assert (places.used, first.remaining(0.0, WALL), second.remaining(0.0, WALL)) == (0, 100, 0)


def test_it_settles_each_unit_by_its_own_amount_and_once() -> None:
    tokens, usd, requests = (
        rate(),
        counter(TeamBudget(Unit.USD, 50, Period.DAY)),
        counter(Quota(Unit.REQUESTS, 5, Period.DAY)),
    )
    held = Reservation(Meters((), (tokens,), (usd, requests)), 60, 30)
    for _, meter, units in ((1, tokens, 60), (2, usd, 30), (0, requests, 1)):
        meter.take(units, 0.0, WALL)
    held.settle(20, 12)
    held.settle(99, 99)
    held.release()
    assert (tokens.remaining(0.0, WALL), usd.spent, requests.spent) == (80, 12, 1)


def test_it_may_end_with_a_cost_that_nobody_knows() -> None:
    usd = counter(TeamBudget(Unit.USD, 50, Period.DAY))
    usd.take(30, 0.0, WALL)
    Reservation(Meters((), (), (usd,)), 60, 30).settle(5, None)
    assert usd.spent == 0
