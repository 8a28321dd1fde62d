"""Blocking fetches beside the event loop. Never what they fetch."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from proxy.credentials.held import Fetched


class InThread:
    """A blocking fetch in a thread, one at a time. One that was given up goes on, and what it brings is for the next
    who asks: a vendor's library that is slow is waited for twice, and one that hangs takes one thread.

    The threads are not the loop's own, which resolve host names. `clock` counts seconds.
    """

    def __init__(
        self, fetch: Callable[[], Fetched], threads: ThreadPoolExecutor, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._threads = threads
        self._clock = clock
        self._running: Future[tuple[Fetched, float]] | None = None

    async def __call__(self) -> Fetched:
        """What it gives. Raises what it raises."""
        if self._running is None or _failed(self._running):
            self._running = self._threads.submit(self._dated)
        fetched, came = await asyncio.wrap_future(self._running)
        self._running = None
        return replace(fetched, lives=fetched.lives - (self._clock() - came))

    def _dated(self) -> tuple[Fetched, float]:
        return self._fetch(), self._clock()


def _failed(running: Future[tuple[Fetched, float]]) -> bool:
    return running.cancelled() or (running.done() and running.exception() is not None)
