"""What is told of limits and budgets: to operators as they stand, and to a request that is beyond one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from heapq import nlargest
from typing import Final, TypeAlias

from proxy.limits.limit import Limits, Period, Quota, Rate, ScopeBudget, Unit

EACH_USER: Final = "each user"
"""Stands for all end users of a team in metrics, and for users without any use in reports."""

MOST_VIEWS: Final = 1000
"""Limits in reports and metrics: those that are used most. A table may have ten thousand teams."""


Shown: TypeAlias = tuple[int, int, float]
"""What headers say of one limit: the units that are left, the limit, and the seconds until all of it is there again."""


class LimitKind(StrEnum):
    """Why a request is refused. UNPRICED: a budget that counts USD, and a model without a price."""

    RATE = "rate"
    QUOTA = "quota"
    CONCURRENT = "concurrent"
    BUDGET = "budget"
    UNPRICED = "unpriced"


@dataclass(frozen=True, slots=True)
class Exceeded:
    """The limit that a request waits for longest. `wait` is the seconds until it would pass, `ends` the end of the
    calendar period, in seconds since 1970, where the limit has one. `used` counts what is reserved as well, of which
    `reserved` is what requests under way hold, as far as this process knows. `burst` is what a rate allows in one go,
    where that is not its whole limit. `alone` is what is left of the part with which this process goes on by itself,
    None where it counts with the others. `elsewhere` is what is not used up and yet not at hand here: other processes
    have claimed it, and give back what they do not use."""

    scope: str
    kind: LimitKind
    unit: Unit
    period: Period | None
    limit: int
    used: int
    requested: int
    wait: float
    ends: int | None
    reserved: int = 0
    burst: int | None = None
    alone: int | None = None
    elsewhere: int = 0

    @property
    def unspent(self) -> bool:
        """Whether a calendar limit is not used up: requests under way hold the rest, or only this one is too large."""
        return self.kind in (LimitKind.QUOTA, LimitKind.BUDGET) and self.used - self._returning < self.limit

    @property
    def passing(self) -> bool:
        """Whether the same request may pass before the period of a calendar limit ends: when requests under way have
        ended, when other processes have given back what they do not use, or when this one counts with them again."""
        fits = self.used - self._returning + min(self.requested, self.limit) <= self.limit
        return self.unspent and (fits or self.alone is not None)

    @property
    def _returning(self) -> int:
        """What requests under way may yet give back: of tokens and USD what they do not use, of requests nothing."""
        return 0 if self.unit is Unit.REQUESTS else self.reserved

    def hopeless(self, patience: float) -> bool:
        """Return whether waiting so many seconds is in vain. A place may be free at any time."""
        if self.kind is LimitKind.CONCURRENT:
            return patience <= 0
        return self.wait > patience or self.kind is LimitKind.UNPRICED


@dataclass(frozen=True, slots=True)
class LimitView:
    """One limit as it stands: `used` counts what is reserved as well, `ends` is the end of its calendar period. `then`
    is what a budget does, and `reached` whether it has come to that. `burst` is what a rate allows in one go, where
    that is not its whole limit: of this `used` is counted."""

    scope: str
    kind: LimitKind
    unit: Unit
    period: Period | None
    limit: int
    used: int
    ends: int | None = None
    at: float = 1.0
    then: str = "reject"
    reached: bool = False
    burst: int | None = None

    @property
    def most(self) -> int:
        """What may be used now."""
        return self.limit if self.burst is None else self.burst

    @property
    def remaining(self) -> int:
        """What is left; a debt is nothing left."""
        return max(0, self.most - self.used)

    @property
    def ratio(self) -> float:
        """What is used, as a part of what may be; of a limit of nothing, all."""
        return self.used / self.most if self.most else 1.0


def rate_view(scope: str, rate: Rate, used: int) -> LimitView:
    """Return the view of a rate."""
    burst = None if rate.burst == rate.amount else rate.burst
    reached = used >= rate.burst
    return LimitView(scope, LimitKind.RATE, rate.unit, rate.period, rate.amount, used, reached=reached, burst=burst)


def places_view(scope: str, capacity: int, taken: int) -> LimitView:
    """Return the view of the requests under way at once."""
    full = taken >= capacity
    return LimitView(scope, LimitKind.CONCURRENT, Unit.REQUESTS, None, capacity, taken, reached=full)


def spending_view(
    scope: str, limit: Quota | ScopeBudget, spent: int = 0, ends: int | None = None, *, latched: bool = False
) -> LimitView:
    """Return the view of a quota or a budget. `latched` says that its step was reached in this period."""
    kind, at, then = LimitKind.QUOTA, 1.0, "reject"
    if isinstance(limit, ScopeBudget):
        kind, at, then = LimitKind.BUDGET, limit.at, limit.then
    reached = latched or (then == "reject" and spent >= limit.amount * at)
    return LimitView(scope, kind, limit.unit, limit.period, limit.amount, spent, ends, at, then, reached)


def unused_views(
    scope: str, limits: Limits, budgets: Iterable[ScopeBudget], ends: Mapping[Period, int]
) -> Iterator[LimitView]:
    """Yield the limits and budgets of a scope with nothing used; `ends` are those of the periods that are now."""
    for rate in limits.rates:
        yield rate_view(scope, rate, 0)
    for quota in limits.quotas:
        yield spending_view(scope, quota, ends=ends.get(quota.period))
    for budget in budgets:
        yield spending_view(scope, budget, ends=ends.get(budget.period))
    if limits.concurrent is not None:
        yield places_view(scope, limits.concurrent, 0)


def most_used(views: Iterable[LimitView]) -> list[LimitView]:
    """Return the limits that are used most, first."""
    return nlargest(MOST_VIEWS, views, key=lambda view: view.ratio)


def limit_labels(scope: str, unit: Unit, period: Period | None) -> tuple[str, str]:
    """Return the team, empty if it is no team's, and the limit, as metrics name them."""
    kind, _, name = scope.partition(" ")
    what = f"{unit.value} at once" if period is None else f"{unit.value} per {period.value}"
    if kind == "team":
        team, _, model = name.partition(" model ")
        return team, f"{model}: {what}" if model else what
    if kind == "user":  # never its name nor its digest: there may be any number
        return name.rpartition("/")[0], f"{EACH_USER}: {what}"
    if kind == "key":
        team, _, label = name.partition("/")
        return team, f"key {label}: {what}"
    return "", f"{scope}: {what}"
