"""Sums of end users: one read for many users, and no repeated waits for an unreachable ledger."""

import asyncio
from collections.abc import Sequence

import pytest

from proxy.accounting.ledger_service import FAILURE_PAUSE, USERS_PER_READ, UserSums
from proxy.ledger.ledger_settings import LedgerError


class Ledger:
    """A ledger that counts its reads, and a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.read: list[int] = []
        self.error: Exception | None = None
        self.sums = UserSums(self.one, lambda: self.now)

    async def one(self, scopes: Sequence[str]) -> None:
        self.read.append(len(scopes))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error

    async def learn(self, count: int) -> list[bool]:
        async with asyncio.timeout(10):
            return await asyncio.gather(*(self.sums.learn(f"user t/{number}", 5.0) for number in range(count)))


async def test_who_asks_at_the_same_time_is_read_together() -> None:
    ledger = Ledger()
    running = asyncio.create_task(ledger.sums.run())
    assert await ledger.learn(USERS_PER_READ + 1) == [True] * (USERS_PER_READ + 1)
    same = await asyncio.gather(*(ledger.sums.learn("user t/same", 5.0) for _ in range(9)))
    running.cancel()
    assert (same, ledger.read) == ([True] * 9, [USERS_PER_READ, 1, 1])


@pytest.mark.parametrize("error", [LedgerError("away"), TimeoutError()])
async def test_after_a_failure_nobody_waits_for_a_while(error: Exception) -> None:
    ledger = Ledger()
    running = asyncio.create_task(ledger.sums.run())
    ledger.error = error
    assert await ledger.learn(3) == [False] * 3
    assert await ledger.learn(3) == [False] * 3
    assert ledger.read == [3]
    ledger.error, ledger.now = None, FAILURE_PAUSE + 1
    assert await ledger.learn(3) == [True] * 3
    running.cancel()


async def test_nobody_waits_longer_than_it_says() -> None:
    sums = Ledger().sums  # there is no reader
    assert await sums.learn("user t/1", 0.0) is False
