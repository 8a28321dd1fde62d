"""Threads of one guard, apart from those of requests: code that hangs takes nobody's but its own.

A thread cannot be stopped. A call that outlasts its deadline keeps its thread until it returns, and another thread
takes its place, so that it holds up nobody else; when too many hang, further calls wait for their deadline and fail.
Nothing is queued beyond the threads. They are daemons, so that they hold up no end of the process.

A plugin's `close()` has a thread of its own too: on the event loop one that blocks would hold up every request of a
reload, and the end of the process. One that outlasts its deadline is left behind, with a line in the log.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Final, TypeVar

from proxy.plugins.call_plugin import Raised, Returned, attempted
from proxy.plugins.load_plugins import LoadedPlugin

T = TypeVar("T")

THREADS: Final = 2

MOST_HUNG: Final = 16
"""Threads of one guard that are replaced, each of which keeps a request's texts."""

SILENCE: Final = 60.0
"""Seconds between two lines about calls that hang: each request may bring another one."""

CLOSE_WITHIN: Final = 2.0
"""Seconds that a plugin has for its `close()`."""

_Job = Callable[[], None]


@dataclass(slots=True, eq=False)
class _ThreadCall:
    """A call in a thread. `hangs` says that another thread has taken the place of its own."""

    deadline: asyncio.TimerHandle | None = None
    hangs: bool = False


class PluginThreads:
    """See the module."""

    def __init__(self, name: str, log: logging.Logger) -> None:
        self._name = name
        self._log = log
        self._hung = 0
        self._outlasted = 0
        self._said_at = -math.inf
        self._free = asyncio.Semaphore(THREADS)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._started = 0

    async def run(self, work: Callable[[], T], within: float) -> Returned[T] | Raised:
        """Return what `work` returns or raises in a thread. Raises TimeoutError after so many seconds."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + within
        ended: asyncio.Future[Returned[T] | Raised] = loop.create_future()
        async with asyncio.timeout(within):
            await self._free.acquire()
            if self._started < THREADS:
                self._started += 1
                threading.Thread(target=self._serve, name=f"plugin {self._name}", daemon=True).start()
            # Whoever asked may be gone by then.
            call = _ThreadCall()
            call.deadline = loop.call_at(latest, self._replace, call)
            self._jobs.put(partial(self._do, loop, ended, work, call))
            return await ended

    def close(self) -> None:
        """End the threads once what they do has ended."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # it would be kept, with a request's texts, until the next one comes

    def _do(
        self,
        loop: asyncio.AbstractEventLoop,
        ended: "asyncio.Future[Returned[T] | Raised]",
        work: Callable[[], T],
        thread_call: _ThreadCall,
    ) -> None:
        outcome = attempted(work)
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._done, ended, outcome, thread_call)

    def _replace(self, thread_call: _ThreadCall) -> None:
        """Let another thread take the place of one whose call has outlasted its deadline."""
        self._outlasted += 1
        if self._hung < MOST_HUNG:
            thread_call.hangs = True
            self._hung += 1
            self._started -= 1
            self._free.release()
        now = asyncio.get_running_loop().time()
        if now < self._said_at + SILENCE:
            return
        text = (
            "plugin %s: calls of it outlast their deadline, %d since this was said before, and %d have not returned; "
        )
        self._log.warning(text + "after %d others wait for them", self._name, self._outlasted, self._hung, MOST_HUNG)
        self._said_at, self._outlasted = now, 0

    def _done(
        self, ended: "asyncio.Future[Returned[T] | Raised]", outcome: Returned[T] | Raised, thread_call: _ThreadCall
    ) -> None:
        if thread_call.deadline is not None:
            thread_call.deadline.cancel()
        if thread_call.hangs:
            self._hung -= 1
            self._jobs.put(None)  # one thread too many
        else:
            self._free.release()
        if not ended.done():
            ended.set_result(outcome)


def begin_close(plugin: LoadedPlugin, log: logging.Logger) -> threading.Thread | None:
    """Begin to close a plugin that one of its users needs no more; None where another one still does, and closes it
    later. The thread that is returned ends within CLOSE_WITHIN, whatever the plugin does, and has said by then what
    went wrong."""
    if not plugin.users.leave():
        return None
    watching = threading.Thread(target=_close, args=(plugin, log), name=f"closing {plugin.name}", daemon=True)
    watching.start()
    return watching


def _close(plugin: LoadedPlugin, log: logging.Logger) -> None:
    outcomes: list[Returned[object] | Raised] = []

    def close() -> None:
        if plugin.has("close"):
            outcomes.append(attempted(plugin.made.close))

    closing = threading.Thread(target=close, name=f"plugin {plugin.name}", daemon=True)
    closing.start()
    closing.join(CLOSE_WITHIN)
    if closing.is_alive():
        message = "plugin %s is left behind: its close() takes longer than %g s"
        log.warning(message, plugin.name, CLOSE_WITHIN)
    for outcome in outcomes:
        if isinstance(outcome, Raised):
            log.warning("plugin %s could not be closed: its close() raised %s", plugin.name, outcome)
