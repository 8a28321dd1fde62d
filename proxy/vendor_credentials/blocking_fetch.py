"""Blocking fetches beside the event loop."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from proxy.vendor_credentials.token_cache import Fetched


@dataclass(slots=True, eq=False)
class InThread:
    """A blocking fetch in a thread, one at a time. One whose caller gave up goes on, and its result is for the next
    caller: a slow library is waited for twice, and one that hangs holds one thread.

    The threads are not the loop's own, which resolve host names. `clock` returns seconds.
    """

    _fetch: Callable[[], Fetched]
    _threads: ThreadPoolExecutor
    _clock: Callable[[], float] = time.monotonic
    _running: Future[tuple[Fetched, float]] | None = None

    async def __call__(self) -> Fetched:
        """Return the result of the fetch. Raises what it raises."""
        if self._running is None or _failed(self._running):
            self._running = self._threads.submit(self._dated)
        fetched, came = await asyncio.wrap_future(self._running)
        self._running = None
        return replace(fetched, lives=fetched.lives - (self._clock() - came))

    def _dated(self) -> tuple[Fetched, float]:
        return self._fetch(), self._clock()


def _failed(running: Future[tuple[Fetched, float]]) -> bool:
    return running.cancelled() or (running.done() and running.exception() is not None)
