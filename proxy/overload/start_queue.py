"""The queue of requests while the event loop is busy: a bounded number starts in each turn of the loop, in order of
arrival.

Without it a crowd makes each turn of the loop as long as all of its requests together, for which refusals and streams
would wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True, slots=True)
class StartQueueRules:
    """`per_turn` requests start in one turn of the loop. The queue holds at least `least_length`, and as many as start
    within `longest_wait` seconds. The first `crowd` requests since the loop became busy join in any case: a crowd that
    comes at once is served, one that goes on coming is not. A tick that is `busy_lag` seconds late makes the loop busy.
    """

    per_turn: int = 8
    least_length: int = 256
    crowd: int = 1024
    busy_lag: float = 0.02
    longest_wait: float = 0.3


SMOOTHING = 0.3
"""The weight of the latest tick in the moving average of the pace."""


@dataclass(slots=True, eq=False)
class StartQueue:
    """`busy` says whether requests must wait for their turn, `coming` how many were admitted and have not joined yet.

    `now` gives the time in seconds; `call_soon` calls a function in the loop's next turn.
    """

    _rules: StartQueueRules
    _now: Callable[[], float]
    _call_soon: Callable[[Callable[[], None]], object]
    busy: bool = False
    coming: int = 0
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _places: int = field(init=False)
    _armed: bool = False
    _started: int = 0
    _joined: int = 0
    _since: float = 0.0
    _pace: float | None = None
    _longest: float = inf

    def __post_init__(self) -> None:
        self._places = self._rules.per_turn

    @property
    def too_long(self) -> bool:
        """Whether a further request would wait too long at the recent pace and is not of a crowd that came at once."""
        return len(self._waiting) + self.coming >= self._longest and self._joined + self.coming >= self._rules.crowd

    def tick(self, lag: float) -> None:
        """Take note of a tick that came `lag` seconds late. The loop stays busy until the queue is empty."""
        now = self._now()
        if self._waiting:
            pace = self._started / max(1e-3, now - self._since)
            self._pace = pace if self._pace is None else self._pace + SMOOTHING * (pace - self._pace)
            self._longest = max(self._rules.least_length, self._pace * self._rules.longest_wait)
        self.busy = lag > self._rules.busy_lag or bool(self._waiting)
        if not self.busy:
            self._pace, self._longest, self._joined = None, inf, 0
        self._since, self._started = now, 0

    async def wait(self) -> None:
        """Wait until the request may start."""
        self._arm()
        self._joined += 1
        if self._places and not self._waiting:
            self._places -= 1
            self._started += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._call_soon(self._start_next)

    def _start_next(self) -> None:
        self._armed = False
        self._places = self._rules.per_turn
        while self._waiting and self._places:
            first = self._waiting.popleft()
            if not first.done():  # one whose client has left is cancelled
                first.set_result(None)
                self._places -= 1
                self._started += 1
        if self._places < self._rules.per_turn:
            self._arm()  # to renew the places in the next turn
