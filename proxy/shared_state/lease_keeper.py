"""What all leases share: who exchanges them, as a lease sees it, and which part of a limit a process has alone. Time is
an argument.
"""

import math
from functools import lru_cache
from typing import Final, Protocol

from proxy.shared_state.lease import LeaseAsk, LeaseGrant

REFUSED_FOR: Final = 0.02
"""Seconds without asking again after there was no place."""

EQUAL: Final = 0.1
EQUAL_ALONE: Final = 0.25
"""How much of a limit is shared equally, whatever the demand, and how much when whoever counts is lost."""

LONGEST_PROBE: Final = 2.0
"""Seconds until who was lost is asked again, at most."""

REJOIN: Final = LONGEST_PROBE + 1.0
"""Seconds after which all others have found whoever counts as well, and told what they hold and used alone."""

GONE: Final = 10
"""Seconds after which a silent process counts as gone: what was set aside for it is everybody's again."""

NEVER: Final = -math.inf
"""A time that has passed. One number for all: a table may have ten thousand teams."""

RESTING, LIVE, DROPPED = 0, 1, 2
"""Where a lease stands: nobody looks at it, it is looked at every now and then, or it is not exchanged any more."""


class LeaseKeeper(Protocol):
    """What a lease knows of who exchanges it: whether it stands `alone`, and since when (`lost_at`); since when it is
    among others again (`back_at`), and whether these may not have told yet what they used alone (`rejoining`);
    since when all others have told what they hold (`told_since`); whether there ever was an answer (`met`), and
    whether processes may share of which only an answer can tell (`strangers`: those of other gateways); how many
    processes are `expected` to share, and whether that is `guessed`, since neither an answer nor a file ever told
    it; how many `turns` there were; and how to be exchanged at the next turn (`due`) or at once (`wake`), or looked
    at every now and then (`watch`)."""

    alone: bool
    lost_at: float
    back_at: float
    rejoining: bool
    met: bool
    strangers: bool
    turns: int

    @property
    def told_since(self) -> float: ...

    @property
    def expected(self) -> int: ...

    @property
    def guessed(self) -> bool: ...

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


def in_doubt(keeper: LeaseKeeper, since: float, now: float) -> bool:
    """Return whether the others may not have told yet what they hold, to one who counts and had lost it by `since`: a
    process keeps to its own part then, beside what it is granted."""
    return now < since + REJOIN and keeper.told_since < since


@lru_cache(maxsize=64)
def equal_share(processes: int) -> float:
    """Return the part of one among equals, one number for all."""
    return 1.0 / processes


def first_known(keeper: LeaseKeeper) -> float:
    """Return until when an equal share holds that nobody told: for ever among the workers of one gateway before anybody
    counted, since all of them go on alike. Otherwise others may have told parts, and who has not heard of a limit used
    nothing of it."""
    return NEVER if keeper.met or keeper.strangers else math.inf


def still_known(keeper: LeaseKeeper, known_until: float, at: float) -> bool:
    """Return whether a share still held at that time which holds until `known_until`. One without an end was assumed
    before anybody counted, and is void once somebody did."""
    return known_until > at and not (known_until == math.inf and keeper.met)


def idle_share(every: int) -> float:
    """Return the part of a limit with which a process begins alone that used nothing of it: what is shared equally, or
    all where there is no other."""
    return EQUAL_ALONE / every if every > 1 else 1.0


def alone_share(share: float, processes: int, every: int) -> float:
    """Return the part of a limit that a process goes on with alone, from its last share of what `processes` used:
    closer to an equal part for each of `every` process there is, since traffic moves when something is lost. The parts
    of all, with those of who used nothing, add up to one."""
    demand = min(1.0, max(0.0, (share - EQUAL / processes) / (1 - EQUAL)))
    return (1 - EQUAL_ALONE) * demand + EQUAL_ALONE / max(processes, every)
