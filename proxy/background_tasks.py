"""Owners of background tasks. Every task of the gateway ends together with the block or the object that started it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

Work = Coroutine[None, None, None]


@asynccontextmanager
async def background(works: Iterable[Callable[[], Work]]) -> AsyncIterator[None]:
    """Run services of the process beside the block, and cancel them when the block ends. If a service raises, the block
    is cancelled, and the exception leaves the block in an ExceptionGroup."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work()) for work in works]
        yield
        for task in tasks:
            task.cancel()


async def run_with_timeout(work: Coroutine[object, object, T], seconds: float, unwinding: float) -> T:
    """Run `work` in a task of its own, and return its result. A cancellation inside `work` does not cancel the caller.
    Raises TimeoutError if `work` has not ended after `seconds`; the task is then cancelled. If it has not ended after
    another `unwinding` seconds, it is abandoned."""
    task = asyncio.create_task(work)
    try:
        if not (await asyncio.wait((task,), timeout=seconds))[0]:
            task.cancel()
            await asyncio.wait((task,), timeout=unwinding)
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()


class Tasks:
    """Context manager for tasks that serve its block. On leaving, tasks that still run are cancelled and awaited.

    Unlike in a TaskGroup, a task that raises does not stop the block or the other tasks.
    """

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []  # the type is Any because this class does not read the results

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Run `work` beside the block."""
        self._tasks.append(asyncio.create_task(work))

    async def all(self, works: Iterable[Coroutine[object, object, T]]) -> list[T]:
        """Run all `works` concurrently, and return their results in order. The first exception is raised at once."""
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


class StrayTasks:
    """Tasks that their starters end and wait for. A task that does not end in time is referenced here until it ends."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run `work` beside its starter, which must call `settled` once."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self, task: asyncio.Task[None], seconds: float) -> bool:
        """Wait at most `seconds` for a task that its starter has ended. Return whether it has ended; raise the
        exception that it raised."""
        if not task.done():
            await asyncio.wait((task,), timeout=seconds)
        if not task.done():
            return False
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
        return True


class SharedTask:
    """A task that many callers may wait for. At most one run is active at a time. A cancelled caller does not cancel
    the run; the owner must call `aclose`."""

    __slots__ = ("_task", "_work")

    def __init__(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """True while a run is active."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start a run unless one is active."""
        if not self.running:
            self._task = asyncio.create_task(self._work())

    async def run(self) -> None:
        """Wait for the end of the active run; start a run if there is none. Raises the exception that the run
        raises."""
        self.start()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """Cancel the active run, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
