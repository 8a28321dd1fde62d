"""The event loop of a serving process: asyncio's own, whose turns take two thirds of the steps.

Nearly every turn of a busy gateway is one to ten sockets that may be read. Between the system call and a socket's
callback asyncio (CPython 3.11 to 3.15) takes four functions and three lists: 280 steps of the interpreter for a turn
with one socket, beside 300 that relaying a chunk takes. Here it is one pass over what the system call returned, and 160
steps. Whatever else a turn may have to do, pruning cancelled timers and timing callbacks in debug mode, is left to
asyncio's own.

The private members of asyncio and `selectors` that are used here have been the same since CPython 3.4.
"""

import asyncio
import select
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from heapq import heappop
from math import ceil
from typing import Any, Final, TypeVar

T = TypeVar("T")

LONGEST_WAIT: Final = 24 * 3600.0
"""Seconds of one wait, as asyncio's."""

UNSEEN: Final = (3, 16)
"""The first CPython whose turns of a loop were not compared with these."""

_READABLE: Final = getattr(select, "EPOLLIN", 1)
_WRITABLE: Final = getattr(select, "EPOLLOUT", 4)

FEW_TIMERS: Final = 100
"""Timers from which on asyncio lets go of cancelled ones once they are more than half, and not at the front alone."""


class LeanEventLoop(asyncio.SelectorEventLoop):
    """See the module. On Linux alone: its selector is epoll."""

    _ready: "deque[Any]"
    _scheduled: list[Any]
    _stopping: bool
    _debug: bool
    _timer_cancelled_count: int
    _clock_resolution: float
    _remove_reader: Callable[[object], bool]
    _remove_writer: Callable[[object], bool]

    def __init__(self) -> None:
        selector: Any = selectors.EpollSelector()
        super().__init__(selector)
        self._watched: Mapping[int, selectors.SelectorKey] = selector._fd_to_key
        self._poll: Callable[[float, int], list[tuple[int, int]]] = selector._selector.poll

    time = staticmethod(time.monotonic)
    """As asyncio's, without a function around it."""

    def _run_once(self) -> None:
        ready, timers = self._ready, self._scheduled
        cancelled = self._timer_cancelled_count
        if self._debug or 2 * cancelled > len(timers) > FEW_TIMERS or (timers and timers[0]._cancelled):
            super()._run_once()  # type: ignore[misc]  # typeshed does not have it
            return
        wait = -1.0
        if ready or self._stopping:
            wait = 0.0
        elif timers:
            wait = timers[0]._when - time.monotonic()
            # To the next millisecond, as fine as the system call is: else it would be called again and again.
            wait = 0.0 if wait <= 0 else ceil(min(wait, LONGEST_WAIT) * 1e3) * 1e-3
        self._collect(self._poll(wait, len(self._watched)))
        if timers:
            # `<=`: 97 days after the machine starts, a float of its clock is coarser than the steps, and `due` is now.
            due = time.monotonic() + self._clock_resolution
            while timers and timers[0]._when <= due:
                timer = heappop(timers)
                timer._scheduled = False
                ready.append(timer)
        # Not what these callbacks add: sockets are looked at before that.
        handle = None
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
        del handle  # what it called may hold a request

    def _collect(self, events: list[tuple[int, int]]) -> None:
        """Make the callbacks of sockets ready. An error or a hang-up is for both of a socket's, which each find out by
        themselves."""
        ready, watched = self._ready, self._watched
        for descriptor, event in events:
            key = watched.get(descriptor)
            if key is None:
                continue
            reader, writer = key.data
            if reader is not None and event != _WRITABLE:
                if reader._cancelled:
                    self._remove_reader(key.fileobj)
                else:
                    ready.append(reader)
            if writer is not None and event != _READABLE:
                if writer._cancelled:
                    self._remove_writer(key.fileobj)
                else:
                    ready.append(writer)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop for a process that serves."""
    lean = hasattr(select, "epoll") and sys.version_info < UNSEEN
    return LeanEventLoop() if lean else asyncio.new_event_loop()


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
