"""What a process holds and knows of a rate that several share, while it is used. Time is an argument."""

import math
from functools import lru_cache
from typing import Final

from proxy.limits.gcra import GcraRule, LocalRate, part_of
from proxy.limits.limit import Rate
from proxy.shared_state.lease_keeper import (
    GONE,
    NEVER,
    REJOIN,
    LeaseKeeper,
    equal_share,
    first_known,
    idle_share,
    still_known,
)

MEMORY: Final = 0.5
"""Seconds over which demand is averaged."""

BELIEVED: Final = 3.0
LONGEST_BELIEVED: Final = 60.0
"""Seconds for which a demand holds after it was told, at least and at most: three times as long as it lets expect the
next request to take."""

SPEAKS: Final = 0.25
"""Seconds after which the silence of a process says that it has gone on alone, if it uses the limit more often."""

PARTS: Final = 1024
"""Parts of a limit in which a process's share is told, rounded down, so that many teams have the same numbers."""


class LeasedUnits:
    """What a process holds of a rate, and knows of it, while it is used. `total` are the units that it gave back (below
    0: that it took beyond what was granted) in this `life` of its lease, of which `acked` are confirmed. `away` says
    that it counts alone, by `local`; then `spent` is what it took beyond what it held. `paid` is what it took alone and
    paid for with its part, until that is confirmed. `speaks` says that it told at `asked_at` that it will speak again
    within SPEAKS. Until `short_until` there were too few units for all that was asked for, and until `said_until` it is
    believed that only `said` are left for all. Whoever counts was last found to have lost its memory at
    `doubt_since`."""

    __slots__ = (
        *("acked", "asked", "asked_at", "away", "balance", "counted_at", "demand", "doubt_since", "epoch", "expires"),
        *("foreign", "known_until", "least", "life", "local", "low", "paid", "processes", "quiet_until", "said"),
        *("said_until", "share"),
        *("short_until", "size", "speaks", "spent", "told", "total", "waiting", "wanted"),
    )

    def __init__(self, keeper: LeaseKeeper) -> None:
        self.acked = self.total = self.told = 0
        self.asked = 0
        self.asked_at = NEVER
        self.away = self.foreign = self.speaks = False
        self.balance = 0
        self.counted_at = NEVER
        self.demand = 0.0
        self.doubt_since = NEVER
        self.epoch = 0
        self.expires = math.inf
        self.known_until = first_known(keeper)
        self.least = self.low = self.wanted = self.waiting = 0
        self.life = keeper.turns + 1
        self.local: LocalRate | None = None
        self.paid = 0
        self.processes = keeper.expected
        self.quiet_until = self.said_until = self.short_until = NEVER
        self.said = 0.0
        self.share = equal_share(keeper.expected)
        self.size = 1.0
        self.spent = 0

    def count(self, now: float) -> None:
        """Average the demand."""
        passed = now - self.counted_at
        if passed == math.inf:
            self.counted_at = now
        elif passed > 0:
            weight = 1 - math.exp(-passed / MEMORY)
            self.demand += (self.asked / passed - self.demand) * weight
            self.asked = 0
            self.counted_at = now

    def believed(self) -> float:
        """Return how many seconds a demand holds that is told now."""
        if self.demand <= 0:
            return BELIEVED
        return min(LONGEST_BELIEVED, max(BELIEVED, 3 * self.size / self.demand))

    def is_busy(self) -> bool:
        """Return whether it uses the limit so often that others notice when it falls silent."""
        return self.demand * SPEAKS >= self.size

    def parts(self, keeper: LeaseKeeper) -> int:
        """Return the part of the limit that this process has alone, in PARTS: what it was told last, if that still held
        when whoever counts was lost. Who was told nothing by one who counted for others has what is shared equally."""
        known = self.foreign or still_known(keeper, self.known_until, keeper.lost_at)
        share = self.share if known else idle_share(keeper.expected)
        return max(1, int(share * PARTS + 1e-6))

    def cautious(self, keeper: LeaseKeeper, now: float) -> bool:
        """Return whether this process keeps to its own part as well, since others may not have told what they used."""
        since = max(self.doubt_since, keeper.back_at)
        return now < since + (REJOIN if keeper.told_since >= since else GONE)

    def keep_to_part(self, rule: GcraRule, common: float, keeper: LeaseKeeper, now: float) -> None:
        """Count by the part that this process has alone, of which as much is left as of all (`common`). One who kept to
        a part before keeps that one, and what is left of it: by the others it is set aside for it."""
        before = self.local
        part = _part(rule.rate, self.parts(keeper)) if before is None else before.rule
        left = rule.interval / part.interval * common + self.balance + self.total - self.acked
        if before is not None:
            left = min(left, before.left(now))
        self.local = LocalRate(part)
        self.local.take(max(0.0, part.burst - left), now, 0.0)

    def leave(self) -> None:
        """Begin to count alone, by the part that this process keeps to."""
        self.away = True
        self.spent = self.paid - self.balance - (self.total - self.acked)
        self.total, self.paid = self.acked, 0
        self.balance = 0
        self.expires = math.inf

    def rejoin(self, now: float) -> None:
        """Have what was taken alone beyond what was held told: what is not paid for by now, and what is. That was set
        aside by who counted, or counts no more if nobody did."""
        used = 0.0 if self.local is None else max(0.0, self.local.arrival - now) / self.local.rule.interval
        taken = math.ceil(min(self.spent, used))
        self.away = False
        self.total -= taken
        self.paid = max(0, self.spent - taken)
        self.quiet_until = self.said_until = NEVER

    def follow(self, rule: GcraRule, keeper: LeaseKeeper, now: float) -> None:
        """Count by another rate. That there were too few units says nothing about this one."""
        self.wanted = 0
        self.quiet_until = self.said_until = self.short_until = NEVER
        if self.local is not None:
            used = max(0.0, self.local.arrival - now) / self.local.rule.interval
            self.local = LocalRate(_part(rule.rate, self.parts(keeper)))
            self.local.take(used, now, 0.0)

    def believed_part(self, rule: GcraRule) -> float:
        """Return the part that this process would have alone, as far as anybody told it: the one that it keeps to."""
        if not self.epoch:
            return 0.0
        return self.share if self.local is None else rule.interval / self.local.rule.interval


@lru_cache(maxsize=PARTS)
def _part(rate: Rate, parts: int) -> GcraRule:
    return part_of(rate, parts / PARTS)
