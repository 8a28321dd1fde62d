"""Tasks that run beside the one that started them, and never longer. Never knows what they do."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Tasks:
    """Context manager that owns tasks: leaving it, for whatever reason, cancels those that still run and waits for
    them. What they returned or raised is the starter's to look at."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []  # of any result: here they are only cancelled

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Run `work` beside the caller."""
        self._tasks.append(asyncio.create_task(work))

    async def all(self, works: Iterable[Coroutine[object, object, T]]) -> list[T]:
        """Run every one of `works` beside each other: their results in order, or the first exception of any, as soon as
        it is raised."""
        tasks = [asyncio.create_task(work) for work in works]
        self._tasks.extend(tasks)
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task in done and not task.cancelled() and (error := task.exception()) is not None:
                raise error
        return [task.result() for task in tasks]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)


class Shared:
    """Work that many may want and that runs once at a time: whoever comes while it runs waits for that run. A waiter
    that gives up leaves it running; whoever made it closes it."""

    __slots__ = ("_task", "_work")

    def __init__(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether it is under way."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Let it run beside the caller, unless it does."""
        if not self.running:
            self._task = asyncio.create_task(self._work())

    async def run(self) -> None:
        """Wait for the end of the run under way, or of a fresh one. Raises what it raises."""
        self.start()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """Cancel what is under way and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
