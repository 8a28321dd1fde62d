"""Work for requests that the event loop does not wait for: long reading in threads, checks of answers in processes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from providers.verify import AnswerCheck
from proxy.fair_slots import FairSlots

T = TypeVar("T")

THREADS: Final = 2
"""Threads that read requests. Not the loop's own ones: DNS and metrics must not wait for a client's schema."""


class AnswerChecker(Protocol):
    """Holds answers against constraints. See `proxy.answer_checks.AnswerChecks`."""

    async def problem(self, check: AnswerCheck, owner: str) -> str | None:
        """Why the constraint cannot be checked; None when it can."""

    async def breach(self, check: AnswerCheck, text: str, owner: str) -> str | None:
        """Why a text breaks the constraint; None when it keeps it."""


class RequestThreads:
    """Threads for work in Python whose length a client decides, within the limits of a request. Owners take turns."""

    def __init__(self) -> None:
        self._slots = FairSlots(THREADS)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """The result of the work. `owner` is the team, or the client where there are no teams."""
        async with self._slots.taken(owner):
            future = asyncio.get_running_loop().run_in_executor(self._pool, work)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                # A thread cannot be stopped: the slot is taken until it is done.
                await asyncio.wait((future,))
                raise
            finally:
                # Its exception holds this frame by its traceback, and with it a body of megabytes: a cycle.
                del future, work

    def close(self) -> None:
        """Begin nothing more; what runs is bounded and ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class OffLoop:
    """Both, for one gateway process."""

    __slots__ = ("checks", "threads")

    def __init__(self, checks: AnswerChecker) -> None:
        self.checks = checks
        self.threads = RequestThreads()
