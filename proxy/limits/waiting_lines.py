"""Requests that wait, in order of arrival: for a limit that is used up, or for units of one that several processes
share to be fetched."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.limits.concurrency import LeasedPlaces, Places
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit_views import Exceeded
from proxy.limits.reservation import BoundMeter, Reservation
from proxy.limits.shared_spending import SharedSpending

MOST: Final = 1024
"""Requests that wait for one scope; further ones are refused at once."""

SHORTEST: Final = 0.001
"""Seconds between two attempts at least."""

LONGEST: Final = 5.0
"""Seconds for which a request waits for units at most, as long as no answer says that there are too few."""

Units: TypeAlias = tuple[int, int, int | None, int]
"""Requests, tokens, billionths of a USD and places."""

Leased: TypeAlias = LeasedRate | LeasedPlaces | SharedSpending
"""A limit that several processes share."""


@dataclass(slots=True, eq=False)
class WaitingLine:
    """Who waits for one scope. Only the first tries again; `last` is what it was told."""

    last: Exceeded
    turns: deque[asyncio.Event] = field(default_factory=deque)
    _nudge: asyncio.Event = field(default_factory=asyncio.Event)

    def nudge(self) -> None:
        """Let the first try again now: a place is free."""
        self._nudge.set()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until nudged."""
        self._nudge.clear()
        try:
            async with asyncio.timeout(max(SHORTEST, seconds)):
                await self._nudge.wait()
        except TimeoutError:
            return


@dataclass(slots=True, eq=False)
class WaitingLines:
    """The lines of all scopes. Empty ones are not kept."""

    clock: Callable[[], float]
    lines: dict[str, WaitingLine] = field(default_factory=dict)

    async def wait(
        self,
        refused: Exceeded,
        patience: float,
        attempt: Callable[[], Awaitable[Reservation | Exceeded]],
        places: Places | None,
    ) -> Reservation | Exceeded:
        """Wait in the line of the scope that refused, at most `patience` seconds, and return how it ended. `places` are
        those of that scope; one that is released is passed on at once."""
        line, until_due = self.lines.get(refused.scope), 0.0
        if line is None:
            until_due = refused.wait
            line = self.lines[refused.scope] = WaitingLine(refused)
            if places is not None:
                places.freed = line.nudge
        if len(line.turns) >= MOST:
            return refused
        until = self.clock() + patience
        turn = asyncio.Event()
        line.turns.append(turn)
        line.turns[0].set()
        try:
            async with asyncio.timeout(patience):
                await turn.wait()
                await line.pause(until_due)
                return await self._first(line, until, attempt)
        except TimeoutError:
            return line.last
        finally:
            line.turns.remove(turn)
            if line.turns:
                line.turns[0].set()
            else:
                del self.lines[refused.scope]
                if places is not None:
                    places.freed = None

    async def _first(
        self, line: WaitingLine, until: float, attempt: Callable[[], Awaitable[Reservation | Exceeded]]
    ) -> Reservation | Exceeded:
        """Try until it works, or cannot work in time."""
        while True:
            outcome = await attempt()
            if isinstance(outcome, Reservation):
                return outcome
            line.last = outcome
            if outcome.hopeless(until - self.clock()):
                return outcome
            await line.pause(outcome.wait)


@dataclass(slots=True, eq=False)
class LeaseWaiter:
    """A request that waits for units to be fetched, and which ones; `rounds` are the exchanges that were in vain."""

    scopes: Sequence[str]
    units: Units
    outcome: "asyncio.Future[Reservation | Exceeded]"
    until: float
    claims: dict[Leased, int] = field(default_factory=dict)
    rounds: int = 0

    def claim(self, lease: Leased, units: int) -> None:
        """Wait for so many units, once: they are fetched beside what is leased ahead."""
        if lease not in self.claims:
            self.claims[lease] = units
            lease.wait_for(units)

    def let_go(self) -> None:
        """Wait for nothing any more."""
        for lease, units in self.claims.items():
            lease.wait_no_more(units)
        self.claims.clear()


def is_behind(meters: Iterable[BoundMeter], units: Units, now: float, wall: float) -> bool:
    """Return whether a request that comes now would take what is fetched for those who wait: not of a limit that they
    lack, nor of one that they lacked before and wait to have together with another."""
    return any(
        isinstance(meter, LeasedRate | LeasedPlaces | SharedSpending)
        and lacks_beside(meter, meter.waiting, units[index], now, wall)
        for index, meter in meters
    )


def is_after(ahead: dict[Leased, int], meters: Iterable[BoundMeter], units: Units, now: float, wall: float) -> bool:
    """Return the same of one who waits, of those `ahead` of it."""
    return any(lacks_beside(lease, ahead[lease], units[index], now, wall) for index, lease in meters if lease in ahead)


def lacks_beside(lease: Leased, claimed: int, units: int | None, now: float, wall: float) -> bool:
    """Return whether there is too little of a limit beside what others claim. What other processes may give back of
    spending is waited for by each on its own: a small request may find enough before."""
    if not claimed or (isinstance(lease, SharedSpending) and lease.hopes(now)):
        return False
    return lease.lacks(claimed + (units or 0), now, wall)
