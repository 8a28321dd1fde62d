"""A rate that several processes share: units are leased ahead in small blocks, so that hardly a request waits for them.
Time is an argument.

Units that are not used within half a second go back, which bounds what passes in any `t` seconds by
`burst + rate * (t + HOLDS)`. Alone, the process counts by itself with its last share: the sum stays at the limit.
"""

import math
from collections.abc import Iterator
from typing import Final

from proxy.limits.concurrency import REFUSED_FOR, LeaseKeeper, alone_share
from proxy.limits.gcra import GcraRule, LocalRate, part_of, rate_exceeded, rate_used, rule_of
from proxy.limits.limit import SECONDS, Rate
from proxy.limits.limit_views import Exceeded, LimitView, Shown, rate_view
from proxy.shared_state.lease import LeaseGrant, RateAsk

AHEAD: Final = 0.05
"""Seconds of the process's own demand that are leased ahead."""

HOLDS: Final = 0.5
"""Seconds for which leased units hold, or a hundredth of the limit's period where that is less."""

MEMORY: Final = 0.5
"""Seconds over which demand is averaged."""

PART: Final = 0.01
"""The most of a limit that all processes together lease ahead, unless it is less than two requests for each."""

AGAIN: Final = 1.0
"""Seconds until a key is tried again in whose place something else is kept."""


