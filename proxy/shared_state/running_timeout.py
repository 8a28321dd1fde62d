"""A limit of time for an answer that is not used up while this process does not run.

With `asyncio.timeout` alone a process that was held up for as long cancels an answer that is there and not read yet: on
a busy machine it would take a healthy server for lost.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def answer_within(limit: float, answer: Awaitable[T]) -> T:
    """Return an answer, or raise what it raises. Raises TimeoutError after `limit` seconds: half of them begin when the
    first half is seen to be over, so that being held up, however long, leaves time to read what came."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as rest:
        half = loop.call_later(limit / 2, lambda: rest.reschedule(loop.time() + limit / 2))
        try:
            return await answer
        finally:
            half.cancel()
