"""Requests under way at once: places of one scope, in one process or leased for it. Time is an argument.

Places are a gauge, which nothing heals by itself: a place is released exactly once, by its reservation.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from proxy.limits.limit import Unit
from proxy.limits.limit_views import Exceeded, LimitKind, LimitView, places_view
from proxy.shared_state.lease import LeaseAsk, LeaseGrant, PlacesAsk

SPARE: Final = 25
"""One place in so many, of those that a process could have, is leased ahead: with more, requests are refused while
other processes keep places that nobody uses."""

GUESS: Final = 1.0
"""Seconds after which a place may be free, for want of a better guess."""

REFUSED_FOR: Final = 0.02
"""Seconds without asking again after there was no place."""

EQUAL: Final = 0.1
EQUAL_ALONE: Final = 0.25
"""How much of a limit is shared equally, whatever the demand, and how much when whoever counts is lost."""


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

    def fetchable(self, now: float) -> bool:
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


NEVER: Final = -math.inf
"""A time that has passed. One number for all: a table may have ten thousand teams."""

RESTING, LIVE, DROPPED = 0, 1, 2
"""Where a lease stands: nobody looks at it, it is looked at every now and then, or it is not exchanged any more."""


class LeaseKeeper(Protocol):
    """What a lease knows of who exchanges it: whether it stands `alone`, how many processes are `expected` to share,
    and how to be exchanged at the next turn (`due`) or at once (`wake`), or looked at every now and then (`watch`)."""

    alone: bool
    expected: int

    def due(self, lease: "Lease") -> None: ...

    def wake(self, lease: "Lease") -> None: ...

    def watch(self, lease: "Lease") -> None: ...


class Lease(Protocol):
    """Something of a scope that is leased from whoever counts for several processes. `standing` is its keeper's."""

    standing: int

    @property
    def key(self) -> str: ...

    def ask(self, now: float) -> LeaseAsk | None:
        """Return what to ask for now, None for nothing."""
        ...

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer; None where something else is kept in its place. `now` is when it came."""
        ...

    def untold(self) -> None:
        """Note that there was no answer."""
        ...

    def renew(self, now: float) -> bool:
        """Return whether there is something to exchange every now and then without being asked."""
        ...

    def holds(self) -> bool:
        """Return whether there may be later."""
        ...


class LeasedPlaces(Places):
    """The places of a scope that several processes share: `held` are this process's. Alone, it has a part of them."""

    __slots__ = (
        *("_foreign", "_keeper", "_others", "_processes", "_quiet_until", "_share", "_wanted"),
        *("held", "scope", "standing", "waiting"),
    )

    def __init__(self, scope: str, capacity: int, keeper: LeaseKeeper) -> None:
        super().__init__(capacity)
        self.scope = scope
        self.held = 0
        self.standing = RESTING
        self.waiting = 0
        self._keeper = keeper
        self._foreign = False
        self._quiet_until = NEVER
        self._others = 0
        self._processes = keeper.expected
        self._share = 1.0 / keeper.expected
        self._wanted = 0

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
        if self._keeper.alone or self._foreign:
            return self.used >= max(1, int(self.capacity * alone_share(self._share, self._processes)))
        return self.used >= self.held

    def take(self, units: int, now: float, wall: float) -> None:
        self.used += 1
        if self.held < self.used + self.spare:
            self._keeper.due(self)

    def attempt(self) -> bool:
        if self.lacks(1, 0.0, 0.0):
            return False
        self.take(1, 0.0, 0.0)
        return True

    def settle(self, reserved: int, used: int) -> None:
        super().settle(reserved, used)
        if self.held > self.used + self.spare:
            self._keeper.wake(self)

    def fetchable(self, now: float) -> bool:
        return now >= self._quiet_until and not (self._keeper.alone or self._foreign)

    def ask(self, now: float) -> PlacesAsk | None:
        """Return the places to have: in use, waited for and spare. What is in use is held, whatever was agreed."""
        need = self.used + self.waiting + self.spare
        self.held = max(self.used, min(self.held, need))
        want = need - self.held if now >= self._quiet_until else 0
        self._wanted = want
        return PlacesAsk(self.key, self.capacity, self.held, want)

    def untold(self) -> None:
        """Note that there was no answer."""

    def wait_for(self, units: int) -> None:
        """Note a request that waits for a place."""
        self.waiting += 1

    def wait_no_more(self, units: int) -> None:
        """Note that such a request waits no longer."""
        self.waiting -= 1

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer."""
        self._foreign = grant is None
        if grant is None:
            return
        self.held += grant.granted
        self._others = max(0, int(grant.level) - self.held)
        self._processes = grant.processes
        self._share = grant.share
        if self._wanted and not grant.granted:
            self._quiet_until = now + REFUSED_FOR

    def renew(self, now: float) -> bool:
        """Return whether places are held, whose word lapses."""
        return self.held > 0 or self.used > 0 or self._foreign

    def holds(self) -> bool:
        """Return whether there may be later."""
        return False


def alone_share(share: float, processes: int) -> float:
    """Return the part of a limit that a process goes on with alone, from its last share: closer to an equal part, since
    traffic moves when something is lost. The parts of all add up to one."""
    demand = min(1.0, max(0.0, (share - EQUAL / processes) / (1 - EQUAL)))
    return (1 - EQUAL_ALONE) * demand + EQUAL_ALONE / processes
