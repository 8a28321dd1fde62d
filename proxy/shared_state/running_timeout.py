"""A timeout that waits for a reply, but does not count the time during which this process does not run.

With `asyncio.timeout` alone, a process that was stopped for longer than the limit cancels a reply that has arrived but
was not read yet. On a busy machine, such a process would treat a healthy server as lost.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def reply_within(limit: float, reply: Awaitable[T]) -> T:
    """Return the reply, or raise its error. Raises TimeoutError after `limit` seconds. The second half of the `limit`
    seconds begins only when the event loop notices the end of the first half. So a process that was stopped, for
    however long, has time to read the reply."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as rest:
        half = loop.call_later(limit / 2, lambda: rest.reschedule(loop.time() + limit / 2))
        try:
            return await reply
        finally:
            half.cancel()
