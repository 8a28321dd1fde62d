"""The registry that every request calls: it admits all units or none, survives reloads, and reports its state."""

import tracemalloc
from collections.abc import Mapping
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.limits.limit import NANO, Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.limits.limit_registry import NOTHING_RESERVED, LimitRegistry
from proxy.limits.limit_views import Exceeded, LimitKind
from proxy.limits.reservation import Meters, Reservation
from tests.proxy.limits.kit.simulation import BERLIN, WALL
from tests.support.not_none import not_none

SCOPES = ("team t", "key t/k", "team t model m")


def per_minute(unit: Unit, amount: int) -> Rate:
    return Rate(unit, amount, Period.MINUTE, amount)


REQUESTS = per_minute(Unit.REQUESTS, 60)
TOKENS = per_minute(Unit.TOKENS, 1000)


class RegistryRig:
    """A registry and a settable clock."""

    def __init__(
        self, limits: Mapping[str, Limits], budgets: Mapping[str, tuple[ScopeBudget, ...]] | None = None
    ) -> None:
        self.now = 0.0
        self.registry = LimitRegistry(lambda: self.now, lambda: WALL + self.now)
        self.use(limits, budgets)

    def use(self, limits: Mapping[str, Limits], budgets: Mapping[str, tuple[ScopeBudget, ...]] | None = None) -> None:
        self.registry.use(limits, budgets or {}, BERLIN, self.now)

    def ask(self, tokens: int = 1, cost: int | None = 0) -> Reservation | Exceeded:
        outcome = self.registry.admit(SCOPES, tokens, cost, self.now, WALL + self.now)
        assert outcome is not None
        return outcome

    def take(self, tokens: int = 1, cost: int | None = 0) -> Reservation:
        outcome = self.ask(tokens, cost)
        assert isinstance(outcome, Reservation)
        return outcome

    def refused(self, tokens: int = 1, cost: int | None = 0) -> Exceeded:
        outcome = self.ask(tokens, cost)
        assert isinstance(outcome, Exceeded)
        return outcome

    def left(self) -> dict[tuple[str, str], int]:
        views = self.registry.views(self.now, WALL + self.now)
        return {(each.scope, f"{each.kind} {each.unit}"): each.remaining for each in views}


def test_a_request_without_limits_holds_nothing_and_makes_nothing() -> None:
    desk = RegistryRig({"team other": Limits((REQUESTS,))})
    assert desk.ask() is NOTHING_RESERVED
    assert NOTHING_RESERVED.meters.facts(0.0, WALL) == (None, None, "", "")
    NOTHING_RESERVED.settle(5, 5)
    NOTHING_RESERVED.release()
    assert list(desk.registry.views(0.0, WALL)) == []


def test_thirty_of_thirty_at_sixty_a_minute_pass_and_the_sixty_first_does_not() -> None:
    desk = RegistryRig({"team t": Limits((REQUESTS,))})
    for _ in range(60):
        desk.take()
    told = desk.refused()
    assert told == Exceeded("team t", LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 60, 60, 1, told.wait, None)
    assert told.wait == pytest.approx(1.0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "settle", "release", "wait"]), st.integers(1, 900), st.integers(0, 900)),
        max_size=40,
    )
)
def test_all_limits_are_taken_together_or_none_is(steps: list[tuple[str, int, int]]) -> None:
    desk = RegistryRig(
        {
            "team t": Limits((REQUESTS, TOKENS), (Quota(Unit.TOKENS, 3000, Period.DAY),), 4),
            "key t/k": Limits((per_minute(Unit.REQUESTS, 5),)),
            "team t model m": Limits((), (Quota(Unit.REQUESTS, 20, Period.HOUR),)),
        },
        {"team t": (ScopeBudget(Unit.USD, 5000, Period.DAY),)},
    )
    desk.take().settle(1, 0)
    held: list[Reservation] = []
    for step, units, used in steps:
        before = desk.left()
        match step:
            case "take":
                outcome = desk.ask(units, units)
                if isinstance(outcome, Exceeded):
                    assert desk.left() == before
                else:
                    held.append(outcome)
                    assert desk.left()["key t/k", "rate requests"] == before["key t/k", "rate requests"] - 1
            case "settle" if held:
                held.pop().settle(used, used)
            case "release" if held:
                held.pop().release()
            case _:
                desk.now += units / 100
    for each in held:
        each.release()
    assert desk.left()["team t", "concurrent requests"] == 4


def test_a_request_refused_for_places_uses_up_nothing_else() -> None:
    desk = RegistryRig({"team t": Limits((REQUESTS,), concurrent=1)})
    running = desk.take()
    for _ in range(200):
        assert desk.refused().kind is LimitKind.CONCURRENT
    running.settle(1, 0)
    assert desk.left() == {("team t", "rate requests"): 59, ("team t", "concurrent requests"): 1}


def test_a_reservation_ends_once() -> None:
    desk = RegistryRig({"team t": Limits((TOKENS,), concurrent=2)})
    running = desk.take(500)
    running.settle(200, 0)
    running.settle(900, 0)
    running.release()
    assert desk.left() == {("team t", "rate tokens"): 800, ("team t", "concurrent requests"): 2}


