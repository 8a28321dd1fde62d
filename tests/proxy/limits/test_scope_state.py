"""The state that is created for a scope, when, and the part of it that stays when its limits change."""

from collections.abc import Sequence

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedSlots, Slots
from proxy.limits.gcra import LocalRate
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import UNLIMITED, Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.limits.reservation import SLOT_INDEX, Meter
from proxy.limits.scope_state import MeterMaker, ScopeState
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingCounter, SpendingNotes
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import BERLIN, WALL, SimulatedSource, World

RATE = Rate(Unit.REQUESTS, 60, Period.MINUTE, 60)
FULL = Limits((RATE,), (Quota(Unit.TOKENS, 500, Period.DAY),), 8)
BUDGETS = (
    ScopeBudget(Unit.TOKENS, 400, Period.DAY, then="warn"),
    ScopeBudget(Unit.USD, 400, Period.DAY),
    ScopeBudget(Unit.USD, 400, Period.MONTH),
)


def maker(leases: LeaseRegistry | None = None, shares: dict[str, tuple[float, int]] | None = None) -> MeterMaker:
    clocks = {period: PeriodClock(period, BERLIN, WALL) for period in (Period.DAY, Period.MONTH)}
    return MeterMaker(leases, SpendingNotes(), clocks, shares or {})


def test_quotas_and_budgets_of_one_unit_and_period_are_counted_once() -> None:
    state = ScopeState(FULL, BUDGETS)
    assert not state.made
    state.make("team t", maker(), 0.0)
    meters = [meter for _, meter in state]
    assert [type(each) for each in meters] == [Slots, LocalRate, SpendingCounter, SpendingCounter, SpendingCounter]
    assert [len(each.rules.limits) for each in state.counters] == [2, 1, 1]
    assert [index for index, _ in state] == [SLOT_INDEX, 0, 1, 2, 2]


def test_what_stays_is_the_same_object_with_other_numbers() -> None:
    first, made = ScopeState(FULL, BUDGETS), maker()
    first.make("team t", made, 0.0)
    before = dict(zip("prtdm", (meter for _, meter in first), strict=True))
    second = ScopeState(Limits((Rate(Unit.REQUESTS, 30, Period.MINUTE, 30),), concurrent=4), BUDGETS[1:])
    second.make("team t", made, 0.0, first)
    after = [meter for _, meter in second]
    assert after == [before[each] for each in "prdm"]
    assert isinstance(after[0], Slots)
    assert after[0].capacity == 4
    assert [meter for _, meter in first] == list(before.values())
    third = ScopeState(UNLIMITED, ())
    third.make("team t", made, 0.0, second)
    assert not list(third)


@in_virtual_time
async def test_leased_ones_are_exchanged_as_long_as_they_are_in_the_table() -> None:
    leases = LeaseRegistry(SimulatedSource(World(), "one"), 1, lambda: 0.0)
    state, made = ScopeState(FULL, BUDGETS), maker(leases, {"team t requests minute": (0.5, 7)})
    state.make("team t", made, 0.0)
    meters = [meter for _, meter in state]
    assert isinstance(meters[0], LeasedSlots)
    assert isinstance(meters[1], LeasedRate)
    assert meters[1].division(0.0) == (0.5, 7)
    for each in meters:
        each.take(1, 0.0, WALL)
    assert due_of(leases, meters) == meters
    other = ScopeState(Limits(concurrent=3), BUDGETS)
    other.make("team t", made, 0.0, state)
    assert due_of(leases, meters) == [meters[0], *meters[2:]]
    other.end(made)
    assert not due_of(leases, meters)


def due_of(leases: LeaseRegistry, meters: Sequence[Meter]) -> list[Meter]:
    """Return the meters that would be exchanged if all of them were due."""
    for each in meters:
        assert isinstance(each, LeasedSlots | LeasedRate | SharedSpending)
        leases.mark_due(each)
    due = {id(lease) for lease in leases._due}
    return [each for each in meters if id(each) in due]
