"""The units that a request holds, and the facts that it gets about each kind of limit."""

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedSlots, Slots
from proxy.limits.gcra import LocalRate, rule_of
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.limits.limit_views import Exceeded, HeaderLimit, LimitKind
from proxy.limits.reservation import SLOT_INDEX, Meter, Meters, Reservation, join_meters
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingCounter, SpendingNotes, rules_of
from proxy.shared_state.lease import LeaseGrant
from tests.proxy.limits.kit.simulation import BERLIN, WALL
from tests.proxy.limits.kit.still_keeper import StillKeeper

RATE = Rate(Unit.TOKENS, 600, Period.MINUTE, 100)
QUOTA = Quota(Unit.TOKENS, 500, Period.DAY)


def rate() -> LocalRate:
    return LocalRate(rule_of(RATE))


def counter(limit: Quota | ScopeBudget) -> SpendingCounter:
    return SpendingCounter("team t", rules_of([limit]), PeriodClock(limit.period, BERLIN, WALL), SpendingNotes())


def test_a_rate_says_how_much_of_its_burst_is_used_and_how_long_to_wait() -> None:
    meter = rate()
    meter.take(80, 0.0, WALL)
    told = meter.exceeded("team t", 50, 0.0, WALL)
    assert told == Exceeded(
        "team t", LimitKind.RATE, Unit.TOKENS, Period.MINUTE, 600, 80, 50, told.wait, None, burst=100
    )
    assert told.wait == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("limit", "kind"),
    [(Quota(Unit.TOKENS, 5, Period.DAY), LimitKind.QUOTA), (ScopeBudget(Unit.TOKENS, 5, Period.DAY), LimitKind.BUDGET)],
)
def test_what_is_counted_by_the_calendar_says_when_it_ends(limit: Quota | ScopeBudget, kind: LimitKind) -> None:
    meter = counter(limit)
    meter.take(4, 0.0, WALL)
    told = meter.exceeded("team t", 3, 0.0, WALL)
    assert (told.kind, told.limit, told.used, told.requested) == (kind, 5, 4, 3)
    assert told.ends == meter.clock.end
    assert told.wait == meter.clock.end - WALL


def test_what_is_left_is_told_from_what_is_spent_and_what_is_reserved() -> None:
    meter = counter(ScopeBudget(Unit.TOKENS, 10, Period.DAY, 0.8))
    meter.take(5, 0.0, WALL)
    held = meter.exceeded("team t", 4, 0.0, WALL)
    assert (held.limit, held.used, held.reserved, held.unspent) == (8, 5, 5, True)
    meter.settle(5, 8)
    spent = meter.exceeded("team t", 4, 0.0, WALL)
    assert (spent.used, spent.reserved, spent.unspent) == (8, 0, False)


def test_a_cost_that_nobody_knows_is_no_amount() -> None:
    meter = counter(ScopeBudget(Unit.USD, 5, Period.DAY, 0.5, "warn", unpriced="reject"))
    told = meter.exceeded("team t", None, 0.0, WALL)
    assert (told.kind, told.limit, told.requested) == (LimitKind.UNPRICED, 5, 0)


def test_places_say_how_many_are_taken() -> None:
    meter = Slots(1)
    meter.take(1, 0.0, WALL)
    told = meter.exceeded("team t", 1, 0.0, WALL)
    assert (told.kind, told.limit, told.used, told.period) == (LimitKind.CONCURRENT, 1, 1, None)
    assert told.wait > 0


def test_headers_speak_of_rates_and_quotas_only() -> None:
    quota = counter(Quota(Unit.REQUESTS, 7, Period.DAY))
    budget = counter(ScopeBudget(Unit.TOKENS, 5, Period.DAY))
    tokens, slots = rate(), Slots(3)
    meters: list[Meter] = [tokens, quota, budget, slots]
    resets = quota.clock.end - WALL
    assert [each.for_headers(0.0, WALL) for each in meters] == [(100, 600, 0.0), (7, 7, resets), None, None]
    held = Meters((slots,), (tokens,), (quota, budget))
    assert held.facts(0.0, WALL) == ((7, 7, resets), (100, 600, 0.0), "team t", "")
    assert list(held) == [(SLOT_INDEX, slots), (1, tokens), (0, quota), (1, budget)]


