"""Work for requests off the event loop: parsing of long bodies in threads, checks of responses in processes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from providers.emulation.check_answer import AnswerCheck
from proxy.off_loop.fair_slots import FairSlots

T = TypeVar("T")

THREADS: Final = 2
"""The number of threads for requests. They are separate from the loop's own threads, because DNS and metrics must not
wait for a client's schema."""


FREE_EVERY: Final = 0.01
"""Seconds for which the memory of ended requests is held, in order to free several of them together."""


def _clear(ended: list[list[object]]) -> None:
    while ended:
        ended.pop().clear()


class AnswerChecker(Protocol):
    """Validates responses against constraints. See `proxy.off_loop.answer_check_pool.AnswerChecks`."""

    async def problem(self, check: AnswerCheck, owner: str) -> str | None:
        """Return why the constraint cannot be checked, or `None`."""

    async def breach(self, check: AnswerCheck, text: str, owner: str) -> str | None:
        """Return why a text breaks the constraint, or `None`."""


class RequestThreads:
    """Threads for work in Python whose duration depends on the client's request. Owners are served in turn."""

    def __init__(self) -> None:
        self._slots = FairSlots(THREADS)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="request")
        self._closed = False
        self._ended: list[list[object]] = []

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run `work` in a thread and return its result. `owner` is the team, or the client if there are no teams."""
        async with self._slots.taken(owner):
            future = asyncio.get_running_loop().run_in_executor(self._pool, work)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                # A thread cannot be stopped, so the slot is taken until it is done.
                await asyncio.wait((future,))
                raise
            finally:
                # The exception holds this frame by its traceback, and with it a body of megabytes: a reference cycle.
                del future, work

    def free(self, things: list[object]) -> None:
        """Clear a list in a thread, after the current event loop callback has ended.

        Freeing 60,000 objects takes 15 ms, and only removing the last reference frees them. Requests that end within
        FREE_EVERY are freed together, because waking a thread takes 50 us.
        """
        if not self._ended:
            asyncio.get_running_loop().call_later(FREE_EVERY, self._free)
        self._ended.append(things)

    def _free(self) -> None:
        ended, self._ended = self._ended, []
        if self._closed:
            _clear(ended)
        else:
            self._pool.submit(_clear, ended)

    def close(self) -> None:
        """Begin no further work. Running work is bounded and ends by itself."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)


class OffLoop:
    """The checker and the threads of one gateway process."""

    __slots__ = ("checks", "threads")

    def __init__(self, checks: AnswerChecker) -> None:
        self.checks = checks
        self.threads = RequestThreads()
