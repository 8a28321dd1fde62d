"""Requests in flight: the concurrency slots of one scope, counted in one process or leased. Time is an argument.

A slot must be released exactly once, by its reservation. Slots do not lapse, so a missed release is never corrected.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from proxy.limits.limit import Unit
from proxy.limits.limit_views import Exceeded, LimitKind, LimitView, slots_view
from proxy.shared_state.lease import LeaseGrant, SlotsRequest
from proxy.shared_state.lease_keeper import (
    NEVER,
    REFUSAL_PAUSE,
    RESTING,
    LeaseKeeper,
    alone_share,
    equal_share,
    equal_share_known_until,
    idle_share,
    in_doubt,
    still_known,
)

SPARE_DIVISOR: Final = 25
"""A process leases at most 1/SPARE_DIVISOR of its equal part of the slots ahead of use. If it leased more, requests
would be refused while other processes hold unused slots."""

GUESSED_WAIT: Final = 1.0
"""The guessed seconds until a slot is free, because there is no better estimate."""

SLOTS_KNOWN_SECONDS: Final = 10.0
IDLE_SLOTS_KNOWN_SECONDS: Final = 2.0
"""Seconds for which a reported division of slots is believed, and seconds for which a report is believed that no
process uses a slot. In the second case all processes have equal parts."""


class Slots:
    """The slots of a scope that this process counts by itself."""

    __slots__ = ("capacity", "freed", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.freed: Callable[[], None] | None = None

    @property
    def taken(self) -> int:
        """The slots in use by all processes, as far as this process knows."""
        return self.used

    def lacks(self, units: int, now: float, wall: float) -> bool:
        """Return whether no slot is free."""
        return self.used >= self.capacity

    def take(self, units: int, now: float, wall: float) -> None:
        """Take a slot after a test at the same `now`."""
        self.used += 1

    def attempt(self) -> bool:
        """Test and take a slot, and return whether one was free."""
        if self.used >= self.capacity:
            return False
        self.used += 1
        return True

    def undo(self) -> None:
        """Give back the slot of an attempt at the same `now`. No waiting request is notified, because no request was
        refused this slot."""
        self.used -= 1

    def settle(self, reserved: int, used: int) -> None:
        """Release the slot."""
        self.used -= 1
        if self.freed is not None:
            self.freed()

    def refused(self, units: int, now: float) -> None:
        """Ignore a refused request."""

    def fetchable(self, units: int, now: float) -> bool:
        """Return that no more slots can be fetched."""
        return False

    def wait(self, units: int, now: float, wall: float) -> float:
        """Return a guess of the seconds until a slot is free."""
        return GUESSED_WAIT if self.lacks(units, now, wall) else 0.0

    def remaining(self, now: float, wall: float) -> int:
        """Return the free slots."""
        return max(0, self.capacity - self.taken)

    def for_headers(self, now: float, wall: float) -> None:
        """Return `None`: headers do not show slots, and OpenAI's headers do not show them either."""

    def full_in(self, now: float, wall: float) -> float:
        """Return a guess of the seconds until all slots are free."""
        return GUESSED_WAIT if self.used else 0.0

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the current view of the limit."""
        yield slots_view(scope, self.capacity, self.taken)

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return the details of a refusal."""
        capacity, wait = self.capacity, self.wait(units, now, wall)
        return Exceeded(scope, LimitKind.CONCURRENT, Unit.REQUESTS, None, capacity, self.taken, 1, wait, None)


