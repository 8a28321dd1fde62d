"""A few slots that many owners share in turns: no owner keeps another waiting for longer than one turn."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """`count` slots, of which each owner holds one at most. Waiting owners take turns."""

    __slots__ = ("_free", "_holding", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._holding: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def taken(self, owner: str) -> AsyncIterator[None]:
        """Hold a slot for the block, once it is this owner's turn."""
        if self._free and owner not in self._waiting and owner not in self._holding:
            self._hold(owner)
        else:
            await self._turn(owner)
        try:
            yield
        finally:
            self._release(owner)

    def _hold(self, owner: str) -> None:
        self._free -= 1
        self._holding.add(owner)

    async def _turn(self, owner: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release(owner)  # the slot was granted just before the cancellation
            else:
                self._leave(owner, turn)
            raise

    def _leave(self, owner: str, turn: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(owner)
        if waiting is not None and turn in waiting:
            waiting.remove(turn)
            if not waiting:
                del self._waiting[owner]

    def _release(self, owner: str) -> None:
        self._free += 1
        self._holding.discard(owner)
        while (found := next((each for each in self._waiting if each not in self._holding), None)) is not None:
            # Its further waiters queue behind the other owners.
            waiting = self._waiting.pop(found)
            turn = waiting.popleft()
            if waiting:
                self._waiting[found] = waiting
            if not turn.done():  # its waiter may just have been cancelled
                self._hold(found)
                turn.set_result(None)
                return
