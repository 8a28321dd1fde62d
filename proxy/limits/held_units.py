"""What a process holds and knows of a rate that several share, while it is used. Time is an argument."""

import math
from typing import Final

from proxy.limits.concurrency import NEVER, LeaseKeeper, equal_share, idle_share
from proxy.limits.gcra import LocalRate

MEMORY: Final = 0.5
"""Seconds over which demand is averaged."""

BELIEVED: Final = 3.0
LONGEST_BELIEVED: Final = 60.0
"""Seconds for which a demand holds after it was told, at least and at most: three times as long as it lets expect the
next request to take."""

SPEAKS: Final = 0.25
"""Seconds after which the silence of a process says that it has gone on alone, if it uses the limit more often."""

GONE: Final = 10
"""Seconds after which a silent process counts as gone: what was set aside for it is everybody's again."""

PARTS: Final = 1024
"""Parts of a limit in which a process's share is told, rounded down, so that many teams have the same numbers."""


class HeldUnits:
    """What a process holds of a rate, and knows of it, while it is used. `total` are the units that it gave back (below
    0: that it took beyond what was granted) in this `life` of its lease, of which `acked` are confirmed. `away` says
    that it counts alone, by `local`; then `spent` is what it took beyond what it held. `paid` is what it took alone and
    paid for with its part, until that is confirmed. `speaks` says that it told at `asked_at` that it will speak again
    within SPEAKS."""

    __slots__ = (
        *("acked", "asked", "asked_at", "away", "balance", "counted_at", "demand", "epoch", "expires", "foreign"),
        *("known_until", "least", "life", "local", "low", "paid", "processes", "quiet_until", "share", "short"),
        *("size", "speaks", "spent", "told", "total", "waiting", "wanted"),
    )

    def __init__(self, keeper: LeaseKeeper) -> None:
        self.acked = self.total = self.told = 0
        self.asked = 0
        self.asked_at = NEVER
        self.away = self.foreign = self.short = self.speaks = False
        self.balance = 0
        self.counted_at = NEVER
        self.demand = 0.0
        self.epoch = 0
        self.expires = math.inf
        # Before anybody counted for all, all go on alike; later, who has not heard of a limit used nothing of it.
        self.known_until = NEVER if keeper.met else math.inf
        self.least = self.low = self.wanted = self.waiting = 0
        self.life = keeper.turns + 1
        self.local: LocalRate | None = None
        self.paid = 0
        self.processes = keeper.expected
        self.quiet_until = NEVER
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
        untold = self.known_until == math.inf and keeper.met
        known = self.foreign or (self.known_until > keeper.lost_at and not untold)
        share = self.share if known else idle_share(keeper.expected)
        return max(1, int(share * PARTS + 1e-6))
