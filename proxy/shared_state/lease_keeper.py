"""The common base of all leases: the protocol of the leases' registry, and the part of a limit that a process has while
it counts alone. The functions get the current time as an argument."""

import math
from functools import lru_cache
from typing import Final, Protocol

from proxy.shared_state.lease import LeaseGrant, LeaseRequest

REFUSAL_PAUSE: Final = 0.02
"""Seconds for which a lease sends no further request after a refused one."""

EQUAL_PART: Final = 0.1
EQUAL_PART_ALONE: Final = 0.25
"""The part of a limit that is divided equally among the processes, without regard to demand. It is the same part if the
coordinator is lost."""

LONGEST_PROBE: Final = 2.0
"""The most seconds until a lost coordinator is tried again."""

REJOIN_SECONDS: Final = LONGEST_PROBE + 1.0
"""Seconds after which all other processes have found the coordinator too, and have reported the units that they hold
and the units that they used alone."""

GONE_SECONDS: Final = 10
"""Seconds after which a silent process counts as gone. The units that were set aside for it then become free for all
processes."""

NEVER: Final = -math.inf
"""A time that lies before every other time. All leases share this one object, because a configuration may have ten
thousand teams."""

RESTING, LIVE, DROPPED = 0, 1, 2
"""The standing of a lease: it is not checked, it is checked regularly, or it is no longer exchanged."""


class LeaseKeeper(Protocol):
    """The registry of leases, as a lease sees it.

    - `alone`: whether the process counts alone. `lost_at` is the time since which it counts alone, and `back_at` the
      time since which it counts with others again.
    - `rejoining`: whether the others may not have reported yet the units that they used alone.
    - `all_reported_since`: the time since which all others have reported the units that they hold.
    - `has_answered`: whether the coordinator has ever replied.
    - `other_gateways`: whether processes of other gateways may share the limits, which only a reply can show.
    - `expected`: the number of processes that share. `guessed` is true if neither a reply nor a file has given this
      number.
    - `rounds`: the number of exchanges so far.
    - `mark_due` exchanges a lease in the next round, `wake` at once. `watch` checks it regularly.
    """

    alone: bool
    lost_at: float
    back_at: float
    rejoining: bool
    has_answered: bool
    other_gateways: bool
    rounds: int

    @property
    def all_reported_since(self) -> float: ...

    @property
    def expected(self) -> int: ...

    @property
    def guessed(self) -> bool: ...

    def mark_due(self, lease: "Lease") -> None: ...

    def wake(self, lease: "Lease") -> None: ...

    def watch(self, lease: "Lease") -> None: ...


class Lease(Protocol):
    """A part of a scope's limit that is leased from the coordinator. Its registry sets `standing`."""

    standing: int

    @property
    def key(self) -> str: ...

    def next_request(self, now: float) -> LeaseRequest | None:
        """Return the next request; `None` if there is nothing to exchange."""
        ...

    def apply_grant(self, grant: LeaseGrant | None, now: float) -> None:
        """Apply the reply that came at `now`. It is `None` if Redis holds foreign data in its place."""
        ...

    def exchange_failed(self) -> None:
        """Note that an exchange failed."""
        ...

    def needs_renewal(self, now: float) -> bool:
        """Return whether the lease must be exchanged without being used."""
        ...

    def may_need_renewal(self) -> bool:
        """Return whether `needs_renewal` may become true without further use."""
        ...

    def forget_if_idle(self, now: float) -> bool:
        """Drop state of an unused lease that no longer matters, and return whether nothing is left to drop."""
        ...


def in_doubt(keeper: LeaseKeeper, since: float, now: float) -> bool:
    """Return whether other processes may not have reported their units yet to a coordinator that had lost these units
    by the time `since`. While this is so, a process stays within its own part besides its grants."""
    return now < since + REJOIN_SECONDS and keeper.all_reported_since < since


@lru_cache(maxsize=64)
def equal_share(processes: int) -> float:
    """Return the part of a limit that each process has if all processes have equal parts. The number is cached once for
    all leases."""
    return 1.0 / processes


def equal_share_known_until(keeper: LeaseKeeper) -> float:
    """Return the time until which a process may use an equal share that no reply has given. Before the first reply the
    time is infinite among the workers of one gateway, because all of them count in the same way. Otherwise the
    coordinator may have given parts to other processes, and a process without a part of a limit has used nothing of the
    limit."""
    return NEVER if keeper.has_answered or keeper.other_gateways else math.inf


def still_known(keeper: LeaseKeeper, known_until: float, at: float) -> bool:
    """Return whether a share that holds until `known_until` still held at the time `at`. A share without an end was
    assumed before the first reply, and is void after that reply."""
    return known_until > at and not (known_until == math.inf and keeper.has_answered)


def idle_share(every: int) -> float:
    """Return the part of a limit that an idle process begins with alone: its part of the equally divided part, or the
    whole limit if there is no other process."""
    return EQUAL_PART_ALONE / every if every > 1 else 1.0


def alone_share(share: float, processes: int, every: int) -> float:
    """Return the part of a limit that a process continues with alone, from its last share among `processes` that used
    it. It is closer to an equal part of all `every` processes, because traffic moves when the coordinator is lost. The
    parts of all processes, with the parts of idle ones, add up to one."""
    demand = min(1.0, max(0.0, (share - EQUAL_PART / processes) / (1 - EQUAL_PART)))
    return (1 - EQUAL_PART_ALONE) * demand + EQUAL_PART_ALONE / max(processes, every)
