"""Requests that wait for a limit instead of being refused, in order of arrival for each scope."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from proxy.limits.concurrency import Places
from proxy.limits.limit_views import Exceeded
from proxy.limits.reservation import Reservation

MOST: Final = 1024
"""Requests that wait for one scope; further ones are refused at once."""

SHORTEST: Final = 0.001
"""Seconds between two attempts at least."""


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