def test_of_several_scopes_headers_show_the_tightest() -> None:
    first, second = rate(), LocalRate(rule_of(RATE), scope="key t/ci")
    second.take(80, 0.0, WALL)
    both = join_meters([Meters((), (first,), ()), Meters((Slots(1),), (second,), (counter(QUOTA),))])
    assert both.facts(0.0, WALL) == (None, second.for_headers(0.0, WALL), "", "key t/ci")
    second.settle(80, 0)
    both.counters[0].take(450, 0.0, WALL)
    assert both.facts(0.0, WALL) == (None, (50, 500, both.counters[0].clock.end - WALL), "", "team t")


def test_what_one_refuses_is_put_back_into_those_before_it() -> None:
    slots, first, second = Slots(2), rate(), rate()
    held = Meters((slots,), (first, second), ())
    assert slots.attempt()
    assert first.attempt(90, 0.0, WALL)
    second.take(100, 0.0, WALL)
    assert not second.attempt(90, 0.0, WALL)
    held.undo(second, 90)
    assert (slots.used, first.remaining(0.0, WALL), second.remaining(0.0, WALL)) == (0, 100, 0)


def test_it_settles_each_unit_by_its_own_amount_and_once() -> None:
    tokens, usd, requests = (
        rate(),
        counter(ScopeBudget(Unit.USD, 50, Period.DAY)),
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
    usd = counter(ScopeBudget(Unit.USD, 50, Period.DAY))
    usd.take(30, 0.0, WALL)
    Reservation(Meters((), (), (usd,)), 60, 30).settle(5, None)
    assert usd.spent == 0


# The shortcuts of a request compared with the code that they stand for ------------------------------------------------

PERIODS = st.sampled_from((Period.HOUR, Period.MONTH))
LIMITS = st.builds(
    Limits,
    st.lists(
        st.builds(
            Rate,
            st.sampled_from((Unit.REQUESTS, Unit.TOKENS)),
            st.sampled_from((1, 7, 600, 10**11)),
            st.sampled_from((Period.SECOND, Period.MINUTE)),
            st.sampled_from((1, 5, 600)),
        ),
        max_size=3,
    ).map(tuple),
    st.lists(
        st.builds(Quota, st.sampled_from((Unit.REQUESTS, Unit.TOKENS)), st.sampled_from((3, 900)), PERIODS), max_size=2
    ).map(tuple),
    st.none() | st.integers(1, 4),
)
BUDGET = st.builds(
    ScopeBudget,
    st.sampled_from((Unit.TOKENS, Unit.USD)),
    st.sampled_from((1, 500)),
    PERIODS,
    st.sampled_from((1.0, 0.5)),
    st.sampled_from(("reject", "warn")),
    unpriced=st.sampled_from(("reject", "ignore")),
)
TOKENS = st.sampled_from((0, 1, 3, 50, 700, 10**9))
STEP = st.tuples(
    st.sampled_from((0.0, 0.0, 0.001, 0.3, 20.0, 5000.0, -3.0)),
    st.booleans(),
    TOKENS,
    st.none() | st.sampled_from((0, 1, 40, 10**6)),
    st.none() | st.tuples(TOKENS, st.none() | st.integers(0, 60)),
)
Step: TypeAlias = tuple[float, bool, int, int | None, tuple[int, int | None] | None]
"""The seconds that pass, whether the coordinator does not respond, the units that a request takes, and the units that
the last request in flight used; `None` if it continues."""


def made(limits: Limits, budgets: tuple[ScopeBudget, ...], keeper: StillKeeper | None) -> Meters:
    notes = SpendingNotes()
    slots: list[Slots] = []
    if limits.concurrent is not None:
        slots = [Slots(limits.concurrent) if keeper is None else LeasedSlots("team t", limits.concurrent, keeper)]
    rates = [
        LocalRate(rule_of(each)) if keeper is None else LeasedRate("team t", each, keeper) for each in limits.rates
    ]
    spending: tuple[Quota | ScopeBudget, ...] = (*limits.quotas, *budgets)
    counters = [
        SpendingCounter("team t", rules_of([each]), PeriodClock(each.period, BERLIN, WALL), notes)
        if keeper is None
        else SharedSpending("team t", rules_of([each]), PeriodClock(each.period, BERLIN, WALL), notes, keeper)
        for each in spending
    ]
    for lease in [*slots, *rates, *counters]:
        if isinstance(lease, LeasedSlots | LeasedRate | SharedSpending):
            lease.next_request(0.0)
            lease.apply_grant(LeaseGrant(3, 900.0, 0.5, 2), 0.0)
    return Meters(tuple(slots), tuple(rates), tuple(counters))


def take_each(meters: Meters, units: tuple[int, int, int | None], now: float, wall: float) -> bool:
    """Do the steps that `attempt` stands for: test and take each limit by itself, and give back the units if another
    limit refuses."""
    tokens = units[1]
    for counter in meters.counters:
        if counter.lacks(units[counter.rules.index], now, wall):
            return False
    for slots in meters.slots:
        if slots.lacks(1, now, wall):
            meters.undo(slots, tokens)
            return False
        slots.take(1, now, wall)
    for rate in meters.rates:
        if rate.lacks(units[rate.rule.index], now, wall):  # type: ignore[arg-type]  # no rate is of USD
            meters.undo(rate, tokens)
            return False
        rate.take(units[rate.rule.index], now, wall)  # type: ignore[arg-type]  # as above
    for counter in meters.counters:
        counter.take(units[counter.rules.index], now, wall)
    return True


def settle_each(meters: Meters, before: tuple[int, int, int | None], used: tuple[int, int, int | None]) -> None:
    """Do the steps that the end of a reservation stands for."""
    for index, meter in meters:
        reserved, now_used = ((*before, 1)[index], (*used, 0)[index])
        meter.settle(reserved, now_used)  # type: ignore[arg-type]  # a counter takes None too


def facts_of(meters: Meters, now: float, wall: float) -> list[HeaderLimit | None]:
    """Return the result that `facts` stands for."""
    shown = [(index, meter.for_headers(now, wall)) for index, meter in meters]
    return [min((each for at, each in shown if at == index and each is not None), default=None) for index in (0, 1)]


def nothing_used(meters: Meters, now: float, wall: float) -> bool:
    """Return the result that `unused` stands for."""
    rates = all(rate.for_headers(now, wall) == rate.rule.full for rate in meters.rates)
    return rates and all(counter.for_headers(now, wall) is None for counter in meters.counters)


def state(meters: Meters) -> list[object]:
    """Return all numbers of the counters, including the numbers of their leases."""
    every: list[object] = [meter for _, meter in meters]
    leases = [meter._held for _, meter in meters if isinstance(meter, LeasedRate) and meter._held is not None]
    every += [meter._claim for _, meter in meters if isinstance(meter, SharedSpending) and meter._claim is not None]
    every += [*leases, *(held.local for held in leases if held.local is not None)]
    skipped = {"_claim", "_held", "_keeper", "_notes", "clock", "freed", "local"}
    names = [[name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ())] for each in every]
    return [[getattr(it, name) for name in own if name not in skipped] for it, own in zip(every, names, strict=True)]