def test_what_was_never_sent_is_as_if_it_had_not_been() -> None:
    desk = RegistryRig({"team t": Limits((REQUESTS, TOKENS), (Quota(Unit.REQUESTS, 5, Period.DAY),))})
    desk.take(900).release()
    assert desk.left() == {
        ("team t", "rate requests"): 60,
        ("team t", "rate tokens"): 1000,
        ("team t", "quota requests"): 5,
    }


def test_the_refusal_that_lasts_longest_is_told() -> None:
    desk = RegistryRig({"team t": Limits((TOKENS,), (Quota(Unit.REQUESTS, 1, Period.DAY),))})
    desk.take(1000).settle(1000, 0)
    told = desk.refused(500)
    assert (told.kind, told.limit, told.used, told.requested) == (LimitKind.QUOTA, 1, 1, 1)
    assert told.wait == not_none(told.ends) - WALL
    desk.now = told.wait
    desk.take(500)


def test_a_limit_below_one_request_passes_it_and_then_asks_to_wait() -> None:
    desk = RegistryRig({"team t": Limits((per_minute(Unit.TOKENS, 60),))})
    desk.take(600)
    assert desk.refused(600).wait == pytest.approx(600)
    desk.now = 600.1
    desk.take(600)


def test_a_cost_that_nobody_knows_is_told_apart() -> None:
    strict = ScopeBudget(Unit.USD, 5 * NANO, Period.MONTH, unpriced="reject")
    desk = RegistryRig({}, {"team t": (strict,)})
    assert desk.refused(10, None).kind is LimitKind.UNPRICED
    desk.take(10, 4 * NANO)
    assert desk.refused(10, 2 * NANO).kind is LimitKind.BUDGET
    desk.use({}, {"team t": (ScopeBudget(Unit.USD, 5 * NANO, Period.MONTH),)})
    desk.take(10, None)


def test_a_budget_that_is_largely_spent_leads_to_another_name() -> None:
    budgets = (
        ScopeBudget(Unit.USD, 10 * NANO, Period.MONTH),
        ScopeBudget(Unit.USD, 10 * NANO, Period.MONTH, 0.8, "route", "cheap"),
        ScopeBudget(Unit.USD, 10 * NANO, Period.MONTH, 0.9, "route", "cheapest"),
        ScopeBudget(Unit.USD, 4 * NANO, Period.DAY, 0.5, "warn"),
    )
    desk = RegistryRig({}, {"team t": budgets})
    assert desk.registry.route_of("team t", 0.0, WALL) is None
    assert desk.registry.route_of("team other", 0.0, WALL) is None
    desk.take(1, 8 * NANO).settle(1, 8 * NANO)
    assert desk.registry.route_of("team t", 0.0, WALL) == "cheap"
    desk.take(1, NANO).settle(1, NANO)
    assert desk.registry.route_of("team t", 0.0, WALL) == "cheapest"
    assert [budget.then for _, budget in desk.registry.notes.reached] == ["route", "warn", "route"]
    desk.refused(1, 2 * NANO)


def test_headers_name_the_tightest_limit_of_each_kind() -> None:
    desk = RegistryRig(
        {
            "team t": Limits((REQUESTS, per_minute(Unit.TOKENS, 160_000)), (Quota(Unit.REQUESTS, 3, Period.DAY),), 9),
            "key t/k": Limits((per_minute(Unit.REQUESTS, 30),)),
        },
        {"team t": (ScopeBudget(Unit.TOKENS, 10, Period.MONTH, then="warn"),)},
    )
    held = desk.take(24)
    requests, tokens, *scopes = held.meters.facts(desk.now, WALL)
    assert desk.registry.facts(SCOPES, desk.now, WALL) == (requests, tokens, *scopes)
    assert scopes == ["team t", "team t"]
    assert desk.registry.facts(("team other",), desk.now, WALL) == (None, None, "", "")
    assert requests is not None
    assert requests[:2] == (2, 3)
    assert tokens is not None
    assert tokens[:2] == (159_976, 160_000)
    assert tokens[2] == pytest.approx(0.009)


def test_a_reload_keeps_what_was_counted_and_a_new_amount_holds_at_once() -> None:
    desk = RegistryRig(
        {"team t": Limits((REQUESTS,), (Quota(Unit.TOKENS, 100, Period.DAY),), 3)},
        {"team t": (ScopeBudget(Unit.USD, 50, Period.DAY),)},
    )
    running = desk.take(40, 40)
    desk.use(
        {"team t": Limits((per_minute(Unit.REQUESTS, 30),), (Quota(Unit.TOKENS, 60, Period.DAY),), 2)},
        {"team t": (ScopeBudget(Unit.USD, 90, Period.DAY),)},
    )
    assert desk.left() == {
        ("team t", "rate requests"): 29,
        ("team t", "quota tokens"): 20,
        ("team t", "concurrent requests"): 1,
        ("team t", "budget usd"): 50,
    }
    running.settle(10, 10)
    assert desk.left()["team t", "quota tokens"] == 50
    assert desk.left()["team t", "concurrent requests"] == 2


