"""How late the event loop is, and what it was doing when it stood still. Never decides what to do about either."""

import asyncio
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

KEPT = 10
"""Ticks that are looked back on: a second, while nothing lags."""

STEADY = 1.0
"""Seconds that a lag has to last before it counts: a neighbour on the machine, or a collector, is not a crowd."""

MAX_STACK = 3500
"""Characters of a stack, so that its log line stays below 4 KiB."""


@dataclass(frozen=True, slots=True)
class LagRules:
    """Seconds: between two ticks, how late a tick may be before the loop counts as standing still, between two looks
    for that."""

    tick: float = 0.1
    stall: float = 1.0
    look: float = 0.25


class Lags:
    """The lags of the last ticks, in seconds: the last one, their maximum, and the least that their p90 was in the last
    second.

    Ticks that have not been yet count as punctual.
    """

    __slots__ = ("_last", "_p90s", "last", "max", "steady")

    def __init__(self) -> None:
        self._last = deque([0.0] * KEPT, KEPT)
        self._p90s = deque([(float("-inf"), 0.0)])
        self.last = 0.0
        self.steady = 0.0
        self.max = 0.0

    def add(self, lag: float, now: float) -> None:
        """Another tick, so late, at this second of any monotonic clock."""
        self.last = lag
        self._last.append(lag)
        *_, p90, self.max = sorted(self._last)
        self._p90s.append((now, p90))
        while len(self._p90s) > 1 and self._p90s[1][0] <= now - STEADY:
            self._p90s.popleft()  # what stays at the front is what held when the second began
        self.steady = min(p90 for _, p90 in self._p90s)


class LoopLag:
    """Ticks for as long as `run` runs. `due` is when the next tick is due on `clock`, infinity while there is none;
    `thread` is the identifier of the loop's. `told` receives the lags after each tick."""

    def __init__(
        self, rules: LagRules, told: Callable[[Lags], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        # Not the loop's own clock: uvloop's stands still during an iteration.
        self.clock = clock
        self.rules = rules
        self.lags = Lags()
        self.due = float("inf")
        self.thread = 0
        self._told = told
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Tick for ever."""
        loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        try:
            self._wait(loop)
            await loop.create_future()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.due = float("inf")

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self.due = self.clock() + self.rules.tick
        # A task that slept would be told two turns of the loop later, which are no lag.
        self._timer = loop.call_later(self.rules.tick, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self.clock()
        self.lags.add(max(0.0, now - self.due), now)
        self._told(self.lags)
        self._wait(loop)


class Stalls:
    """Tells each stall once, by the tick that is overdue."""

    __slots__ = ("_limit", "_told")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._told = float("-inf")

    def noticed(self, due: float, now: float) -> bool:
        """Whether the tick that was due then is overdue beyond the limit, and that has not been told."""
        if now - due <= self._limit or due == self._told:
            return False
        self._told = due
        return True


class Watchdog:
    """Context manager: a thread that logs, once for each stall, where the loop's thread stands."""

    def __init__(self, lag: LoopLag, log: logging.Logger) -> None:
        self._lag = lag
        self._log = log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(self._lag.rules.stall)

    def _run(self) -> None:
        stalls = Stalls(self._lag.rules.stall)
        while not self._stop.wait(self._lag.rules.look):
            due, now = self._lag.due, self._lag.clock()
            if stalls.noticed(due, now):
                self._log.warning("the event loop has stood still for %.1f s at %s", now - due, stack(self._lag.thread))


def stack(thread: int) -> str:
    """The calls that a thread is in, innermost first, on one line: files, lines and functions, never a value."""
    frame = sys._current_frames().get(thread)
    calls = []
    while frame is not None:
        code = frame.f_code
        calls.append(f"{'/'.join(code.co_filename.rsplit('/', 2)[-2:])}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return ascii(" < ".join(calls))[1:-1][:MAX_STACK] or "an unknown place"
