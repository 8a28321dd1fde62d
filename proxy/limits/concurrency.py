"""Requests under way at once: places of one scope, in one process or leased for it. Time is an argument.

Places are a gauge, which nothing heals by itself: a place is released exactly once, by its reservation.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from proxy.limits.limit import Unit
from proxy.limits.limit_views import Exceeded, LimitKind, LimitView, places_view
from proxy.shared_state.lease import LeaseGrant, PlacesAsk
from proxy.shared_state.lease_keeper import (
    NEVER,
    REFUSED_FOR,
    RESTING,
    LeaseKeeper,
    alone_share,
    equal_share,
    first_known,
    idle_share,
    in_doubt,
    still_known,
)

SPARE: Final = 25
"""One place in so many, of those that a process could have, is leased ahead: with more, requests are refused while
other processes keep places that nobody uses."""

GUESS: Final = 1.0
"""Seconds after which a place may be free, for want of a better guess."""

PLACES_HOLD: Final = 10.0
NOBODY_HOLDS: Final = 2.0
"""Seconds for which it is believed how places were divided, and that nobody used any: then all have equal parts."""


class Places:
    """The places of a scope that one process counts by itself."""

    __slots__ = ("capacity", "freed", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.freed: Callable[[], None] | None = None

    @property
    def taken(self) -> int:
        """The places taken by all, as far as this process knows."""
        return self.used

    def lacks(self, units: int, now: float, wall: float) -> bool:
        """Return whether no place is free."""
        return self.used >= self.capacity

    def take(self, units: int, now: float, wall: float) -> None:
        """Take a place, after a test at the same time."""
        self.used += 1

    def attempt(self) -> bool:
        """Test and take a place at once, and return whether one was free."""
        if self.used >= self.capacity:
            return False
        self.used += 1
        return True

    def undo(self) -> None:
        """Put back what an attempt took, at the same time: nobody was told that it was gone."""
        self.used -= 1

    def settle(self, reserved: int, used: int) -> None:
        """Release the place."""
        self.used -= 1
        if self.freed is not None:
            self.freed()

    def refused(self, units: int, now: float) -> None:
        """Note a request that was refused."""

    def fetchable(self, units: int, now: float) -> bool:
        """Return whether another place could be fetched from somewhere."""
        return False

    def wait(self, units: int, now: float, wall: float) -> float:
        """Return a guess of the seconds until a place is free."""
        return GUESS if self.lacks(units, now, wall) else 0.0

    def remaining(self, now: float, wall: float) -> int:
        """Return the places that are free."""
        return max(0, self.capacity - self.taken)

    def shown(self, now: float, wall: float) -> None:
        """Return what headers show: nothing, as OpenAI's."""

    def full_in(self, now: float, wall: float) -> float:
        """Return a guess of the seconds until all places are free."""
        return GUESS if self.used else 0.0

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the limit as it stands."""
        yield places_view(scope, self.capacity, self.taken)

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return what is told when no place is free."""
        capacity, wait = self.capacity, self.wait(units, now, wall)
        return Exceeded(scope, LimitKind.CONCURRENT, Unit.REQUESTS, None, capacity, self.taken, 1, wait, None)