class LeasedSlots(Slots):
    """The slots of a scope that several processes share. This process has leased `held` of them. If it counts alone, it
    may use a part of all slots. It is `_cautious` while other processes may not have reported the slots that they hold.
    It then also stays within its part."""

    __slots__ = (
        *("_cautious", "_doubt_since", "_epoch", "_foreign", "_keeper", "_known_until", "_no_request_until"),
        *("_others", "_processes", "_reported", "_share", "_wanted", "held", "scope", "standing", "waiting"),
    )

    def __init__(self, scope: str, capacity: int, keeper: LeaseKeeper) -> None:
        super().__init__(capacity)
        self.scope = scope
        self.held = 0
        self.standing = RESTING
        self.waiting = 0
        self._keeper = keeper
        self._cautious = self._foreign = False
        self._doubt_since = NEVER
        self._epoch = 0
        self._known_until = equal_share_known_until(keeper)
        self._no_request_until = NEVER
        self._others = 0
        self._processes = keeper.expected
        self._share = equal_share(keeper.expected)
        self._reported = self._wanted = 0

    @property
    def taken(self) -> int:
        return self._others + self.used

    @property
    def key(self) -> str:
        """The key under which the slots are counted."""
        return f"{self.scope} concurrent"

    @property
    def spare(self) -> int:
        """The slots that are leased ahead."""
        return self.capacity // (SPARE_DIVISOR * self._processes)

    def lacks(self, units: int, now: float, wall: float) -> bool:
        keeper, foreign = self._keeper, self._foreign
        if (keeper.alone or keeper.rejoining or self._cautious) and self.used + units > self._part_alone():
            return True
        return self.used + units > self.held and not (keeper.alone or foreign)

    def take(self, units: int, now: float, wall: float) -> None:
        self.used += 1
        if self.held < self.used + self.spare:
            self._keeper.mark_due(self)

    def attempt(self) -> bool:
        keeper = self._keeper
        if (
            self.used >= self.held
            or keeper.alone
            or keeper.rejoining
            or self._cautious  # In all other cases the slots are not in doubt.
        ) and self.lacks(1, 0.0, 0.0):
            return False
        self.used += 1
        if self.held < self.used + self.capacity // (SPARE_DIVISOR * self._processes):
            keeper.mark_due(self)
        return True

    def settle(self, reserved: int, used: int) -> None:
        self.used -= 1
        if self.freed is not None:
            self.freed()
        if self.held > self.used + self.capacity // (SPARE_DIVISOR * self._processes):
            self._keeper.wake(self)

    def fetchable(self, units: int, now: float) -> bool:
        keeper = self._keeper
        if keeper.alone or self._foreign or ((keeper.rejoining or self._cautious) and self.used >= self._part_alone()):
            return False
        return now >= self._no_request_until

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return the details of a refusal. The refusing limit is either the number of all slots, or the part of them
        that this process has while it counts alone."""
        exceeded, keeper = super().exceeded(scope, units, now, wall), self._keeper
        limited_to_part = keeper.alone or keeper.rejoining or self._cautious
        return replace(exceeded, alone=0) if limited_to_part and self.used >= self._part_alone() else exceeded

    def next_request(self, now: float) -> SlotsRequest | None:
        """Return the request for slots: the used slots, the slots that requests wait for, and spare slots. Used slots
        are held even if the coordinator does not grant them."""
        need = self.used + self.waiting + self.spare
        self.held = max(self.used, min(self.held, need))
        want = need - self.held if now >= self._no_request_until else 0
        self._wanted = want
        self._reported = self.used + self.waiting
        return SlotsRequest(self.key, self.capacity, self.held, want, self._reported)

    def exchange_failed(self) -> None:
        """Ignore a failed exchange."""

    def add_waiting(self, units: int) -> None:
        """Add a request that waits for a slot."""
        self.waiting += 1

    def remove_waiting(self, units: int) -> None:
        """Remove a request that waited for a slot."""
        self.waiting -= 1

    def apply_grant(self, grant: LeaseGrant | None, now: float) -> None:
        """Apply the reply. If the key has another epoch before it can have lapsed, its memory was lost, and the slots
        of other processes are not counted there yet."""
        if self._foreign or grant is None or (self._epoch not in (0, grant.epoch) and now < self._known_until):
            self._doubt_since = now
            self._cautious = True
        self._foreign = grant is None
        if grant is None:
            return
        self._epoch = grant.epoch
        self.held += grant.granted
        self._others = max(0, int(grant.level) - self._reported)
        share, processes, self._known_until = grant.share, grant.processes, now + SLOTS_KNOWN_SECONDS
        if not self.held and processes == 1:
            share, processes = equal_share(self._keeper.expected), self._keeper.expected
            self._known_until = now + IDLE_SLOTS_KNOWN_SECONDS
        if share < self._share or not (self._keeper.rejoining or self._cautious):
            self._share, self._processes = share, processes
        if self._wanted and not grant.granted:
            self._no_request_until = now + REFUSAL_PAUSE

    def needs_renewal(self, now: float) -> bool:
        """Return whether this process must report its slots before they lapse, or must learn that others released
        slots, which only its own exchange reports."""
        self._cautious = self._foreign or in_doubt(self._keeper, self._doubt_since, now)
        return self.held > 0 or self.used > 0 or self._others > 0 or self._cautious

    def may_need_renewal(self) -> bool:
        """Return that an unused lease needs no later renewal."""
        return False

    def forget_if_idle(self, now: float) -> bool:
        """Return that the lease holds no state to forget."""
        return True

    def division(self, now: float) -> tuple[float, int] | None:
        """Return this process's share of the slots in use and the number of processes that use any, `None` if no reply
        reported them recently. Safe to call from any thread."""
        keeper = self._keeper
        if self._foreign or not still_known(keeper, self._known_until, keeper.lost_at if keeper.alone else now):
            return None
        return self._share, self._processes

    def assume(self, share: float, processes: int) -> None:
        """Use the share and the number of processes that were known before a restart."""
        self._share, self._processes, self._known_until = share, processes, math.inf

    def _part_alone(self) -> int:
        """Return the number of slots that this process may use while it counts alone, at least one."""
        keeper = self._keeper
        if self._foreign or still_known(keeper, self._known_until, keeper.lost_at):
            part = alone_share(self._share, self._processes, keeper.expected)
        else:
            part = idle_share(keeper.expected)
        return max(1, int(self.capacity * part))
