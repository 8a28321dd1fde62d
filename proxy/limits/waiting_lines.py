"""Requests that wait in order of arrival: for a limit that is used up, or for units of a shared limit to be fetched."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.limits.concurrency import LeasedSlots, Slots
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit_views import Exceeded
from proxy.limits.reservation import BoundMeter, Reservation
from proxy.limits.shared_spending import SharedSpending

MAX_WAITING: Final = 1024
"""The most requests that wait for one scope. Further ones are refused at once."""

SHORTEST_PAUSE: Final = 0.001
"""The least seconds between two attempts."""

LONGEST_FETCH: Final = 5.0
"""The most seconds for which a request waits for units, as long as no reply reports that there are too few."""

Units: TypeAlias = tuple[int, int, int | None, int]
"""The amounts of a request: requests, tokens, billionths of a USD, and slots."""

Leased: TypeAlias = LeasedRate | LeasedSlots | SharedSpending
"""A limit that several processes share."""


@dataclass(slots=True, eq=False)
class WaitingLine:
    """The requests that wait for one scope. Only the first one tries again. `last` is its latest refusal."""

    last: Exceeded
    turns: deque[asyncio.Event] = field(default_factory=deque)
    _nudge: asyncio.Event = field(default_factory=asyncio.Event)

    def nudge(self) -> None:
        """Let the first request try again now, because a slot is free."""
        self._nudge.set()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, but at least SHORTEST_PAUSE, or until `nudge` is called."""
        self._nudge.clear()
        try:
            async with asyncio.timeout(max(SHORTEST_PAUSE, seconds)):
                await self._nudge.wait()
        except TimeoutError:
            return


@dataclass(slots=True, eq=False)
class WaitingLines:
    """The lines of all scopes. An empty line is removed."""

    clock: Callable[[], float]
    lines: dict[str, WaitingLine] = field(default_factory=dict)

    async def wait(
        self,
        refused: Exceeded,
        patience: float,
        reserve: Callable[[], Awaitable[Reservation | Exceeded]],
        slots: Slots | None,
    ) -> Reservation | Exceeded:
        """Wait in the line of the scope that refused for at most `patience` seconds, and return the outcome. `slots`
        are the slots of that scope: when one is released, the line is notified at once."""
        line, until_due = self.lines.get(refused.scope), 0.0
        if line is None:
            until_due = refused.wait
            line = self.lines[refused.scope] = WaitingLine(refused)
            if slots is not None:
                slots.freed = line.nudge
        if len(line.turns) >= MAX_WAITING:
            return refused
        until = self.clock() + patience
        at_front = asyncio.Event()
        line.turns.append(at_front)
        line.turns[0].set()
        try:
            async with asyncio.timeout(patience):
                await at_front.wait()
                await line.pause(until_due)
                return await self._first(line, until, reserve)
        except TimeoutError:
            return line.last
        finally:
            line.turns.remove(at_front)
            if line.turns:
                line.turns[0].set()
            else:
                del self.lines[refused.scope]
                if slots is not None:
                    slots.freed = None

    async def _first(
        self, line: WaitingLine, until: float, reserve: Callable[[], Awaitable[Reservation | Exceeded]]
    ) -> Reservation | Exceeded:
        """Try again until an attempt succeeds, or cannot succeed before `until`."""
        while True:
            outcome = await reserve()
            if isinstance(outcome, Reservation):
                return outcome
            line.last = outcome
            if outcome.hopeless(until - self.clock()):
                return outcome
            await line.pause(outcome.wait)


@dataclass(slots=True, eq=False)
class LeaseWaiter:
    """A request that waits for units to be fetched. `claims` are the leases that it waits for, with the units of each.
    `rounds` counts the exchanges that did not bring enough."""

    scopes: Sequence[str]
    units: Units
    outcome: "asyncio.Future[Reservation | Exceeded]"
    until: float
    claims: dict[Leased, int] = field(default_factory=dict)
    rounds: int = 0

    def claim(self, lease: Leased, units: int) -> None:
        """Wait for these units of a lease, once. They are fetched in addition to the units that are leased ahead."""
        if lease not in self.claims:
            self.claims[lease] = units
            lease.add_waiting(units)

    def release_claims(self) -> None:
        """Stop waiting for all leases."""
        for lease, units in self.claims.items():
            lease.remove_waiting(units)
        self.claims.clear()


def would_overtake(meters: Iterable[BoundMeter], units: Units, now: float, wall: float) -> bool:
    """Return whether a new request would take units that are fetched for waiting requests. This covers a limit whose
    units they lack now, and a limit whose units they lacked before and still need together with units of another
    limit."""
    return any(
        isinstance(meter, LeasedRate | LeasedSlots | SharedSpending)
        and lacks_beside(meter, meter.waiting, units[index], now, wall)
        for index, meter in meters
    )


def would_overtake_earlier(
    ahead: dict[Leased, int], meters: Iterable[BoundMeter], units: Units, now: float, wall: float
) -> bool:
    """Return whether a waiting request would take units that are fetched for the earlier ones, whose claims are
    `ahead`."""
    return any(lacks_beside(lease, ahead[lease], units[index], now, wall) for index, lease in meters if lease in ahead)


def lacks_beside(lease: Leased, claimed: int, units: int | None, now: float, wall: float) -> bool:
    """Return whether a limit has too few units in addition to the claimed ones. Units of spending that other processes
    may return are not reserved for the first request in line, because they may suffice earlier for a small request."""
    if not claimed or (isinstance(lease, SharedSpending) and lease.awaits_returns(now)):
        return False
    return lease.lacks(claimed + (units or 0), now, wall)
