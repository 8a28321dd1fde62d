"""Measures the lag of the event loop, and logs the stack of its thread if it stalls."""

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

WINDOW_TICKS = 10
"""The number of ticks in the window: one second, without lag."""

STEADY_SECONDS = 1.0
"""Seconds that a lag must last to count. Short lags come from other processes or the garbage collector, not from
overload."""

MAX_STACK = 3500
"""The most characters of a logged stack, so that its log line stays below 4 KiB."""


@dataclass(frozen=True, slots=True)
class LagRules:
    """Times in seconds: `tick` is the time between two ticks, `stall` the delay of a tick from which on the loop counts
    as stalled, and `look` the time between two checks for a stall."""

    tick: float = 0.1
    stall: float = 1.0
    look: float = 0.25


class Lags:
    """The lags of the last ticks, in seconds. `max` is their maximum, `steady` the minimum of their 90th percentile
    within the last second. The window begins with lags of 0."""

    __slots__ = ("_last", "_p90s", "max", "steady")

    def __init__(self) -> None:
        self._last = deque([0.0] * WINDOW_TICKS, WINDOW_TICKS)
        self._p90s = deque([(float("-inf"), 0.0)])
        self.steady = 0.0
        self.max = 0.0

    def add(self, lag: float, now: float) -> None:
        """Add a tick that came `lag` seconds late, at the time `now` of a monotonic clock."""
        self._last.append(lag)
        *_, p90, self.max = sorted(self._last)
        self._p90s.append((now, p90))
        while len(self._p90s) > 1 and self._p90s[1][0] <= now - STEADY_SECONDS:
            self._p90s.popleft()  # the first entry is the value at the beginning of the second
        self.steady = min(p90 for _, p90 in self._p90s)


class LoopLag:
    """The ticks of the event loop while `run` runs. `due` is the time of the next tick on `clock`, infinity if there is
    none. `thread` is the id of the loop's thread. `on_tick` receives the lags after each tick."""

    def __init__(
        self, rules: LagRules, on_tick: Callable[[Lags], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        # This is not the loop's own clock, since the clock of uvloop stands still during an iteration.
        self.clock = clock
        self.rules = rules
        self.lags = Lags()
        self.due = float("inf")
        self.thread = 0
        self._on_tick = on_tick
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        try:
            self._schedule(loop)
            await loop.create_future()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.due = float("inf")

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self.due = self.clock() + self.rules.tick
        # A sleeping task would resume two event loop iterations later, which is not lag.
        self._timer = loop.call_later(self.rules.tick, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self.clock()
        self.lags.add(max(0.0, now - self.due), now)
        self._on_tick(self.lags)
        self._schedule(loop)


class Stalls:
    """Reports each stall once, by its overdue tick."""

    __slots__ = ("_limit", "_noticed")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._noticed = float("-inf")

    def noticed(self, due: float, now: float) -> bool:
        """Return whether the tick due at `due` is overdue beyond the limit and has not been reported yet."""
        if now - due <= self._limit or due == self._noticed:
            return False
        self._noticed = due
        return True


class Watchdog:
    """Context manager around a thread that logs the stack of the loop's thread once for each stall."""

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
                self._log.warning(
                    "the event loop has stood still for %.1f s at %s", now - due, thread_stack(self._lag.thread)
                )


def thread_stack(thread: int) -> str:
    """Return the calls of a thread on one line, innermost first: files, lines and functions without values."""
    frame = sys._current_frames().get(thread)
    calls = []
    while frame is not None:
        code = frame.f_code
        calls.append(f"{'/'.join(code.co_filename.rsplit('/', 2)[-2:])}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return ascii(" < ".join(calls))[1:-1][:MAX_STACK] or "an unknown place"
