"""What is counted for one scope: a team, a key, a vendor, a deployment. Made when it is first asked for."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, TypeVar

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedPlaces, Places
from proxy.limits.gcra import LocalRate, rule_of
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import INDEX, Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.limits.reservation import Meter, Meters
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingCounter, SpendingNotes, rules_of

L = TypeVar("L", LeasedRate, LeasedPlaces)


@dataclass(slots=True, eq=False)
class MeterMaker:
    """Makes what counts, by this process alone or leased. `shares` are divisions known from before a restart, by key;
    they hold until whoever counts has answered."""

    leases: LeaseRegistry | None
    notes: SpendingNotes
    clocks: dict[Period, PeriodClock] = field(default_factory=dict)
    shares: dict[str, tuple[float, int]] = field(default_factory=dict)

    def rate(self, scope: str, rate: Rate, now: float) -> LocalRate | LeasedRate:
        """Return what counts a rate."""
        if self.leases is None:
            return LocalRate(rule_of(rate), scope=scope)
        return self._assumed(LeasedRate(scope, rate, self.leases), self.leases)

    def places(self, scope: str, capacity: int) -> Places:
        """Return what counts the requests under way."""
        if self.leases is None:
            return Places(capacity)
        return self._assumed(LeasedPlaces(scope, capacity, self.leases), self.leases)

    def counter(self, scope: str, limits: list[Quota | ScopeBudget]) -> SpendingCounter:
        """Return what counts spending of one unit in one kind of period."""
        rules, clock = rules_of(limits), self.clocks[limits[0].period]
        if self.leases is None:
            return SpendingCounter(scope, rules, clock, self.notes)
        return SharedSpending(scope, rules, clock, self.notes, self.leases)

    def _assumed(self, lease: L, leases: LeaseRegistry) -> L:
        """Return a lease with its division from before a restart, if that still holds."""
        if not leases.met and (known := self.shares.get(lease.key)):
            lease.assume(*known)
        return lease


class ScopeState(Meters):
    """The limits of one scope, and what counts them: nothing until it is first used. A request that is under way holds
    the state that it was taken from, so that another table makes another one."""

    __slots__ = ("budgets", "limits", "made")

    def __init__(self, limits: Limits, budgets: tuple[ScopeBudget, ...]) -> None:
        super().__init__((), (), ())
        self.limits = limits
        self.budgets = budgets
        self.made = False

    def make(self, scope: str, maker: MeterMaker, now: float, former: "ScopeState | None" = None) -> None:
        """Make what counts. What was there before for the same unit and period goes on with what it has counted."""
        before = {_kind(meter): meter for _, meter in former or ()}
        places: tuple[Places, ...] = ()
        rates: list[LocalRate | LeasedRate] = []
        counters: list[SpendingCounter] = []
        if self.limits.concurrent is not None:
            place = before.get(_CONCURRENT)
            if isinstance(place, Places):
                place.capacity = self.limits.concurrent
            else:
                place = maker.places(scope, self.limits.concurrent)
            places = (place,)
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
        self.hold(places, tuple(rates), tuple(counters))
        self.made = True
        if former is not None:
            former.end(maker, {id(meter) for _, meter in self})

    def end(self, maker: MeterMaker, kept: Collection[int] = ()) -> None:
        """Stop exchanging what is not `kept`: it is no longer in the table. Running requests settle what they hold."""
        maker.notes.unloaded.difference_update([each for each in self.counters if id(each) not in kept])
        if maker.leases is not None:
            maker.leases.drop(
                meter
                for _, meter in self
                if isinstance(meter, LeasedRate | LeasedPlaces | SharedSpending) and id(meter) not in kept
            )

    def load(self, period: Period, start: int, amounts: tuple[int, int, int], mark: int, touched: int) -> None:
        """Take the ledger's sums of the period that begins at `start`. See SpendingCounter.load."""
        for counter in self.counters:
            if counter.clock.period is period:
                counter.load(start, amounts[INDEX[counter.rules.unit]], mark, touched)

    def route(self, now: float, wall: float) -> str | None:
        """Return the name that requests go to because of the spending, `None` if they go to the requested one."""
        if not self.budgets:
            return None
        reached = [budget for counter in self.counters for budget in counter.routes(now, wall)]
        return max(reached, key=lambda budget: budget.at).route if reached else None

    def divisions(self, now: float) -> dict[str, tuple[float, int]]:
        """Return how rates and places are divided among processes, by the keys of their leases."""
        found = {}
        for meter in (*self.places, *self.rates):
            if isinstance(meter, LeasedRate | LeasedPlaces) and (known := meter.division(now)):
                found[meter.key] = known
        return found

    def _spending(self) -> dict[tuple[Unit, Period], list[Quota | ScopeBudget]]:
        """Return quotas and budgets by what one counter counts."""
        found: dict[tuple[Unit, Period], list[Quota | ScopeBudget]] = defaultdict(list)
        every: tuple[Quota | ScopeBudget, ...] = (*self.limits.quotas, *self.budgets)
        for limit in every:
            found[limit.unit, limit.period].append(limit)
        return found


_CONCURRENT: Final = "concurrent"


def _kind(meter: Meter) -> tuple[Unit, Period] | str:
    """Return what a meter counts, as a table may only say it once for a scope."""
    match meter:
        case LocalRate() | LeasedRate():
            return meter.rule.rate.unit, meter.rule.rate.period
        case SpendingCounter():
            return meter.rules.unit, meter.clock.period
        case _:
            return _CONCURRENT
