"""What a request holds of its limits while it runs, and what it is told when it does not get it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from proxy.limits.concurrency import Places
from proxy.limits.gcra import LocalRate
from proxy.limits.limit import Period, Quota, Unit
from proxy.limits.rate_lease import RateLease
from proxy.limits.spending import SpendingCounter

INDEX: Final = {Unit.REQUESTS: 0, Unit.TOKENS: 1, Unit.USD: 2}
"""Where the amount of a unit stands among the three that a request takes."""


class Meter(Protocol):
    """One limit that is counted. `lacks` tests so many units, `take` takes them at the same time, `settle` corrects.

    A cost that nobody knows is None. `shown` is what headers show, None for what they do not speak of: places and
    budgets.
    """

    def lacks(self, units: int, now: float, wall: float) -> bool: ...

    def take(self, units: int, now: float, wall: float) -> None: ...

    def settle(self, reserved: int, used: int) -> None: ...

    def refused(self, units: int) -> None: ...

    def fetchable(self, now: float) -> bool: ...

    def wait(self, units: int, now: float, wall: float) -> float: ...

    def remaining(self, now: float, wall: float) -> int: ...

    def shown(self, now: float, wall: float) -> tuple[int, int] | None: ...

    def full_in(self, now: float, wall: float) -> float: ...


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
    calendar period, in seconds since 1970, where the limit has one. `used` counts what is reserved as well."""

    scope: str
    kind: LimitKind
    unit: Unit
    period: Period | None
    limit: int
    used: int
    requested: int
    wait: float
    ends: int | None

    def hopeless(self, patience: float) -> bool:
        """Return whether waiting so many seconds is in vain. A place may be free at any time."""
        if self.kind is LimitKind.CONCURRENT:
            return patience <= 0
        return self.wait > patience or self.kind is LimitKind.UNPRICED


class LimitFacts(NamedTuple):
    """What the headers of an answer say of one limit; `reset` is the seconds until all of it is there again."""

    limit: int
    remaining: int
    reset: float


class Reservation:
    """What one request holds. It ends once: with what was used, or with nothing. The limits it came from may be gone
    from the table by then."""

    __slots__ = ("_cost", "_ended", "_meters", "_tokens")

    def __init__(self, meters: "Sequence[BoundMeter]", tokens: int, cost: int | None) -> None:
        self._meters = meters
        self._tokens = tokens
        self._cost = cost
        self._ended = False

    def settle(self, tokens: int, cost: int | None) -> None:
        """End with the tokens that were used and what they cost in billionths of a USD, None for no price."""
        self._end(1, tokens, cost)

    def release(self) -> None:
        """End as if the request had never been: nothing was sent for it."""
        self._end(0, 0, 0)

    def facts(self, now: float, wall: float) -> tuple[LimitFacts | None, LimitFacts | None]:
        """Return the tightest limits of requests and of tokens, those with the fewest left, also after its end."""
        return tightest(self._meters, now, wall)

    def _end(self, requests: int, tokens: int, cost: int | None) -> None:
        if self._ended or not self._meters:
            return
        self._ended = True
        reserved = (1, self._tokens, self._cost or 0)
        used = (requests, tokens, cost or 0)
        for index, meter in self._meters:
            meter.settle(reserved[index], used[index])


BoundMeter = tuple[int, Meter]
"""A limit with the place of its unit's amount."""


def tightest(meters: Iterable[BoundMeter], now: float, wall: float) -> tuple[LimitFacts | None, LimitFacts | None]:
    """Return the tightest limits of requests and of tokens: those with the fewest left."""
    requests: tuple[tuple[int, int], Meter] | None = None
    tokens: tuple[tuple[int, int], Meter] | None = None
    for index, meter in meters:
        if (shown := meter.shown(now, wall)) is None:
            continue
        if index == 0:
            if requests is None or shown < requests[0]:
                requests = shown, meter
        elif tokens is None or shown < tokens[0]:
            tokens = shown, meter
    return _facts(requests, now, wall), _facts(tokens, now, wall)


def _facts(found: tuple[tuple[int, int], Meter] | None, now: float, wall: float) -> LimitFacts | None:
    if found is None:
        return None
    (left, limit), meter = found
    return LimitFacts(limit, left, meter.full_in(now, wall))


def exceeded(scope: str, meter: Meter, units: int | None, now: float, wall: float) -> Exceeded:
    """Return what is told of a limit that lacks so many units."""
    wait = meter.wait(units or 0, now, wall)
    match meter:
        case LocalRate() | RateLease():
            rate = meter.rule.rate
            used = max(0, -(-(rate.burst - meter.left(now)) // 1))
            return Exceeded(
                scope, LimitKind.RATE, rate.unit, rate.period, rate.amount, int(used), units or 0, wait, None
            )
        case SpendingCounter():
            rules, clock = meter.rules, meter.clock
            limit = rules.refuses
            kind = LimitKind.QUOTA if isinstance(limit, Quota) else LimitKind.BUDGET
            if units is None and rules.needs_price:
                kind = LimitKind.UNPRICED
            amount = 0 if limit is None else limit.amount
            ends = clock.end
            return Exceeded(
                scope, kind, rules.unit, clock.period, amount, meter.spent, units or 0, max(0.0, ends - wall), ends
            )
        case Places():
            return Exceeded(
                scope, LimitKind.CONCURRENT, Unit.REQUESTS, None, meter.capacity, meter.taken, 1, wait, None
            )
        case _:
            raise TypeError("no such limit")
