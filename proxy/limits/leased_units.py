"""The state of a leased rate in one process, which exists while the rate is used. Time is an argument."""

import math
from functools import lru_cache
from typing import Final

from proxy.limits.gcra import GcraRule, LocalRate, part_of
from proxy.limits.limit import Rate
from proxy.shared_state.lease_keeper import (
    GONE_SECONDS,
    NEVER,
    REJOIN_SECONDS,
    LeaseKeeper,
    equal_share,
    equal_share_known_until,
    idle_share,
    still_known,
)

DEMAND_WINDOW: Final = 0.5
"""Seconds over which the demand is averaged."""

DEMAND_HOLDS: Final = 3.0
LONGEST_DEMAND_HOLDS: Final = 60.0
"""The least and the most seconds for which a reported demand is valid. Between these bounds the time is three times the
expected time to the next request."""

SILENCE_LIMIT: Final = 0.25
"""Seconds of silence after which the coordinator assumes that a process counts alone, if the process uses the limit
more often than that."""

SHARE_STEPS: Final = 1024
"""A process's share is rounded down to a multiple of 1/SHARE_STEPS, so that many teams share the same computed
numbers."""


class LeasedUnits:
    """The units that a process holds of a leased rate, and its knowledge of the rate.

    - `total` are all units given back in this `life` of the lease (below 0: taken beyond the granted ones). `acked` of
      them are confirmed, and `reported` were sent last.
    - `counts_alone`: the process counts alone, by `local`. `taken_alone` are the units taken beyond the held ones.
    - `paid` are units taken alone and paid for by its part, until a reply confirms them.
    - `promised`: the process reported at `sent_at` that it would exchange again within SILENCE_LIMIT.
    - `short_until`: the time until which there are too few units for the demand of all processes.
    - `left_for_all_until`: the time until which the process believes that only `left_for_all` units are left for all
      processes.
    - `doubt_since`: when the coordinator was last found to have lost its memory.
    """

    __slots__ = (
        *("acked", "balance", "counted_at", "counts_alone", "demand", "demanded", "doubt_since", "epoch", "expires"),
        *("foreign", "known_until", "least_waiting", "left_for_all", "left_for_all_until", "life", "local", "paid"),
        *("processes", "promised", "quiet_until", "refill_below", "reported", "sent_at", "share", "short_until"),
        *("size", "taken_alone", "total", "waiting", "wanted"),
    )

    def __init__(self, keeper: LeaseKeeper) -> None:
        self.acked = self.total = self.reported = 0
        self.demanded = 0
        self.sent_at = NEVER
        self.counts_alone = self.foreign = self.promised = False
        self.balance = 0
        self.counted_at = NEVER
        self.demand = 0.0
        self.doubt_since = NEVER
        self.epoch = 0
        self.expires = math.inf
        self.known_until = equal_share_known_until(keeper)
        self.least_waiting = self.refill_below = self.wanted = self.waiting = 0
        self.life = keeper.rounds + 1
        self.local: LocalRate | None = None
        self.paid = 0
        self.processes = keeper.expected
        self.quiet_until = self.left_for_all_until = self.short_until = NEVER
        self.left_for_all = 0.0
        self.share = equal_share(keeper.expected)
        self.size = 1.0
        self.taken_alone = 0

    def count(self, now: float) -> None:
        """Update the average of the demand."""
        passed = now - self.counted_at
        if passed == math.inf:
            self.counted_at = now
        elif passed > 0:
            weight = 1 - math.exp(-passed / DEMAND_WINDOW)
            self.demand += (self.demanded / passed - self.demand) * weight
            self.demanded = 0
            self.counted_at = now

    def believed(self) -> float:
        """Return for how many seconds a demand that is reported now holds."""
        if self.demand <= 0:
            return DEMAND_HOLDS
        return min(LONGEST_DEMAND_HOLDS, max(DEMAND_HOLDS, 3 * self.size / self.demand))

    def is_busy(self) -> bool:
        """Return whether the limit is used so often that the coordinator notices a silence of SILENCE_LIMIT."""
        return self.demand * SILENCE_LIMIT >= self.size

    def parts(self, keeper: LeaseKeeper) -> int:
        """Return the part of the limit that this process has while it counts alone, in SHARE_STEPS. It is the last
        reported share if that was still valid when the coordinator was lost. A process without one has an equal part of
        the divided remainder.
        """
        known = self.foreign or still_known(keeper, self.known_until, keeper.lost_at)
        share = self.share if known else idle_share(keeper.expected)
        return max(1, int(share * SHARE_STEPS + 1e-6))

    def cautious(self, keeper: LeaseKeeper, now: float) -> bool:
        """Return whether this process stays within its own part as well, because others may not have reported their use
        yet."""
        since = max(self.doubt_since, keeper.back_at)
        return now < since + (REJOIN_SECONDS if keeper.all_reported_since >= since else GONE_SECONDS)

    def keep_to_part(self, rule: GcraRule, common: float, keeper: LeaseKeeper, now: float) -> None:
        """Begin to count by the part of the limit that this process has while it counts alone. The same fraction is
        left of it as of the whole limit (`common`). A part that is already being counted stays, with its remaining
        units, because the coordinator has set it aside."""
        before = self.local
        part = _part(rule.rate, self.parts(keeper)) if before is None else before.rule
        left = rule.interval / part.interval * common + self.balance + self.total - self.acked
        if before is not None:
            left = min(left, before.left(now))
        self.local = LocalRate(part)
        self.local.take(max(0.0, part.burst - left), now, 0.0)

    def leave(self) -> None:
        """Begin to count alone, by the part in `local`."""
        self.counts_alone = True
        self.taken_alone = self.paid - self.balance - (self.total - self.acked)
        self.total, self.paid = self.acked, 0
        self.balance = 0
        self.expires = math.inf

    def rejoin(self, now: float) -> None:
        """Report the units that were taken alone beyond the held ones, in two amounts: `taken`, which are not paid for
        yet, and `paid`. The coordinator has set aside the paid units. If it has not, they no longer count."""
        used = 0.0 if self.local is None else max(0.0, self.local.arrival - now) / self.local.rule.interval
        taken = math.ceil(min(self.taken_alone, used))
        self.counts_alone = False
        self.total -= taken
        self.paid = max(0, self.taken_alone - taken)
        self.quiet_until = self.left_for_all_until = NEVER

    def follow(self, rule: GcraRule, keeper: LeaseKeeper, now: float) -> None:
        """Count by another rate. A shortage of the former rate says nothing about this one."""
        self.wanted = 0
        self.quiet_until = self.left_for_all_until = self.short_until = NEVER
        if self.local is not None:
            used = max(0.0, self.local.arrival - now) / self.local.rule.interval
            self.local = LocalRate(_part(rule.rate, self.parts(keeper)))
            self.local.take(used, now, 0.0)

    def believed_part(self, rule: GcraRule) -> float:
        """Return the part that this process would have, by its last reply, if it counted alone. It counts by this
        reply. The part is 0 before the first reply."""
        if not self.epoch:
            return 0.0
        return self.share if self.local is None else rule.interval / self.local.rule.interval


@lru_cache(maxsize=SHARE_STEPS)
def _part(rate: Rate, parts: int) -> GcraRule:
    return part_of(rate, parts / SHARE_STEPS)
