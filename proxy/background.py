"""Tasks that run beside the one that started them, and never longer. Never knows what they do."""

import asyncio
from collections.abc import Coroutine, Iterable
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
