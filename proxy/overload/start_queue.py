"""Bounds how many requests start in one turn of the event loop; those beyond wait in a queue, in order of arrival.

Without it a crowd makes each turn of the loop as long as all of its requests together, for which refusals and streams
would wait: once when they start, and again when the vendor answers all of them at once. The second needs more than a
bound for each turn: while few answers come there is time for many starts, whose answers leave no time for others, and
so on in turns, as long as an answer takes. So under overload no more start in a second than the loop can serve to the
end.
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
    """`at_once` requests may start in one turn of the loop. While more than that wait, which is a crowd, `per_turn` do.

    The queue holds at least `least_length`, and as many as start within `longest_wait` seconds. The first `crowd`
    requests that have to wait join in any case: a crowd that comes at once is served, one that goes on coming is not.
    From then on requests start at the rate that the loop can serve, or at `least_rate` a second.
    """

    at_once: int = 32
    per_turn: int = 16
    least_length: int = 256
    crowd: int = 1024
    longest_wait: float = 0.3
    least_rate: float = 100.0


SMOOTHING = 0.3
"""The weight of the latest tick in the moving average of the pace."""

RATE_SMOOTHING = 0.1
"""The same of the rate: an average over a second, so that starts and their answers are both in it."""

FIRST_SHARE = 0.5
"""The share of the first tick's rate that is taken for the rate: the answers to what it started are still to come, and
cost about as much."""


HEADROOM = 1.25
"""How much faster than at the measured rate requests start, so that it can grow: there is no telling what the loop
could serve beyond what has started."""


class Loop(Protocol):
    """What is needed of the event loop."""

    def time(self) -> float: ...

    def call_soon(self, callback: Callable[[], None], /) -> object: ...

    def call_later(self, seconds: float, callback: Callable[[], None], /) -> object: ...


@dataclass(slots=True, eq=False)
class StartQueue:
    """A request starts where `may_start` allows it, and otherwise when `wait` returns. `coming` are the requests that
    were admitted and have not asked yet.

    There are places left only while nobody waits. They are renewed in the turn after one that left less than half of
    them, and not in each: most have one request or none. `spent` returns the CPU seconds of the loop's thread: the time
    for which other processes had the core says nothing about what the loop can serve.
    """

    _rules: StartQueueRules
    _loop: Loop
    _spent: Callable[[], float] = time.thread_time
    coming: int = 0
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _places: int = field(init=False)
    _half: int = field(init=False)
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
        self._places = self._rules.at_once
        self._half = self._places // 2

    def may_start(self) -> bool:
        """Take a place of this turn, or return that the request has to wait for one."""
        if not self._places:
            return False
        self._places -= 1
        self._started += 1
        if self._places == self._half:
            self._arm()
        return True

    @property
    def too_long(self) -> bool:
        """Whether a further request would wait too long at the recent pace and is not of a crowd that came at once."""
        return len(self._waiting) + self.coming >= self._longest and self._joined + self.coming >= self._rules.crowd

    def tick(self) -> None:
        """Take note of what has started since the last tick."""
        now, spent = self._loop.time(), self._spent()
        if len(self._waiting) > self._rules.at_once:
            self._measure(now - self._since, spent - self._spent_before)
        else:
            self._pace, self._rate, self._longest, self._joined = None, None, inf, 0
        self._since, self._spent_before, self._started = now, spent, 0

    def _measure(self, seconds: float, spent: float) -> None:
        """Learn from what has started in so many seconds, for which that much CPU time was spent."""
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
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._arm()
        await turn

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._loop.call_soon(self._start_next)

    def _start_next(self) -> None:
        rules = self._rules
        self._places = rules.per_turn if len(self._waiting) > rules.at_once else rules.at_once
        pause = self._limit_rate(self._rate) if self._rate is not None and self._joined >= rules.crowd else 0.0
        while self._waiting and self._places:
            first = self._waiting.popleft()
            if not first.done():  # one whose client has left is cancelled
                first.set_result(None)
                self._places -= 1
                self._started += 1
                self._credit -= 1
        self._armed = bool(self._waiting)
        if self._armed and pause:
            self._loop.call_later(pause, self._start_next)
        elif self._armed:
            self._loop.call_soon(self._start_next)

    def _limit_rate(self, rate: float) -> float:
        """Let none start in this turn if the rate does not allow all of its places. Return the seconds until it does.
        One after another would take a turn of the loop each."""
        now, rate, places = self._loop.time(), max(HEADROOM * rate, self._rules.least_rate), self._rules.per_turn
        self._credit = min(max(0.0, self._credit) + (now - self._credited) * rate, 2 * places)
        self._credited = now
        if self._credit >= places:
            return 0.0
        self._places = 0
        return (places - self._credit) / rate
