"""A wait for a condition that no event announces."""

import asyncio
from collections.abc import Callable


async def until(reached: Callable[[], bool]) -> None:
    """Check every few milliseconds until `reached` returns true. The test's own timeout is the limit."""
    while not reached():  # noqa: ASYNC110 - nothing notifies
        await asyncio.sleep(0.005)
