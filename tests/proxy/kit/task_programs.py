"""Small programs of waits and cancellations, which run as an asyncio task or as an EagerTask and record their
events.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from hypothesis import strategies as st

from proxy.eager_task import EagerTask, Signal

Step = tuple[Any, ...]

LEAVES = [
    *(("signal", number) for number in range(2)),
    *(("future", number) for number in range(2)),
    *(("shield", number) for number in range(2)),
    ("sleep",),
    ("event",),
    ("lock",),
    ("queue",),
    ("gather",),
    ("wait_for",),
    ("cancel",),
    ("uncancel",),
    ("fail",),
]
ACTIONS = [
    *(("signal", number) for number in range(2)),
    *(("resolve", number) for number in range(2)),
    *(("break", number) for number in range(2)),
    *(("drop", number) for number in range(2)),
    ("event",),
    ("unlock",),
    ("put",),
    ("cancel",),
    ("cancel",),
    ("uncancel",),
]

programs: st.SearchStrategy[list[Step]] = st.recursive(
    st.lists(st.sampled_from(LEAVES), max_size=4),
    lambda inner: st.lists(
        st.one_of(
            st.sampled_from(LEAVES),
            st.tuples(st.sampled_from(["swallow", "finally", "timeout", "group", "tidy"]), inner),
        ),
        max_size=4,
    ),
    max_leaves=6,
)


class World:
    """The objects that programs wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.signals = [Signal(), Signal()]
        self.futures: list[asyncio.Future[str]] = [loop.create_future(), loop.create_future()]
        self.event = asyncio.Event()
        self.lock = asyncio.Semaphore(0)
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.trace: list[object] = []

    async def run(self, program: list[Step]) -> None:
        for step in program:
            self.trace.append(("begins", step[0]))
            try:
                outcome: object = await getattr(self, f"do_{step[0]}")(*step[1:])
            except BaseException as error:
                outcome = type(error).__name__
                raise
            finally:
                self.trace.append((step[0], outcome, asyncio.current_task().cancelling()))  # type: ignore[union-attr]

    async def do_signal(self, number: int) -> object:
        await self.signals[number]
        return "set"

    async def do_future(self, number: int) -> object:
        return await self.futures[number]

    async def do_shield(self, number: int) -> object:
        return await asyncio.shield(self.futures[number])

    async def do_sleep(self) -> object:
        return await asyncio.sleep(0, "slept")

    async def do_event(self) -> object:
        return await self.event.wait()

    async def do_lock(self) -> object:
        return await self.lock.acquire()

    async def do_queue(self) -> object:
        return await self.queue.get()

    async def do_gather(self) -> object:
        return await asyncio.gather(self.event.wait(), asyncio.sleep(0, "part"))

    async def do_wait_for(self) -> object:
        return await asyncio.wait_for(self.event.wait(), 0)

    async def do_cancel(self) -> object:
        return asyncio.current_task().cancel()  # type: ignore[union-attr]

    async def do_uncancel(self) -> object:
        return asyncio.current_task().uncancel()  # type: ignore[union-attr]

    async def do_fail(self) -> object:
        raise ValueError

    async def do_swallow(self, inner: list[Step]) -> object:
        try:
            await self.run(inner)
        except (asyncio.CancelledError, ValueError, TimeoutError):
            return "swallowed"
        return "whole"

    async def do_tidy(self, inner: list[Step]) -> object:
        try:
            await self.run(inner)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            return "uncancelled"
        return None

    async def do_finally(self, inner: list[Step]) -> None:
        try:
            await self.run(inner)
        finally:
            await asyncio.sleep(0)

    async def do_timeout(self, inner: list[Step]) -> None:
        async with asyncio.timeout(0):
            await self.run(inner)

    async def do_group(self, inner: list[Step]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.event.wait())
            await self.run(inner)

    def act(self, task: "asyncio.Task[None] | EagerTask", kind: str, number: int = 0) -> None:
        future = self.futures[number]
        if kind == "signal":
            self.signals[number].set()
        elif kind == "event":
            self.event.set()
        elif kind == "unlock":
            self.lock.release()
        elif kind == "put":
            self.queue.put_nowait("put")
        elif kind == "cancel":
            task.cancel()
        elif kind == "uncancel":
            task.uncancel()
        elif not future.done() and kind == "resolve":
            future.set_result("resolved")
        elif not future.done() and kind == "break":
            future.set_exception(ValueError("broken"))
            future.exception()
        elif kind == "drop":
            future.cancel()


if sys.version_info >= (3, 13):
    AsyncioTask = asyncio.Task
else:

    class AsyncioTask(asyncio.tasks._PyTask):  # type: ignore[name-defined,misc]
        """A task as in Python 3.13: the last `uncancel` withdraws a cancellation that has not been raised."""

        def uncancel(self) -> int:
            left: int = super().uncancel()
            if not left:
                self._must_cancel = False
            return left


def as_asyncio_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[object, None, None], end: Callable[[object], None]
) -> "asyncio.Task[None]":
    """Start the work; `end` gets the name of the exception that ended it."""
    task: asyncio.Task[None] = AsyncioTask(work, loop=loop)
    task.add_done_callback(lambda done: end("CancelledError" if done.cancelled() else type(done.exception()).__name__))
    return task


def as_eager_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[object, None, None], end: Callable[[object], None]
) -> EagerTask:
    """Start the work; `end` gets the name of the exception that ended it."""
    task = EagerTask(work, loop, lambda error: end(type(error).__name__))
    loop.call_soon(task.begin)
    return task


class Start(Protocol):
    """Starts a program and gives `end` the name of the exception that ended it."""

    def __call__(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[object, None, None], end: Callable[[object], None]
    ) -> "asyncio.Task[None] | EagerTask": ...


def traced(
    make: Callable[[], asyncio.AbstractEventLoop],
    start: Start,
    program: list[Step],
    bursts: list[list[Step]],
    by_callback: bool,
) -> list[object]:
    """Return the events that the program recorded during these bursts of actions, and the exception that ended it.

    Actions run in callbacks of the loop, or within a running task.
    """
    loop = make()

    async def settle() -> None:
        for _ in range(25):
            await asyncio.sleep(0)

    async def drive() -> list[object]:
        world, ends = World(loop), list[object]()
        task = start(loop, world.run(program), ends.append)
        await settle()
        for burst in bursts:
            for action in burst:
                if by_callback:
                    loop.call_soon(world.act, task, *action)
                    await settle()
                else:
                    world.act(task, *action)
            await settle()
            world.trace.append((burst, task.done()))
        for _ in range(100):
            if ends:
                break
            task.cancel()
            await settle()
        for rest in asyncio.all_tasks() - {asyncio.current_task()}:
            rest.cancel()
        await settle()
        return [*world.trace, *ends]

    try:
        return loop.run_until_complete(drive())
    finally:
        loop.close()
