"""A few slots that many owners use in turn. An owner delays another owner by at most one use of a slot."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """`count` slots, of which each owner holds at most one. Waiting owners are served in turn."""

    __slots__ = ("_free", "_holding", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._holding: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def taken(self, owner: str) -> AsyncIterator[None]:
        """Hold a slot for the block, after waiting for it if necessary."""
        if self._free and owner not in self._waiting and owner not in self._holding:
            self._hold(owner)
        else:
            await self._wait(owner)
        try:
            yield
        finally:
            self._release(owner)

    def _hold(self, owner: str) -> None:
        self._free -= 1
        self._holding.add(owner)

    async def _wait(self, owner: str) -> None:
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self._release(owner)  # the slot was granted just before the cancellation
            else:
                self._leave(owner, slot)
            raise

    def _leave(self, owner: str, slot: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(owner)
        if waiting is not None and slot in waiting:
            waiting.remove(slot)
            if not waiting:
                del self._waiting[owner]

    def _release(self, owner: str) -> None:
        self._free += 1
        self._holding.discard(owner)
        while (found := next((each for each in self._waiting if each not in self._holding), None)) is not None:
            # The other waiters of this owner queue behind the other owners.
            waiting = self._waiting.pop(found)
            slot = waiting.popleft()
            if waiting:
                self._waiting[found] = waiting
            if not slot.done():  # its waiter may just have been cancelled
                self._hold(found)
                slot.set_result(None)
                return
