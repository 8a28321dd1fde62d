"""What is counted for one scope: a team, a key, a vendor, a deployment. Made when it is first asked for."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedPlaces, Places
from proxy.limits.gcra import LocalRate, rule_of
from proxy.limits.lease_book import LeaseBook
from proxy.limits.limit import Limits, Period, Quota, Rate, TeamBudget, Unit
from proxy.limits.rate_lease import RateLease
from proxy.limits.reservation import Meter, Meters
from proxy.limits.spending import SharedSpending, SpendingCounter, SpendingNotes, rules_of


@dataclass(slots=True, eq=False)
class MeterMaker:
    """Makes what counts, by this process alone or leased. `shares` are divisions known from before a restart."""

    leases: LeaseBook | None
    notes: SpendingNotes
    clocks: dict[Period, PeriodClock] = field(default_factory=dict)
    shares: dict[str, tuple[float, int]] = field(default_factory=dict)

    def rate(self, scope: str, rate: Rate, now: float) -> LocalRate | RateLease:
        """Return what counts a rate."""
        if self.leases is None:
            return LocalRate(rule_of(rate))
        lease = RateLease(scope, rate, self.leases, now)
        if known := self.shares.get(lease.key):
            lease.assume(*known)
        return lease

    def places(self, scope: str, capacity: int) -> Places:
        """Return what counts the requests under way."""
        if self.leases is None:
            return Places(capacity)
        return LeasedPlaces(scope, capacity, self.leases)

    def counter(self, scope: str, limits: list[Quota | TeamBudget]) -> SpendingCounter:
        """Return what counts spending of one unit in one kind of period."""
        rules, clock = rules_of(limits), self.clocks[limits[0].period]
        if self.leases is None:
            return SpendingCounter(scope, rules, clock, self.notes)
        return SharedSpending(scope, rules, clock, self.notes, self.leases)


class ScopeState:
    """The limits of one scope. `meters` is None until it is first used."""

    __slots__ = ("budgets", "limits", "meters")

    def __init__(self, limits: Limits, budgets: tuple[TeamBudget, ...]) -> None:
        self.limits = limits
        self.budgets = budgets
        self.meters: Meters | None = None

    def make(self, scope: str, maker: MeterMaker, now: float) -> Meters:
        """Make what counts. What was there before for the same unit and period goes on with what it has counted."""
        before = {_kind(meter): meter for _, meter in self.meters or ()}
        places: tuple[Places, ...] = ()
        rates: list[LocalRate | RateLease] = []
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
            if isinstance(meter, LocalRate | RateLease):
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
        made = Meters(places, tuple(rates), tuple(counters))
        self._drop({id(meter) for _, meter in made}, maker)
        self.meters = made
        return made

    def end(self, maker: MeterMaker) -> None:
        """Stop exchanging: the scope is no longer in the table. Running requests settle what they hold."""
        self._drop(set(), maker)

    def counters(self) -> Iterator[SpendingCounter]:
        """Yield what counts spending."""
        yield from self.meters.counters if self.meters is not None else ()

    def _spending(self) -> dict[tuple[Unit, Period], list[Quota | TeamBudget]]:
        """Return quotas and budgets by what one counter counts."""
        found: dict[tuple[Unit, Period], list[Quota | TeamBudget]] = defaultdict(list)
        every: tuple[Quota | TeamBudget, ...] = (*self.limits.quotas, *self.budgets)
        for limit in every:
            found[limit.unit, limit.period].append(limit)
        return found

    def _drop(self, kept: set[int], maker: MeterMaker) -> None:
        if maker.leases is not None:
            maker.leases.drop(
                meter
                for _, meter in self.meters or ()
                if isinstance(meter, RateLease | LeasedPlaces | SharedSpending) and id(meter) not in kept
            )


_CONCURRENT: Final = "concurrent"


def _kind(meter: Meter) -> tuple[Unit, Period] | str:
    """Return what a meter counts, as a table may only say it once for a scope."""
    match meter:
        case LocalRate() | RateLease():
            return meter.rule.rate.unit, meter.rule.rate.period
        case SpendingCounter():
            return meter.rules.unit, meter.clock.period
        case _:
            return _CONCURRENT
