"""What is left of limits and budgets, for `dragoman limits`, the status page and metrics."""

from collections.abc import Iterator
from dataclasses import dataclass

from proxy.limits.concurrency import Places
from proxy.limits.gcra import LocalRate
from proxy.limits.limit import Period, Quota, Unit
from proxy.limits.rate_lease import RateLease
from proxy.limits.reservation import LimitKind, Meter
from proxy.limits.spending import SpendingCounter


@dataclass(frozen=True, slots=True)
class LimitView:
    """One limit as it stands: `used` counts what is reserved as well, `ends` is the end of its calendar period. `then`
    is what a budget does, and `reached` whether it has come to that."""

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

    @property
    def remaining(self) -> int:
        """What is left; a debt is nothing left."""
        return max(0, self.limit - self.used)

    @property
    def ratio(self) -> float:
        """What is used, as a part of the limit; of a limit of nothing, all."""
        return self.used / self.limit if self.limit else 1.0


def view_of(scope: str, meter: Meter, now: float, wall: float) -> Iterator[LimitView]:
    """Yield the limits that one meter counts."""
    match meter:
        case LocalRate() | RateLease():
            rate = meter.rule.rate
            used = max(0, rate.burst - meter.remaining(now, wall))
            yield LimitView(scope, LimitKind.RATE, rate.unit, rate.period, rate.burst, used, reached=used >= rate.burst)
        case Places():
            full = meter.taken >= meter.capacity
            yield LimitView(scope, LimitKind.CONCURRENT, Unit.REQUESTS, None, meter.capacity, meter.taken, reached=full)
        case SpendingCounter():
            ends = meter.full_in(now, wall) and meter.clock.end
            for limit in meter.rules.limits:
                quota = isinstance(limit, Quota)
                kind = LimitKind.QUOTA if quota else LimitKind.BUDGET
                at, then = (1.0, "reject") if isinstance(limit, Quota) else (limit.at, limit.then)
                reached = limit in meter.reached or (then == "reject" and meter.spent >= limit.amount * at)
                yield LimitView(
                    *(scope, kind, limit.unit, limit.period, limit.amount, meter.spent, int(ends), at, then, reached)
                )
        case _:
            raise TypeError("no such limit")


def limit_labels(scope: str, unit: Unit, period: Period | None) -> tuple[str, str]:
    """Return the team, empty where it is a deployment's, and the limit, as metrics name them."""
    kind, _, name = scope.partition(" ")
    what = f"{unit.value} at once" if period is None else f"{unit.value} per {period.value}"
    if kind == "team":
        team, _, model = name.partition(" model ")
        return team, f"{model}: {what}" if model else what
    if kind == "key":
        team, _, label = name.partition("/")
        return team, f"key {label}: {what}"
    return "", f"{scope}: {what}"
