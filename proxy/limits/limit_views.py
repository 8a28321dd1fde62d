"""Views of limits and budgets: their current state for operators, and the details of a refusal for a client."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from heapq import nlargest
from typing import Final, TypeAlias

from proxy.limits.limit import Limits, Period, Quota, Rate, ScopeBudget, Unit

EACH_USER: Final = "each user"
"""The name for all end users of a team in metrics, and for users without any use in reports."""

MOST_VIEWS: Final = 1000
"""The most limits in reports and metrics, the most used ones first. A configuration may have ten thousand teams."""


HeaderLimit: TypeAlias = tuple[int, int, float]
"""The header values of one limit: the units left, the limit, and the seconds until all of it is available again."""


class LimitKind(StrEnum):
    """The kind of limit that refuses a request. UNPRICED: a budget counts USD, and the model has no price."""

    RATE = "rate"
    QUOTA = "quota"
    CONCURRENT = "concurrent"
    BUDGET = "budget"
    UNPRICED = "unpriced"


@dataclass(frozen=True, slots=True)
class Exceeded:
    """The limit that a request would have to wait for longest.

    `wait` is the seconds until the request would pass. `ends` is the end of the calendar period in seconds since 1970,
    if the limit has one. `used` includes reserved units. `reserved` of them are held by requests in flight, as far as
    this process knows. `burst` is the burst of a rate, if it differs from the limit. `alone` is the rest of the part
    with which this process counts alone, `None` if it counts with the others. `elsewhere` are units that other
    processes have claimed and will return if they do not use them.
    """

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
        """Whether a calendar limit is not used up: requests in flight hold the rest, or only this request is
        too large."""
        return self.kind in (LimitKind.QUOTA, LimitKind.BUDGET) and self.used - self._returning < self.limit

    @property
    def passing(self) -> bool:
        """Whether the same request may pass before the calendar period ends. It may pass when requests in flight have
        ended, when other processes have returned unused units, or when this process counts with the others again."""
        fits = self.used - self._returning + min(self.requested, self.limit) <= self.limit
        return self.unspent and (fits or self.alone is not None)

    @property
    def _returning(self) -> int:
        """The units that requests in flight may still give back. They may give back tokens and USD, but no requests."""
        return 0 if self.unit is Unit.REQUESTS else self.reserved

    def hopeless(self, patience: float) -> bool:
        """Return whether waiting `patience` seconds cannot succeed. A slot may become free at any time."""
        if self.kind is LimitKind.CONCURRENT:
            return patience <= 0
        return self.wait > patience or self.kind is LimitKind.UNPRICED


@dataclass(frozen=True, slots=True)
class LimitView:
    """The current state of one limit. `used` includes reserved units. `ends` is the end of its calendar period. `then`
    is the action of a budget, and `reached` is whether it has begun. `burst` is the burst of a rate, if it differs from
    the limit. `used` then counts against the burst."""

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
        """The most units that may be used at once."""
        return self.limit if self.burst is None else self.burst

    @property
    def remaining(self) -> int:
        """The units that are left, 0 if there is a debt."""
        return max(0, self.most - self.used)

    @property
    def ratio(self) -> float:
        """The used part of the units that may be used. It is 1 if the limit is 0."""
        return self.used / self.most if self.most else 1.0


def rate_view(scope: str, rate: Rate, used: int) -> LimitView:
    """Return the view of a rate."""
    burst = None if rate.burst == rate.amount else rate.burst
    reached = used >= rate.burst
    return LimitView(scope, LimitKind.RATE, rate.unit, rate.period, rate.amount, used, reached=reached, burst=burst)


def slots_view(scope: str, capacity: int, taken: int) -> LimitView:
    """Return the view of the requests in flight."""
    full = taken >= capacity
    return LimitView(scope, LimitKind.CONCURRENT, Unit.REQUESTS, None, capacity, taken, reached=full)


def spending_view(
    scope: str, limit: Quota | ScopeBudget, spent: int = 0, ends: int | None = None, *, latched: bool = False
) -> LimitView:
    """Return the view of a quota or a budget. `latched` means that its step was reached in this period."""
    kind, at, then = LimitKind.QUOTA, 1.0, "reject"
    if isinstance(limit, ScopeBudget):
        kind, at, then = LimitKind.BUDGET, limit.at, limit.then
    reached = latched or (then == "reject" and spent >= limit.amount * at)
    return LimitView(scope, kind, limit.unit, limit.period, limit.amount, spent, ends, at, then, reached)


def unused_views(
    scope: str, limits: Limits, budgets: Iterable[ScopeBudget], ends: Mapping[Period, int]
) -> Iterator[LimitView]:
    """Yield the limits and budgets of a scope with nothing used. `ends` are the ends of the current periods."""
    for rate in limits.rates:
        yield rate_view(scope, rate, 0)
    for quota in limits.quotas:
        yield spending_view(scope, quota, ends=ends.get(quota.period))
    for budget in budgets:
        yield spending_view(scope, budget, ends=ends.get(budget.period))
    if limits.concurrent is not None:
        yield slots_view(scope, limits.concurrent, 0)


def most_used(views: Iterable[LimitView]) -> list[LimitView]:
    """Return the most used limits, the most used one first."""
    return nlargest(MOST_VIEWS, views, key=lambda view: view.ratio)


def limit_labels(scope: str, unit: Unit, period: Period | None) -> tuple[str, str]:
    """Return the team label (empty if the scope is not a team's) and the limit label for metrics."""
    kind, _, name = scope.partition(" ")
    unit_words = f"{unit.value} at once" if period is None else f"{unit.value} per {period.value}"
    if kind == "team":
        team, _, model = name.partition(" model ")
        return team, f"{model}: {unit_words}" if model else unit_words
    if kind == "user":  # Metrics get neither the name nor the digest, because the number of users is unlimited.
        return name.rpartition("/")[0], f"{EACH_USER}: {unit_words}"
    if kind == "key":
        team, _, label = name.partition("/")
        return team, f"key {label}: {unit_words}"
    return "", f"{scope}: {unit_words}"
