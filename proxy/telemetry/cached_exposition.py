"""The text that Prometheus scrapes. It is rendered once for all scrapes within one second."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

CACHE_SECONDS: Final = 1.0
"""Seconds for which one exposition serves every scrape."""


class CachedExposition:
    """A gateway's text exposition, rendered once for all scrapes within CACHE_SECONDS."""

    def __init__(self, render: Callable[[], Awaitable[bytes]]) -> None:
        self._render = render
        self._rendering = asyncio.Lock()
        self._rendered = (-math.inf, b"")

    async def recent(self) -> bytes:
        """Return the exposition, at most CACHE_SECONDS old."""
        async with self._rendering:
            then, text = self._rendered
            return text if time.monotonic() - then < CACHE_SECONDS else await self._renewed()

    async def fresh(self) -> bytes:
        """Render the exposition now."""
        async with self._rendering:
            return await self._renewed()

    async def _renewed(self) -> bytes:
        text = await self._render()
        self._rendered = (time.monotonic(), text)
        return text
