"""The generic cell rate algorithm: a rate of units, in one number for each limit. Time is an argument.

The number is the *theoretical arrival time*: the moment at which everything taken so far is paid for at the limit's
rate. In any `t` seconds at most `burst + t / interval` units pass.

Source: ITU-T I.371, as virtual scheduling; the refusals of OpenAI's API follow the same numbers (November 2026).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from proxy.limits.limit import INDEX, SECONDS, Rate
from proxy.limits.limit_views import Exceeded, LimitKind, LimitView, Shown, rate_view

SLACK: Final = 1e-6
"""Seconds by which a limit may be passed: sums of intervals are rounded, and the last unit of a burst must not fall to
that."""

DEBT: Final = 10
"""Bursts by which a limit may be overdrawn at most. What is more came from a clock that stepped back, or from nobody's
request, and must not silence a team for hours."""


@dataclass(frozen=True, slots=True)
class GcraRule:
    """A rate with its numbers in seconds: between two units, what a burst may be ahead, and the furthest debt. `most`
    is the units that one request takes at most: so no request is what goes beyond the furthest debt, and giving back
    what one did not use never gives back more than it took. `full` is what headers show while nothing is used, `index`
    where the amount of its unit stands."""

    rate: Rate
    burst: float
    interval: float
    tolerance: float
    furthest: float
    most: int
    full: Shown
    index: int

    def correction(self, reserved: int, used: int) -> int:
        """Return the units to take after all, or less than 0 to give back, for what was taken and what was used."""
        most = self.most
        more = used - (reserved if reserved < most else most)
        return more if more < most else most


@lru_cache(maxsize=4096)
def rule_of(rate: Rate) -> GcraRule:
    """Return the numbers of a rate. Kept, because most teams have the same limits."""
    return part_of(rate, 1.0)


def part_of(rate: Rate, share: float) -> GcraRule:
    """Return the numbers of a part of a rate, between 0 and 1, for one of several processes. No part is below one
    unit at once, or that process would stand still."""
    interval = SECONDS[rate.period] / (rate.amount * share)
    burst = max(1.0, rate.burst * share)
    ahead = burst * interval
    most = DEBT * rate.burst  # not of the part: units are settled alone that were taken together, and the other way
    full = (int(burst), rate.amount, 0.0)
    return GcraRule(rate, burst, interval, ahead + SLACK, ahead + most * interval, most, full, INDEX[rate.unit])


@final
class LocalRate:
    """A rate that one process counts by itself. `lacks` tests and changes nothing but a time that cannot be right.
    `Meters` does without calls of these methods where nothing is used: what changes here changes there."""

    __slots__ = ("arrival", "rule", "scope")

    def __init__(self, rule: GcraRule, arrival: float = -math.inf, scope: str = "") -> None:
        self.rule = rule
        self.scope = scope
        self.arrival = arrival

    def lacks(self, units: float, now: float, wall: float) -> bool:
        """Return whether so many units are too many now. More than a burst pass when all of it is there, and leave a
        debt: no limit is one that nobody can meet."""
        rule, base = self.rule, self.arrival
        if base <= now:
            return False
        if base > now + rule.furthest:
            base = self.arrival = now + rule.furthest
        return base + (units if units < rule.burst else rule.burst) * rule.interval - now > rule.tolerance

    def take(self, units: float, now: float, wall: float) -> None:
        """Take units, after a test at the same time."""
        base, rule = self.arrival, self.rule
        self.arrival = (base if base > now else now) + (units if units < rule.most else rule.most) * rule.interval

    def attempt(self, units: float, now: float, wall: float) -> bool:
        """Test and take at once, and return whether the units were there."""
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
        """Put back what an attempt took, at the same time."""
        self.settle(units, 0)

    def settle(self, reserved: int, used: int) -> None:
        """Correct what was taken to what was used. What comes back too late to matter is void at the next test."""
        if used != reserved:
            rule = self.rule
            more = used - reserved if reserved < rule.most > used else rule.correction(reserved, used)
            self.arrival += more * rule.interval

    def refused(self, units: float, now: float) -> None:
        """Note a request that was refused."""

    def fetchable(self, units: int, now: float) -> bool:
        """Return whether more units could be fetched from somewhere."""
        return False

    def wait(self, units: float, now: float, wall: float) -> float:
        """Return the seconds until so many units pass, if nothing else is taken."""
        rule = self.rule
        ahead = max(self.arrival, now) + min(units, rule.burst) * rule.interval - now
        return max(0.0, ahead - (rule.tolerance - SLACK))

    def left(self, now: float) -> float:
        """Return the units that are left; less than 0 is a debt."""
        rule = self.rule
        return min(rule.burst, (now + rule.tolerance - max(self.arrival, now)) / rule.interval)

    def remaining(self, now: float, wall: float) -> int:
        """Return the whole units that are left."""
        return max(0, math.floor(self.left(now)))

    def shown(self, now: float, wall: float) -> Shown:
        """Return what headers show."""
        rule, base = self.rule, self.arrival
        if base <= now:
            return rule.full
        left = (now + rule.tolerance - base) / rule.interval
        return int(left) if left > 0 else 0, rule.rate.amount, base - now

    def full_in(self, now: float, wall: float) -> float:
        """Return the seconds until nothing is used any more."""
        return max(0.0, self.arrival - now)

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the limit as it stands."""
        yield rate_view(scope, self.rule.rate, rate_used(self.rule.rate, self.left(now)))

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return what is told of lacking so many units."""
        return rate_exceeded(scope, self.rule.rate, self.left(now), units, self.wait(units, now, wall))

    def follow(self, rate: Rate, now: float) -> None:
        """Count by another rate from now on. The units that are used stay used."""
        used = max(0.0, self.arrival - now) / self.rule.interval
        self.rule = rule_of(rate)
        self.arrival = now + used * self.rule.interval


def rate_used(rate: Rate, left: float) -> int:
    """Return the units of a rate's burst that are used, a debt included."""
    return max(0, math.ceil(rate.burst - left))


def rate_exceeded(scope: str, rate: Rate, left: float, units: int, wait: float) -> Exceeded:
    """Return what is told of a rate that lacks so many units."""
    used, burst = rate_used(rate, left), None if rate.burst == rate.amount else rate.burst
    return Exceeded(scope, LimitKind.RATE, rate.unit, rate.period, rate.amount, used, units, wait, None, burst=burst)
