"""The meters of one scope, such as a team, a key, a vendor or a deployment. They are made when the scope is
first used."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, TypeVar

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedSlots, Slots
from proxy.limits.gcra import LocalRate, rule_of
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import INDEX, Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.limits.reservation import Meter, Meters
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingCounter, SpendingNotes, rules_of

L = TypeVar("L", LeasedRate, LeasedSlots)


@dataclass(slots=True, eq=False)
class MeterMaker:
    """A factory of meters. Without `leases`, a meter counts in this process alone. `shares` maps the key of a lease to
    this process's share of the limit before a restart, and the number of processes that used the limit. They apply
    until the coordinator has responded."""

    leases: LeaseRegistry | None
    notes: SpendingNotes
    clocks: dict[Period, PeriodClock] = field(default_factory=dict)
    shares: dict[str, tuple[float, int]] = field(default_factory=dict)

    def rate(self, scope: str, rate: Rate, now: float) -> LocalRate | LeasedRate:
        """Return the meter of a rate."""
        if self.leases is None:
            return LocalRate(rule_of(rate), scope=scope)
        return self._assumed(LeasedRate(scope, rate, self.leases), self.leases)

    def slots(self, scope: str, capacity: int) -> Slots:
        """Return the meter of the requests in flight."""
        if self.leases is None:
            return Slots(capacity)
        return self._assumed(LeasedSlots(scope, capacity, self.leases), self.leases)

    def counter(self, scope: str, limits: list[Quota | ScopeBudget]) -> SpendingCounter:
        """Return the counter of one unit in one kind of period."""
        rules, clock = rules_of(limits), self.clocks[limits[0].period]
        if self.leases is None:
            return SpendingCounter(scope, rules, clock, self.notes)
        return SharedSpending(scope, rules, clock, self.notes, self.leases)

    def _assumed(self, lease: L, leases: LeaseRegistry) -> L:
        """Return a lease. It gets its share from before a restart, unless the coordinator has responded already."""
        if not leases.has_answered and (known := self.shares.get(lease.key)):
            lease.assume(*known)
        return lease


class ScopeState(Meters):
    """The limits of one scope and their meters, which are made on first use. A request in flight refers to the state
    that it was admitted by, so a new configuration makes a new state."""

    __slots__ = ("budgets", "limits", "made")

    def __init__(self, limits: Limits, budgets: tuple[ScopeBudget, ...]) -> None:
        super().__init__((), (), ())
        self.limits = limits
        self.budgets = budgets
        self.made = False

    def make(self, scope: str, maker: MeterMaker, now: float, former: "ScopeState | None" = None) -> None:
        """Make the meters. A meter of `former` for the same unit and period is used again, with the units that it has
        counted."""
        before = {_kind(meter): meter for _, meter in former or ()}
        slots: tuple[Slots, ...] = ()
        rates: list[LocalRate | LeasedRate] = []
        counters: list[SpendingCounter] = []
        if self.limits.concurrent is not None:
            slot_meter = before.get(_CONCURRENT)
            if isinstance(slot_meter, Slots):
                slot_meter.capacity = self.limits.concurrent
            else:
                slot_meter = maker.slots(scope, self.limits.concurrent)
            slots = (slot_meter,)
        for rate in self.limits.rates:
            meter = before.get((rate.unit, rate.period))
            if isinstance(meter, LocalRate | LeasedRate):
                meter.follow(rate, now)
            else:
                meter = maker.rate(scope, rate, now)
            rates.append(meter)
        for kind, limits in self._spending().items():
            counter = before.get(kind)
            if isinstance(counter, SpendingCounter):
                counter.follow(rules_of(limits), maker.clocks[kind[1]])
            else:
                counter = maker.counter(scope, limits)
            counters.append(counter)
        self.hold(slots, tuple(rates), tuple(counters))
        self.made = True
        if former is not None:
            former.end(maker, {id(meter) for _, meter in self})

    def end(self, maker: MeterMaker, kept: Collection[int] = ()) -> None:
        """Stop exchanging the leases that are not `kept`, because the configuration no longer has them. Requests in
        flight still settle their units."""
        maker.notes.unloaded.difference_update([each for each in self.counters if id(each) not in kept])
        if maker.leases is not None:
            maker.leases.drop(
                meter
                for _, meter in self
                if isinstance(meter, LeasedRate | LeasedSlots | SharedSpending) and id(meter) not in kept
            )

    def load(self, period: Period, start: int, amounts: tuple[int, int, int], mark: int, touched: int) -> None:
        """Load the ledger's sums of the period that begins at `start`, as `SpendingCounter.load` does."""
        for counter in self.counters:
            if counter.clock.period is period:
                counter.load(start, amounts[INDEX[counter.rules.unit]], mark, touched)

    def route(self, now: float, wall: float) -> str | None:
        """Return the model name that budgets send requests to, `None` if they go to the requested one."""
        if not self.budgets:
            return None
        reached = [budget for counter in self.counters for budget in counter.routes(now, wall)]
        return max(reached, key=lambda budget: budget.at).route if reached else None

    def divisions(self, now: float) -> dict[str, tuple[float, int]]:
        """Return this process's share of each rate and of the slots, and the number of processes that use it, by lease
        key."""
        found = {}
        for meter in (*self.slots, *self.rates):
            if isinstance(meter, LeasedRate | LeasedSlots) and (known := meter.division(now)):
                found[meter.key] = known
        return found

    def _spending(self) -> dict[tuple[Unit, Period], list[Quota | ScopeBudget]]:
        """Return the quotas and budgets of each counter."""
        found: dict[tuple[Unit, Period], list[Quota | ScopeBudget]] = defaultdict(list)
        every: tuple[Quota | ScopeBudget, ...] = (*self.limits.quotas, *self.budgets)
        for limit in every:
            found[limit.unit, limit.period].append(limit)
        return found


_CONCURRENT: Final = "concurrent"


def _kind(meter: Meter) -> tuple[Unit, Period] | str:
    """Return the unit and the period that a meter counts, or `_CONCURRENT` for requests in flight. A configuration has
    each of these at most once for a scope."""
    match meter:
        case LocalRate() | LeasedRate():
            return meter.rule.rate.unit, meter.rule.rate.period
        case SpendingCounter():
            return meter.rules.unit, meter.clock.period
        case _:
            return _CONCURRENT
