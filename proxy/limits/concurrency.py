"""Requests under way at once: places of one scope, in one process or leased for it. Time is an argument.

Places are a gauge, which nothing heals by itself: a place is released exactly once, by its reservation.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
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


NEVER: Final = -math.inf
"""A time that has passed. One number for all: a table may have ten thousand teams."""

RESTING, LIVE, DROPPED = 0, 1, 2
"""Where a lease stands: nobody looks at it, it is looked at every now and then, or it is not exchanged any more."""


PLACES_HOLD: Final = 10.0
"""Seconds for which it is believed how places were divided."""


class LeaseKeeper(Protocol):
    """What a lease knows of who exchanges it: whether it stands `alone`, and since when (`lost_at`); whether it is
    `rejoining`, so that others may not have told yet what they used alone; whether there ever was an answer (`met`);
    how many processes are `expected` to share; how many `turns` there were; and how to be exchanged at the next turn
    (`due`) or at once (`wake`), or looked at every now and then (`watch`)."""

    alone: bool
    lost_at: float
    rejoining: bool
    met: bool
    turns: int

    @property
    def expected(self) -> int: ...

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

    def rest(self, now: float) -> bool:
        """Forget what matters no more of one at rest, and return whether there is nothing left to forget."""
        ...


class LeasedPlaces(Places):
    """The places of a scope that several processes share: `held` are this process's. Alone, it has a part of them."""

    __slots__ = (
        *("_foreign", "_keeper", "_known_until", "_others", "_processes", "_quiet_until", "_share", "_wanted"),
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
        self._known_until = NEVER if keeper.met else math.inf
        self._quiet_until = NEVER
        self._others = 0
        self._processes = keeper.expected
        self._share = equal_share(keeper.expected)
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
        keeper, foreign = self._keeper, self._foreign
        if (keeper.alone or keeper.rejoining or foreign) and self.used >= self._own():
            return True
        return self.used >= self.held and not (keeper.alone or foreign)

    def take(self, units: int, now: float, wall: float) -> None:
        self.used += 1
        if self.held < self.used + self.spare:
            self._keeper.due(self)

    def attempt(self) -> bool:
        keeper = self._keeper
        if (
            self.used >= self.held or keeper.alone or keeper.rejoining or self._foreign  # else nothing is in doubt
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
        if keeper.alone or self._foreign or (keeper.rejoining and self.used >= self._own()):
            return False
        return now >= self._quiet_until

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return what is told when no place is free: for all, or of the part that this process may have alone."""
        told, keeper = super().exceeded(scope, units, now, wall), self._keeper
        by_itself = keeper.alone or keeper.rejoining or self._foreign
        return replace(told, alone=0) if by_itself and self.used >= self._own() else told

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
        if grant.share < self._share or not self._keeper.rejoining:
            self._processes = grant.processes
            self._share = grant.share
        self._known_until = now + PLACES_HOLD
        if self._wanted and not grant.granted:
            self._quiet_until = now + REFUSED_FOR

    def renew(self, now: float) -> bool:
        """Return whether places are held, whose word lapses, or others were last heard to hold some: nobody else tells
        that they released them."""
        return self.held > 0 or self.used > 0 or self._others > 0 or self._foreign

    def holds(self) -> bool:
        """Return whether there may be later."""
        return False

    def rest(self, now: float) -> bool:
        """Forget nothing: there is nothing to forget."""
        return True

    def _own(self) -> int:
        """Return the places that this process may have alone."""
        known_until = math.inf if self._foreign else self._known_until
        return max(1, int(self.capacity * own_share(self._keeper, self._share, self._processes, known_until)))


ROLL_CALL: Final = "processes"
MOST: Final = 1_000_000
"""The key by which processes are counted, and more of them than any number of gateways has."""


class RollCall:
    """A process's place among all. It is always held, so that whoever counts hears of the process before anybody asks
    for anything, and the process of whoever counts."""

    __slots__ = ("_least", "processes", "standing")

    def __init__(self, least: int) -> None:
        self.standing = RESTING
        self.processes = self._least = max(1, least)

    @property
    def key(self) -> str:
        """What it is counted by."""
        return ROLL_CALL

    def ask(self, now: float) -> PlacesAsk:
        """Return what is asked for: nothing but what is held."""
        return PlacesAsk(ROLL_CALL, MOST, 1, 0)

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer. There are never fewer than this gateway has."""
        if grant is not None:
            self.processes = max(self._least, grant.processes)

    def untold(self) -> None:
        """Note that there was no answer: they are as many as before."""

    def renew(self, now: float) -> bool:
        """Return that it is to be told every now and then."""
        return True

    def holds(self) -> bool:
        """Return that it never rests."""
        return True

    def rest(self, now: float) -> bool:
        """Forget nothing."""
        return True


@lru_cache(maxsize=64)
def equal_share(processes: int) -> float:
    """Return the part of one among equals, one number for all."""
    return 1.0 / processes


def own_share(keeper: LeaseKeeper, share: float, processes: int, known_until: float) -> float:
    """Return the part of a limit that a process has alone, whose last `share` of what `processes` used held until
    `known_until`."""
    if known_until > keeper.lost_at:
        return alone_share(share, processes, keeper.expected)
    return idle_share(keeper.expected)


def idle_share(every: int) -> float:
    """Return the part of a limit with which a process begins alone that used nothing of it: what is shared equally."""
    return EQUAL_ALONE / every


def alone_share(share: float, processes: int, every: int) -> float:
    """Return the part of a limit that a process goes on with alone, from its last share of what `processes` used:
    closer to an equal part for each of `every` process there is, since traffic moves when something is lost. The parts
    of all, with those of who used nothing, add up to one."""
    demand = min(1.0, max(0.0, (share - EQUAL / processes) / (1 - EQUAL)))
    return (1 - EQUAL_ALONE) * demand + EQUAL_ALONE / max(processes, every)
