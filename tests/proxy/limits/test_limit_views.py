"""The report of each limit and budget."""

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import Slots
from proxy.limits.gcra import LocalRate, rule_of
from proxy.limits.limit import Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.limits.limit_views import LimitKind, LimitView, limit_labels, most_used, unused_views
from proxy.limits.spending import SpendingCounter, SpendingNotes, rules_of
from tests.proxy.limits.kit.simulation import BERLIN, WALL


def test_a_rate_shows_its_amount_and_what_is_used_of_its_burst() -> None:
    meter = LocalRate(rule_of(Rate(Unit.REQUESTS, 60, Period.MINUTE, 30)))
    meter.take(20, 0.0, WALL)
    (view,) = meter.views("team t", 0.0, WALL)
    assert view == LimitView("team t", LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 60, 20, burst=30)
    assert (view.remaining, view.ratio) == (10, 2 / 3)


def test_places_show_how_many_are_taken() -> None:
    meter = Slots(2)
    for used in (0, 1, 2):
        (view,) = meter.views("team t", 0.0, WALL)
        assert (view.used, view.remaining, view.reached) == (used, 2 - used, used == 2)
        meter.take(1, 0.0, WALL)
    (none,) = Slots(0).views("team t", 0.0, WALL)
    assert none.ratio == 1


def test_each_quota_and_budget_of_a_counter_is_shown() -> None:
    limits = (
        Quota(Unit.TOKENS, 1000, Period.DAY),
        ScopeBudget(Unit.TOKENS, 800, Period.DAY, 0.5, "warn"),
        ScopeBudget(Unit.TOKENS, 900, Period.DAY, 0.9, "route", "cheap"),
        ScopeBudget(Unit.TOKENS, 500, Period.DAY),
    )
    meter = SpendingCounter("team t", rules_of(limits), PeriodClock(Period.DAY, BERLIN, WALL), SpendingNotes())
    meter.take(550, 0.0, WALL)
    meter.settle(550, 550)
    views = list(meter.views("team t", 0.0, WALL))
    assert [(each.kind, each.limit, each.used, each.then, each.reached) for each in views] == [
        (LimitKind.QUOTA, 1000, 550, "reject", False),
        (LimitKind.BUDGET, 800, 550, "warn", True),
        (LimitKind.BUDGET, 900, 550, "route", False),
        (LimitKind.BUDGET, 500, 550, "reject", True),
    ]
    assert {each.ends for each in views} == {meter.clock.end}
    assert views[3].remaining == 0


def test_a_scope_has_a_view_of_each_of_its_limits_before_any_is_used() -> None:
    ends = {Period.DAY: 10, Period.WEEK: 20}
    limits = Limits((Rate(Unit.TOKENS, 60, Period.MINUTE, 10),), (Quota(Unit.TOKENS, 9, Period.DAY),), 3)
    views = list(unused_views("team a", limits, (ScopeBudget(Unit.TOKENS, 8, Period.WEEK, 0.5, "warn"),), ends))
    assert [(each.kind.value, each.limit, each.most, each.used) for each in views] == [
        ("rate", 60, 10, 0),
        ("quota", 9, 9, 0),
        ("budget", 8, 8, 0),
        ("concurrent", 3, 3, 0),
    ]
    assert (views[2].at, views[2].then) == (0.5, "warn")
    assert [each.ends for each in views] == [None, 10, 20, None]


def test_what_is_used_most_comes_first() -> None:
    views = [LimitView(scope, LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 10, used) for scope, used in USED.items()]
    assert [each.scope for each in most_used(views)] == ["team c", "team a", "team b"]


USED = {"team a": 5, "team b": 1, "team c": 9}


def test_labels_have_the_team_and_what_is_limited() -> None:
    assert limit_labels("team a model m", Unit.TOKENS, Period.DAY) == ("a", "m: tokens per day")
    assert limit_labels("key a/ci", Unit.REQUESTS, None) == ("a", "key ci: requests at once")
    assert limit_labels("user a/b/0f", Unit.USD, Period.DAY) == ("a/b", "each user: usd per day")
    assert limit_labels("vendor v", Unit.REQUESTS, Period.MINUTE) == ("", "vendor v: requests per minute")
