"""Limits how many requests start in one event loop iteration. Further requests wait in a queue, in order of arrival.

Without the limit, a burst of requests would make one iteration as long as all starts together. Refusals and streams
would wait for that iteration: once when the requests start, and again when the vendor responds to all of them at once.
A limit for each iteration does not prevent the second delay: while few responses arrive, many requests start, whose
responses then leave no time for other starts, and so on in cycles of one response time. So under overload no more
requests start in a second than the loop can complete.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StartQueueRules:
    """The limits of the queue. `at_once` requests may start in one event loop iteration. While more requests than
    `at_once` wait, `per_turn` requests may start in an iteration.

    The queue holds at least `least_length` requests, and as many as start within `longest_wait` seconds. The first
    `crowd` requests that must wait may always join, so that a single burst is served, but a lasting overload is not.
    After that, requests start at the rate that the loop can serve, or at `least_rate` a second.
    """

    at_once: int = 32
    per_turn: int = 16
    least_length: int = 256
    crowd: int = 1024
    longest_wait: float = 0.3
    least_rate: float = 100.0


SMOOTHING = 0.3
"""The weight of the latest tick in the moving average of starts per second."""

RATE_SMOOTHING = 0.1
"""The weight of the latest tick in the moving average of starts per CPU second. It averages over a second, so that
starts and their responses are both included."""

FIRST_SHARE = 0.5
"""The share of the first tick's rate that is used, since the responses to its requests are yet to come and cost about
as much."""


HEADROOM = 1.25
"""The factor by which requests start faster than the measured rate, so that the rate can grow. The loop's capacity
beyond the started requests cannot be measured."""


class Loop(Protocol):
    """The methods of the event loop that the queue needs."""

    def time(self) -> float: ...

    def call_soon(self, callback: Callable[[], None], /) -> object: ...

    def call_later(self, seconds: float, callback: Callable[[], None], /) -> object: ...


@dataclass(slots=True, eq=False)
class StartQueue:
    """The queue of requests that wait to start. A request starts at once if `may_start` returns True, else when `wait`
    returns. `coming` counts the admitted requests that have not called `may_start` yet.

    Slots are free only while no request waits. They are renewed after an iteration that left fewer than half of them.
    They are not renewed in each iteration, since most iterations start at most one request. `_spent` returns the CPU
    seconds of the loop's thread, since time used by other processes does not show what the loop can serve.
    """

    _rules: StartQueueRules
    _loop: Loop
    _spent: Callable[[], float] = time.thread_time
    coming: int = 0
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _free_slots: int = field(init=False)
    _half_of_slots: int = field(init=False)
    _armed: bool = False
    _started: int = 0
    _joined: int = 0
    _since: float = 0.0
    _spent_before: float = 0.0
    _pace: float | None = None
    _longest: float = inf
    _rate: float | None = None
    _credit: float = 0.0
    _credited: float = 0.0

    def __post_init__(self) -> None:
        self._free_slots = self._rules.at_once
        self._half_of_slots = self._free_slots // 2

    def may_start(self) -> bool:
        """Take a slot of this iteration. Return whether there was one; otherwise the request must wait."""
        if not self._free_slots:
            return False
        self._free_slots -= 1
        self._started += 1
        if self._free_slots == self._half_of_slots:
            self._arm()
        return True

    @property
    def too_long(self) -> bool:
        """Whether a further request would wait too long at the recent pace and is not part of a single burst."""
        return len(self._waiting) + self.coming >= self._longest and self._joined + self.coming >= self._rules.crowd

    def tick(self) -> None:
        """Measure the starts since the last tick."""
        now, spent = self._loop.time(), self._spent()
        if len(self._waiting) > self._rules.at_once:
            self._measure(now - self._since, spent - self._spent_before)
        else:
            self._pace, self._rate, self._longest, self._joined = None, None, inf, 0
        self._since, self._spent_before, self._started = now, spent, 0

    def _measure(self, seconds: float, spent: float) -> None:
        """Update pace and rate by the starts within `seconds`, for which `spent` seconds of CPU time were used."""
        pace, rate = self._started / max(1e-3, seconds), self._started / max(1e-3, spent)
        self._pace = pace if self._pace is None else self._pace + SMOOTHING * (pace - self._pace)
        self._longest = max(self._rules.least_length, self._pace * self._rules.longest_wait)
        if self._rate is None:
            self._rate = FIRST_SHARE * rate
        else:
            self._rate += RATE_SMOOTHING * (rate - self._rate)

    async def wait(self) -> None:
        """Wait until the request may start."""
        self._joined += 1
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._arm()
        await waiter

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._loop.call_soon(self._start_next)

    def _start_next(self) -> None:
        rules = self._rules
        self._free_slots = rules.per_turn if len(self._waiting) > rules.at_once else rules.at_once
        pause = self._limit_rate(self._rate) if self._rate is not None and self._joined >= rules.crowd else 0.0
        while self._waiting and self._free_slots:
            first = self._waiting.popleft()
            if not first.done():  # the waiter of a client that has left is cancelled
                first.set_result(None)
                self._free_slots -= 1
                self._started += 1
                self._credit -= 1
        self._armed = bool(self._waiting)
        if self._armed and pause:
            self._loop.call_later(pause, self._start_next)
        elif self._armed:
            self._loop.call_soon(self._start_next)

    def _limit_rate(self, rate: float) -> float:
        """Allow no start in this iteration unless the rate allows all of its slots. Return the seconds until the rate
        allows them. If requests started one by one, each would take an iteration."""
        now, rate, slots = self._loop.time(), max(HEADROOM * rate, self._rules.least_rate), self._rules.per_turn
        self._credit = min(max(0.0, self._credit) + (now - self._credited) * rate, 2 * slots)
        self._credited = now
        if self._credit >= slots:
            return 0.0
        self._free_slots = 0
        return (slots - self._credit) / rate