@pytest.mark.parametrize("leased", [False, True])
@given(LIMITS, st.lists(BUDGET, max_size=2).map(tuple), st.lists(STEP, max_size=12))
def test_what_is_written_out_does_what_the_meters_do(
    leased: bool, limits: Limits, budgets: tuple[ScopeBudget, ...], steps: list[Step]
) -> None:
    keepers = StillKeeper(), StillKeeper()
    short, long = (made(limits, budgets, keeper if leased else None) for keeper in keepers)
    now, open_ = 1.0, list[tuple[Reservation, tuple[int, int, int | None]]]()
    for passed, alone, tokens, paid, used in steps:
        now += passed
        for keeper in keepers:
            keeper.alone = alone
        units = (1, tokens, paid)
        passes = short.attempt(tokens, paid, now, WALL + now)
        assert passes is take_each(long, units, now, WALL + now)
        if passes:
            open_.append((Reservation(short, tokens, paid), units))
        assert list(short.facts(now, WALL + now)[:2]) == facts_of(long, now, WALL + now)
        assert short.unused(now) is nothing_used(long, now, WALL + now)
        if open_ and used is not None:
            reservation, units = open_.pop()
            reservation.settle(*used)
            settle_each(long, units, (1, *used))
        assert state(short) == state(long)
        assert keepers[0].noted == keepers[1].noted