def test_a_team_that_is_gone_has_no_limits_and_its_requests_end() -> None:
    desk = RegistryRig({"team t": Limits((REQUESTS,), concurrent=1)})
    running = desk.take()
    desk.use({})
    assert desk.ask() is NOTHING_RESERVED
    running.settle(1, 0)
    desk.use({"team t": Limits((REQUESTS,), concurrent=1)})
    assert desk.left() == {}
    desk.take()


def test_limits_that_are_gone_or_new_leave_the_others_as_they_are() -> None:
    desk = RegistryRig({"team t": Limits((REQUESTS, TOKENS))})
    desk.take(400)
    desk.use({"team t": Limits((TOKENS,), (Quota(Unit.TOKENS, 500, Period.DAY),))})
    assert desk.left() == {("team t", "rate tokens"): 600, ("team t", "quota tokens"): 500}


def test_another_time_zone_moves_the_end_of_periods() -> None:
    desk = RegistryRig({"team t": Limits((), (Quota(Unit.REQUESTS, 1, Period.DAY),))})
    desk.take()
    before = desk.refused().ends
    desk.registry.use(
        {"team t": Limits((), (Quota(Unit.REQUESTS, 1, Period.DAY),))}, {}, ZoneInfo("Asia/Tokyo"), desk.now
    )
    after = desk.refused().ends
    assert before is not None
    assert after is not None
    assert (before - after) % 86400 == 8 * 3600


def test_after_a_restart_the_ledger_says_what_is_spent() -> None:
    desk = RegistryRig(
        {"team t": Limits((), (Quota(Unit.TOKENS, 1000, Period.DAY),))},
        {"team t": (ScopeBudget(Unit.USD, 100, Period.MONTH),)},
    )
    day, month = (desk.registry.periods(WALL)[each] for each in (Period.DAY, Period.MONTH))
    assert day[0] <= WALL < day[1] <= month[1]
    desk.registry.load(Period.DAY, day[0], {"team t": (9, 990, 77), "team x": (1, 1, 1)}, 0)
    desk.registry.load(Period.MONTH, month[0], {"team t": (99, 5000, 95)}, 0)
    assert desk.left() == {("team t", "quota tokens"): 10, ("team t", "budget usd"): 5}
    assert desk.refused(11).kind is LimitKind.QUOTA
    assert desk.refused(5, 6).kind is LimitKind.BUDGET
    desk.registry.notes.mark = 1
    desk.take(10, 5).settle(10, 5)
    desk.registry.load(Period.DAY, day[0], {"team t": (10, 1000, 82)}, 1)
    assert desk.left()["team t", "quota tokens"] == 0


def test_a_deployment_at_its_limit_says_how_long() -> None:
    desk = RegistryRig({"deployment a": Limits((REQUESTS,), concurrent=61)})
    for _ in range(60):
        assert isinstance(desk.registry.try_target(("deployment a", "vendor v"), 100, 0, 0.0, WALL), Reservation)
    told = desk.registry.try_target(("deployment a", "vendor v"), 100, 0, 0.0, WALL)
    assert isinstance(told, Exceeded)
    assert (told.scope, told.kind) == ("deployment a", LimitKind.RATE)
    assert told.wait == pytest.approx(1.0)


def test_what_counts_for_several_scopes_is_joined_once_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, scopes = RegistryRig({"team t": Limits((REQUESTS,)), "key t/k": Limits((TOKENS,))}), ("team t", "key t/k")
    first, second = (desk.registry.begin(scopes, 1, 0, 0.0, WALL) for _ in range(2))
    assert first is second
    monkeypatch.setattr("proxy.limits.limit_registry.MAX_JOINED", 1)
    assert desk.registry.begin(scopes[::-1], 1, 0, 0.0, WALL) is not first
    assert len(desk.registry._joined) == 1
    desk.registry.use({"team t": Limits((REQUESTS,)), "key t/k": Limits((REQUESTS,))}, {}, UTC, 0.0)
    after = desk.registry.begin(scopes, 1, 0, 0.0, WALL)
    assert isinstance(after, Meters)
    assert [rate.rule.rate for rate in after.rates] == [REQUESTS, REQUESTS]


def test_thousands_of_teams_take_a_kilobyte_each() -> None:
    names = [f"team number-{number}" for number in range(2_000)]
    limits = {name: Limits((REQUESTS, TOKENS), concurrent=64) for name in names}
    budgets = {name: (ScopeBudget(Unit.USD, 500 * NANO, Period.MONTH),) for name in names}
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    desk = RegistryRig(limits, budgets)
    for name in names:
        outcome = desk.registry.admit((name,), 100, 100, 1.5 + len(name), WALL)
        assert isinstance(outcome, Reservation)
        outcome.settle(90, 90)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken / len(names) <= 1024