class RateLease:
    """The units of a rate that this process holds."""

    __slots__ = (
        *("_asked", "_counted_at", "_expires", "_foreign", "_holds", "_keeper", "_least", "_left", "_left_at", "_low"),
        *(
            "_processes",
            "_quiet_until",
            "_returning",
            "_share",
            "_short",
            "_size",
            "balance",
            "demand",
            "key",
            "local",
            "rule",
        ),
        *("_told", "_wanted", "waiting"),
    )

    def __init__(self, key: str, rate: Rate, keeper: LeaseKeeper, now: float) -> None:
        self.key = key
        self.rule: GcraRule = rule_of(rate)
        self.balance = 0
        self.demand = 0.0
        self.waiting = 0
        self.local: LocalRate | None = None
        self._keeper = keeper
        self._holds = min(HOLDS, SECONDS[rate.period] / 100)
        self._asked = 0
        self._counted_at = now
        self._expires = math.inf
        self._foreign = False
        self._least = 0
        self._left = float(rate.burst)
        self._left_at = now
        self._low = 0
        self._processes = keeper.expected
        self._quiet_until = -math.inf
        self._returning = 0
        self._share = 1.0 / keeper.expected
        self._short = False
        self._size = 1.0
        self._told = 0
        self._wanted = 0

    def lacks(self, units: int, now: float, wall: float) -> bool:
        """Return whether this process holds too few units now."""
        if self.local is not None or self._keeper.alone or self._foreign:
            local = self._follow_link(now)
            if local is not None:
                return local.lacks(units, now, wall)
        if now >= self._expires:
            self._lapse()
        burst = self.rule.rate.burst
        return (units if units < burst else burst) > self.balance

    def take(self, units: int, now: float, wall: float) -> None:
        """Take units, after a test at the same time."""
        self._asked += units
        self._size += 0.1 * (units - self._size)
        if self.local is not None:
            self.local.take(units, now, wall)
            return
        self.balance -= units if units < self.rule.most else self.rule.most
        if self.balance < self._low and now >= self._quiet_until:
            self._keeper.wake(self)
        elif self.balance < 0:
            self._keeper.due(self)

    def settle(self, reserved: int, used: int) -> None:
        """Correct what was taken to what was used: the rest goes back to all."""
        if self.local is not None:
            self.local.settle(reserved, used)
        elif used != reserved:
            self._returning -= self.rule.correction(reserved, used)
            self._keeper.due(self)

    def refused(self, units: int, now: float) -> None:
        """Note a request that was refused: it is demand as well. While there is less than is asked for, units are
        fetched for those that come later, since a refusal waits for nobody."""
        self._asked += units
        self._size += 0.1 * (units - self._size)
        if self._short and self.local is None and now >= self._quiet_until:
            self._keeper.wake(self)

    def fetchable(self, now: float) -> bool:
        """Return whether to wait for more units: not right after there were none, and not as long as there are too few
        for units to be leased ahead."""
        return self.local is None and now >= self._quiet_until and not (self._short and self._low)

    def wait_for(self, units: int) -> None:
        """Note a request that waits for so many units more."""
        self._least = min(self._least, units) if self.waiting else units
        self.waiting += units

    def wait_no_more(self, units: int) -> None:
        """Note that such a request waits no longer."""
        self.waiting -= units

    def wait(self, units: int, now: float, wall: float) -> float:
        """Return about how many seconds it takes until so many units pass."""
        if self.local is not None:
            return self.local.wait(units, now, wall)
        short = min(units, self.rule.rate.burst) - self.left(now)
        return max(short * self.rule.interval, self._quiet_until - now, 0.0)

    def left(self, now: float) -> float:
        """Return about how many units are left, here and for all; less than 0 is a debt."""
        if self.local is not None:
            return self.local.left(now)
        grown = self._left + (now - self._left_at) / self.rule.interval
        return min(float(self.rule.rate.burst), grown + self.balance)

    def remaining(self, now: float, wall: float) -> int:
        """Return about how many whole units are left."""
        return max(0, math.floor(self.left(now)))

    def shown(self, now: float, wall: float) -> Shown:
        """Return about what headers show."""
        rule, left = self.rule, self.left(now)
        burst = rule.rate.burst
        if left >= burst:
            return rule.full
        return int(left) if left > 0 else 0, rule.rate.amount, (burst - left) * rule.interval

    def full_in(self, now: float, wall: float) -> float:
        """Return about how many seconds it takes until nothing is used any more."""
        if self.local is not None:
            return self.local.full_in(now, wall)
        return max(0.0, (self.rule.rate.burst - self.left(now)) * self.rule.interval)

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the limit as it stands, about."""
        yield rate_view(scope, self.rule.rate, rate_used(self.rule.rate, self.left(now)))

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return what is told of lacking so many units."""
        return rate_exceeded(scope, self.rule.rate, self.left(now), units, self.wait(units, now, wall))

    def follow(self, rate: Rate, now: float) -> None:
        """Count by another rate from now on. The units that are used stay used."""
        self._left += rate.burst - self.rule.rate.burst
        self.rule = rule_of(rate)
        if self.local is not None:
            share = alone_share(self._share, self._processes)
            used = max(0.0, self.local.arrival - now) / self.local.rule.interval
            self.local = LocalRate(part_of(rate, share))
            self.local.take(used, now, 0.0)

    def ask(self, now: float) -> RateAsk | None:
        """Return what to ask for now: a block by the demand, what is waited for, and what goes back."""
        if self._follow_link(now) is not None and not self._foreign:
            return None
        self._count(now)
        if now >= self._expires:
            self._lapse()
        block = self._block()
        self._low = (block + 1) // 2
        want = block + self.waiting - self.balance
        surplus = max(0, -want - block)
        if self.balance < 0:
            surplus = self.balance
            want = block + self.waiting
        if now < self._quiet_until:
            want = 0
        want = max(0, want)
        least = max(1, self._least - max(0, self.balance)) if self.waiting else math.ceil(self._size)
        rate = self.rule.rate
        back = self._returning + surplus
        if not want and not back and not self._foreign:
            return None
        self.balance -= surplus
        self._returning = 0
        self._wanted, self._told = want, back
        least = min(least, want, rate.burst)
        return RateAsk(self.key, rate.amount / SECONDS[rate.period], rate.burst, want, least, back, self.demand)

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer."""
        self._foreign = grant is None
        if grant is None:
            self._quiet_until = now + AGAIN
            return
        if grant.granted:
            self.balance += grant.granted
            self._expires = now + self._holds
        elif self._wanted:
            self._quiet_until = now + REFUSED_FOR
        if self._wanted:
            self._short = grant.granted < self._wanted or grant.level < self._wanted
        self._left, self._left_at = grant.level, now
        self._share, self._processes = grant.share, grant.processes

    def untold(self) -> None:
        """Note that there was no answer: a debt is told again, what was given back is not, since it may have come."""
        self._returning += min(0, self._told)

    def renew(self, now: float) -> bool:
        """Return whether units have lapsed, or a foreign key is to be tried again."""
        if now >= self._expires:
            self._lapse()
        return self._returning != 0 or self.balance < 0 or (self._foreign and now >= self._quiet_until)

    def holds(self) -> bool:
        """Return whether there may be later."""
        return self.balance != 0 or self._foreign

    def share(self) -> tuple[float, int]:
        """Return this process's part of the demand, and the processes that have any."""
        return self._share, self._processes

    def assume(self, share: float, processes: int) -> None:
        """Take the share that was known before a restart."""
        self._share, self._processes = share, processes

    def _block(self) -> int:
        """Return the units to lease ahead: none where they would lapse before the next request."""
        if self.demand * self._holds < self._size:
            return 0
        most = max(1, int(PART * self.rule.rate.amount / self._processes), math.ceil(2 * self._size))
        return min(max(1, math.ceil(self.demand * AHEAD)), most)

    def _count(self, now: float) -> None:
        passed = now - self._counted_at
        if passed > 0:
            weight = 1 - math.exp(-passed / MEMORY)
            self.demand += (self._asked / passed - self.demand) * weight
            self._asked = 0
            self._counted_at = now

    def _lapse(self) -> None:
        self._expires = math.inf
        if self.balance > 0:
            self._returning += self.balance
            self.balance = 0
            self._keeper.due(self)

    def _follow_link(self, now: float) -> LocalRate | None:
        """Go on alone when whoever counts is lost, with the units that are left; come back with what was used."""
        local = self.local
        if self._keeper.alone or self._foreign:
            if local is None:
                share = alone_share(self._share, self._processes)
                left = share * (self.left(now) - self.balance) + self.balance + self._returning
                local = self.local = LocalRate(part_of(self.rule.rate, share))
                local.take(max(0.0, local.rule.burst - left), now, 0.0)
                self.balance = self._returning = 0
                self._expires = math.inf
        elif local is not None:
            used = max(0.0, local.arrival - now) / local.rule.interval
            self._returning -= math.ceil(used)
            self.local = local = None
            self._quiet_until = -math.inf
            self._keeper.due(self)
        return local
