"""Runs blocking fetches off the event loop."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from proxy.vendor_credentials.token_cache import Fetched


@dataclass(slots=True, eq=False)
class InThread:
    """A blocking fetch in a thread, one at a time. If its caller gives up, the fetch continues, and the next caller
    gets its result. So callers wait at most twice for a slow library, and a library that hangs blocks only one thread.

    The event loop's own threads are not used, because they resolve host names. `clock` returns seconds.
    """

    _fetch: Callable[[], Fetched]
    _threads: ThreadPoolExecutor
    _clock: Callable[[], float] = time.monotonic
    _running: Future[tuple[Fetched, float]] | None = None

    async def __call__(self) -> Fetched:
        """Return the result of the fetch, with its lifetime reduced by the time since the fetch ended. Raises the
        fetch's own exceptions."""
        if self._running is None or _failed(self._running):
            self._running = self._threads.submit(self._timed_fetch)
        fetched, fetched_at = await asyncio.wrap_future(self._running)
        self._running = None
        return replace(fetched, lifetime=fetched.lifetime - (self._clock() - fetched_at))

    def _timed_fetch(self) -> tuple[Fetched, float]:
        return self._fetch(), self._clock()


def _failed(running: Future[tuple[Fetched, float]]) -> bool:
    return running.cancelled() or (running.done() and running.exception() is not None)
