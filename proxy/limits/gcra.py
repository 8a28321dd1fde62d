"""The generic cell rate algorithm (GCRA): a rate limit whose whole state is one number. Time is an argument.

The number is the *theoretical arrival time*: the moment at which all units taken so far are paid for at the limit's
rate. In any `t` seconds at most `burst + t / interval` units pass. Source: ITU-T I.371, which describes it as virtual
scheduling. OpenAI's API refuses requests by the same numbers (November 2026).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from proxy.limits.limit import INDEX, SECONDS, Rate
from proxy.limits.limit_views import Exceeded, HeaderLimit, LimitKind, LimitView, rate_view

ROUNDING_SLACK: Final = 1e-6
"""Seconds by which a limit may be exceeded. Sums of intervals are rounded, and the rounding must not refuse the last
unit of a burst."""

MAX_DEBT_BURSTS: Final = 10
"""The most bursts by which a limit may be overdrawn. A larger debt comes from a clock that stepped back, not from
requests, and must not refuse a team for hours."""


@dataclass(frozen=True, slots=True)
class GcraRule:
    """A rate with its numbers in seconds. `interval` is the time between two units, `tolerance` is how far a burst may
    be ahead, and `furthest` is the largest debt. `most` is the most units that one request takes. It keeps a request
    within the largest debt, and a request never gives back more than it took. `full` is the header value while nothing
    is used. `index` is the index of the unit's amount."""

    rate: Rate
    burst: float
    interval: float
    tolerance: float
    furthest: float
    most: int
    full: HeaderLimit
    index: int

    def correction(self, reserved: int, used: int) -> int:
        """Return the units that are still to be taken, given the reserved and the used units. The units of a negative
        number are given back."""
        most = self.most
        more = used - (reserved if reserved < most else most)
        return more if more < most else most


@lru_cache(maxsize=4096)
def rule_of(rate: Rate) -> GcraRule:
    """Return the numbers of a rate. They are cached because most teams have the same limits."""
    return part_of(rate, 1.0)


def part_of(rate: Rate, share: float) -> GcraRule:
    """Return the numbers of one process's part of a rate. `share` is between 0 and 1. A part has a burst of at least
    one unit, because the process could not serve anything otherwise."""
    interval = SECONDS[rate.period] / (rate.amount * share)
    burst = max(1.0, rate.burst * share)
    ahead = burst * interval
    most = (
        MAX_DEBT_BURSTS * rate.burst
    )  # The whole rate's limit, because units taken by one rule may be settled by the other.
    full = (int(burst), rate.amount, 0.0)
    return GcraRule(
        rate, burst, interval, ahead + ROUNDING_SLACK, ahead + most * interval, most, full, INDEX[rate.unit]
    )


@final
class LocalRate:
    """A rate that this process counts by itself. `lacks` tests and changes nothing, except a time that cannot be right.
    `Meters` repeats parts of these methods inline for unused limits: a change here must be made there as well."""

    __slots__ = ("arrival", "rule", "scope")

    def __init__(self, rule: GcraRule, arrival: float = -math.inf, scope: str = "") -> None:
        self.rule = rule
        self.scope = scope
        self.arrival = arrival

    def lacks(self, units: float, now: float, wall: float) -> bool:
        """Return whether these units are too many now. A request for more units than a burst passes if the whole burst
        is available, and leaves a debt. Otherwise a large request could never pass."""
        rule, base = self.rule, self.arrival
        if base <= now:
            return False
        if base > now + rule.furthest:
            base = self.arrival = now + rule.furthest
        return base + (units if units < rule.burst else rule.burst) * rule.interval - now > rule.tolerance

    def take(self, units: float, now: float, wall: float) -> None:
        """Take units after a test at the same `now`."""
        base, rule = self.arrival, self.rule
        self.arrival = (base if base > now else now) + (units if units < rule.most else rule.most) * rule.interval

    def attempt(self, units: float, now: float, wall: float) -> bool:
        """Test and take units, and return whether there were enough."""
        rule, base = self.rule, self.arrival
        if base > now:
            if self.lacks(units, now, wall):
                return False
            base = self.arrival
        else:
            base = now
        self.arrival = base + (units if units < rule.most else rule.most) * rule.interval
        return True

    def undo(self, units: int) -> None:
        """Give back the units of an attempt at the same `now`."""
        self.settle(units, 0)

    def settle(self, reserved: int, used: int) -> None:
        """Correct the reserved units to the used ones. Units that come back after their time has passed have no effect,
        because the next test starts from `now`."""
        if used != reserved:
            rule = self.rule
            more = used - reserved if reserved < rule.most > used else rule.correction(reserved, used)
            self.arrival += more * rule.interval

    def refused(self, units: float, now: float) -> None:
        """Ignore a refused request: only leases count it as demand."""

    def fetchable(self, units: int, now: float) -> bool:
        """Return that no more units can be fetched."""
        return False

    def wait(self, units: float, now: float, wall: float) -> float:
        """Return the seconds until these units pass, if no other units are taken meanwhile."""
        rule = self.rule
        ahead = max(self.arrival, now) + min(units, rule.burst) * rule.interval - now
        return max(0.0, ahead - (rule.tolerance - ROUNDING_SLACK))

    def left(self, now: float) -> float:
        """Return the units that are left. A negative number is a debt."""
        rule = self.rule
        return min(rule.burst, (now + rule.tolerance - max(self.arrival, now)) / rule.interval)

    def remaining(self, now: float, wall: float) -> int:
        """Return the whole units that are left."""
        return max(0, math.floor(self.left(now)))

    def for_headers(self, now: float, wall: float) -> HeaderLimit:
        """Return the values for headers."""
        rule, base = self.rule, self.arrival
        if base <= now:
            return rule.full
        left = (now + rule.tolerance - base) / rule.interval
        return int(left) if left > 0 else 0, rule.rate.amount, base - now

    def full_in(self, now: float, wall: float) -> float:
        """Return the seconds until the whole burst is available again."""
        return max(0.0, self.arrival - now)

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the current view of the limit."""
        yield rate_view(scope, self.rule.rate, rate_used(self.rule.rate, self.left(now)))

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return the details of a refusal of these units."""
        return rate_exceeded(scope, self.rule.rate, self.left(now), units, self.wait(units, now, wall))

    def follow(self, rate: Rate, now: float) -> None:
        """Count by another rate from now on. Used units stay used."""
        used = max(0.0, self.arrival - now) / self.rule.interval
        self.rule = rule_of(rate)
        self.arrival = now + used * self.rule.interval


def rate_used(rate: Rate, left: float) -> int:
    """Return the used units of a rate's burst, including a debt."""
    return max(0, math.ceil(rate.burst - left))


def rate_exceeded(scope: str, rate: Rate, left: float, units: int, wait: float) -> Exceeded:
    """Return the details of a refusal by a rate that lacks these units."""
    used, burst = rate_used(rate, left), None if rate.burst == rate.amount else rate.burst
    return Exceeded(scope, LimitKind.RATE, rate.unit, rate.period, rate.amount, used, units, wait, None, burst=burst)
