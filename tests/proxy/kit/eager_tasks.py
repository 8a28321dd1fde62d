"""Drives EagerTasks from callbacks of a loop, as a protocol's methods do, on both loops that the gateway runs on."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager

import uvloop

from proxy.eager_task import EagerTask

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
"""Both loops that the gateway runs on."""


def in_callback(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> object:
    """Call `call` in a callback of the loop, outside of any task, as a protocol's methods are."""
    seen: list[object] = []

    def called() -> None:
        try:
            seen.append(call())
        except Exception as error:
            seen.append(error)
        finally:
            loop.stop()

    loop.call_soon(called)
    loop.run_forever()
    if isinstance(seen[0], Exception):
        raise seen[0]
    return seen[0]


def turn(loop: asyncio.AbstractEventLoop, turns: int = 30) -> None:
    """Let the loop run `turns` iterations."""

    async def settle() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    loop.run_until_complete(settle())


class Started:
    """An EagerTask that was begun in a callback, and how it ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[object, None, object]) -> None:
        self.loop = loop
        self.ends: list[BaseException | None] = []
        self.task: EagerTask

        def begin() -> None:
            self.task = EagerTask(coroutine, loop, self.ends.append)
            self.task.begin()

        in_callback(loop, begin)

    def cancel(self) -> bool:
        return bool(in_callback(self.loop, self.task.cancel))


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector: only reference counts free objects."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
