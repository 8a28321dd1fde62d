"""The threads of one guard. They are separate from the threads of requests, so code that hangs blocks only its own
guard.

A thread cannot be stopped. A call that passes its deadline keeps its thread until it returns. Another thread replaces
it, so that other calls are not blocked. If too many threads hang, further calls wait until their deadline and fail.
The queue never has more calls than threads. The threads are daemons, so they do not delay the end of the process.

A plugin's `close()` also has its own thread: on the event loop, a `close()` that blocks would delay every request
during a reload, and the end of the process. If it passes its deadline, it is abandoned and a warning is logged.
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

MAX_HUNG: Final = 16
"""The maximum number of hanging threads of one guard that are replaced. Each hanging thread keeps a request's texts in
memory."""

LOG_INTERVAL: Final = 60.0
"""The minimum seconds between two log lines about hanging calls, because each request may bring another one."""

CLOSE_WITHIN: Final = 2.0
"""The maximum seconds that a plugin's `close()` may take."""

_Job = Callable[[], None]


@dataclass(slots=True, eq=False)
class _ThreadCall:
    """A call in a thread. `hangs` is set if another thread has replaced the call's own thread."""

    deadline: asyncio.TimerHandle | None = None
    hangs: bool = False


class PluginThreads:
    """The pool of threads of one guard."""

    def __init__(self, name: str, log: logging.Logger) -> None:
        self._name = name
        self._log = log
        self._hung = 0
        self._outlasted = 0
        self._logged_at = -math.inf
        self._free = asyncio.Semaphore(THREADS)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._started = 0

    async def run(self, work: Callable[[], T], within: float) -> Returned[T] | Raised:
        """Return the value or exception of `work`, run in a thread. Raises TimeoutError after `within` seconds."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + within
        ended: asyncio.Future[Returned[T] | Raised] = loop.create_future()
        async with asyncio.timeout(within):
            await self._free.acquire()
            if self._started < THREADS:
                self._started += 1
                threading.Thread(target=self._serve, name=f"plugin {self._name}", daemon=True).start()
            # The caller may be gone by the time the call returns.
            call = _ThreadCall()
            call.deadline = loop.call_at(latest, self._replace, call)
            self._jobs.put(partial(self._do, loop, ended, work, call))
            return await ended

    def close(self) -> None:
        """End the threads when their calls have ended."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # otherwise the job, with a request's texts, would stay in memory until the next one arrives

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
        """Replace the thread of a call that has passed its deadline."""
        self._outlasted += 1
        if self._hung < MAX_HUNG:
            thread_call.hangs = True
            self._hung += 1
            self._started -= 1
            self._free.release()
        now = asyncio.get_running_loop().time()
        if now < self._logged_at + LOG_INTERVAL:
            return
        text = "plugin %s: calls passed their deadline, %d since the last message, and %d have not returned; "
        self._log.warning(
            text + "if %d hang, further calls wait for them", self._name, self._outlasted, self._hung, MAX_HUNG
        )
        self._logged_at, self._outlasted = now, 0

    def _done(
        self, ended: "asyncio.Future[Returned[T] | Raised]", outcome: Returned[T] | Raised, thread_call: _ThreadCall
    ) -> None:
        if thread_call.deadline is not None:
            thread_call.deadline.cancel()
        if thread_call.hangs:
            self._hung -= 1
            self._jobs.put(None)  # ends one thread, because there is one too many
        else:
            self._free.release()
        if not ended.done():
            ended.set_result(outcome)


def begin_close(plugin: LoadedPlugin, log: logging.Logger) -> threading.Thread | None:
    """Begin to close a plugin for one of its users. Return `None` if another user still needs it; the last user closes
    it. Otherwise return a thread that ends within CLOSE_WITHIN, whatever the plugin does. By then it has logged any
    failure."""
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
        message = "plugin %s is abandoned: its close() takes longer than %g s"
        log.warning(message, plugin.name, CLOSE_WITHIN)
    for outcome in outcomes:
        if isinstance(outcome, Raised):
            log.warning("plugin %s could not be closed: its close() raised %s", plugin.name, outcome)