class LeasedPlaces(Places):
    """The places of a scope that several processes share: `held` are this process's. Alone, it has a part of them; and
    it is `cautious`, and keeps to that part as well, while others may not have told yet what they hold."""

    __slots__ = (
        *("_cautious", "_doubt_since", "_epoch", "_foreign", "_keeper", "_known_until", "_others", "_processes"),
        *("_quiet_until", "_share", "_told", "_wanted", "held", "scope", "standing", "waiting"),
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
        self._known_until = first_known(keeper)
        self._quiet_until = NEVER
        self._others = 0
        self._processes = keeper.expected
        self._share = equal_share(keeper.expected)
        self._told = self._wanted = 0

    @property
    def taken(self) -> int:
        return self._others + self.used

    @property
    def key(self) -> str:
        """What they are counted by."""
        return f"{self.scope} concurrent"

    @property
    def spare(self) -> int:
        """The places that are leased ahead."""
        return self.capacity // (SPARE * self._processes)

    def lacks(self, units: int, now: float, wall: float) -> bool:
        keeper, foreign = self._keeper, self._foreign
        if (keeper.alone or keeper.rejoining or self._cautious) and self.used + units > self._own():
            return True
        return self.used + units > self.held and not (keeper.alone or foreign)

    def take(self, units: int, now: float, wall: float) -> None:
        self.used += 1
        if self.held < self.used + self.spare:
            self._keeper.due(self)

    def attempt(self) -> bool:
        keeper = self._keeper
        if (
            self.used >= self.held or keeper.alone or keeper.rejoining or self._cautious  # else nothing is in doubt
        ) and self.lacks(1, 0.0, 0.0):
            return False
        self.used += 1
        if self.held < self.used + self.capacity // (SPARE * self._processes):
            keeper.due(self)
        return True

    def settle(self, reserved: int, used: int) -> None:
        self.used -= 1
        if self.freed is not None:
            self.freed()
        if self.held > self.used + self.capacity // (SPARE * self._processes):
            self._keeper.wake(self)

    def fetchable(self, units: int, now: float) -> bool:
        keeper = self._keeper
        if keeper.alone or self._foreign or ((keeper.rejoining or self._cautious) and self.used >= self._own()):
            return False
        return now >= self._quiet_until

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return what is told when no place is free: for all, or of the part that this process may have alone."""
        told, keeper = super().exceeded(scope, units, now, wall), self._keeper
        by_itself = keeper.alone or keeper.rejoining or self._cautious
        return replace(told, alone=0) if by_itself and self.used >= self._own() else told

    def ask(self, now: float) -> PlacesAsk | None:
        """Return the places to have: in use, waited for and spare. What is in use is held, whatever was agreed."""
        need = self.used + self.waiting + self.spare
        self.held = max(self.used, min(self.held, need))
        want = need - self.held if now >= self._quiet_until else 0
        self._wanted = want
        self._told = self.used + self.waiting
        return PlacesAsk(self.key, self.capacity, self.held, want, self._told)

    def untold(self) -> None:
        """Note that there was no answer."""

    def wait_for(self, units: int) -> None:
        """Note a request that waits for a place."""
        self.waiting += 1

    def wait_no_more(self, units: int) -> None:
        """Note that such a request waits no longer."""
        self.waiting -= 1

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer. A key that is another one before it can have ended was lost: what others hold of it is not
        known there yet."""
        if self._foreign or grant is None or (self._epoch not in (0, grant.epoch) and now < self._known_until):
            self._doubt_since = now
            self._cautious = True
        self._foreign = grant is None
        if grant is None:
            return
        self._epoch = grant.epoch
        self.held += grant.granted
        self._others = max(0, int(grant.level) - self._told)
        share, processes, self._known_until = grant.share, grant.processes, now + PLACES_HOLD
        if not self.held and processes == 1:
            share, processes = equal_share(self._keeper.expected), self._keeper.expected
            self._known_until = now + NOBODY_HOLDS
        if share < self._share or not (self._keeper.rejoining or self._cautious):
            self._share, self._processes = share, processes
        if self._wanted and not grant.granted:
            self._quiet_until = now + REFUSED_FOR

    def renew(self, now: float) -> bool:
        """Return whether places are held, whose word lapses, or others were last heard to use some: nobody else tells
        that they released them."""
        self._cautious = self._foreign or in_doubt(self._keeper, self._doubt_since, now)
        return self.held > 0 or self.used > 0 or self._others > 0 or self._cautious

    def holds(self) -> bool:
        """Return whether there may be later."""
        return False

    def rest(self, now: float) -> bool:
        """Forget nothing: there is nothing to forget."""
        return True

    def division(self, now: float) -> tuple[float, int] | None:
        """Return this process's share of the places in use, and the processes that use any; None if nobody told it of
        late. May be asked from any thread."""
        keeper = self._keeper
        if self._foreign or not still_known(keeper, self._known_until, keeper.lost_at if keeper.alone else now):
            return None
        return self._share, self._processes

    def assume(self, share: float, processes: int) -> None:
        """Take the share that was known before a restart."""
        self._share, self._processes, self._known_until = share, processes, math.inf

    def _own(self) -> int:
        """Return the places that this process may have alone: one at least."""
        keeper = self._keeper
        if self._foreign or still_known(keeper, self._known_until, keeper.lost_at):
            part = alone_share(self._share, self._processes, keeper.expected)
        else:
            part = idle_share(keeper.expected)
        return max(1, int(self.capacity * part))
