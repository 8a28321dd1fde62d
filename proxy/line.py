"""The line that requests stand in while the event loop is busy: so many begin in each of its turns, in their order.

Never decides who is refused, only whether the line is longer than anybody should stand in. Without it a crowd makes
each turn as long as all that is under way takes: whoever is to be refused waits for that, and so does every stream.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class LineRules:
    """Requests that begin in one turn of the loop, that may stand in line in any case, and that may join it since the
    loop became busy, however long they wait: a crowd that comes at once is served, one that goes on coming is not.
    Seconds: a tick that late makes the loop busy, and the wait that is promised to who joins."""

    at_once: int = 8
    least: int = 256
    crowd: int = 1024
    late: float = 0.02
    longest: float = 0.3


SMOOTH = 0.3
"""The weight of a tick's pace in what the pace is taken for."""


class Line:
    """`busy` says whether a request has to ask for its turn, `coming` how many have been let in and not asked yet.

    `clock` is in seconds; `soon` calls in the loop's next turn.
    """

    __slots__ = (
        *("_armed", "_began", "_came", "_clock", "_left", "_most", "_pace", "_rules", "_since", "_soon", "_waiting"),
        *("busy", "coming"),
    )

    def __init__(
        self, rules: LineRules, clock: Callable[[], float], soon: Callable[[Callable[[], None]], object]
    ) -> None:
        self.busy = False
        self.coming = 0
        self._rules = rules
        self._clock = clock
        self._soon = soon
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left = rules.at_once
        self._armed = False
        self._began = 0
        self._came = 0
        self._since = 0.0
        self._pace: float | None = None
        self._most = inf

    @property
    def too_long(self) -> bool:
        """Whether the next in it would wait for longer than is promised, at the pace of late, and is none of a crowd
        that came at once."""
        return len(self._waiting) + self.coming >= self._most and self._came + self.coming >= self._rules.crowd

    def tick(self, lag: float) -> None:
        """A tick of the loop came so many seconds late. The loop stays busy until nobody stands in line."""
        now = self._clock()
        if self._waiting:
            pace = self._began / max(1e-3, now - self._since)
            self._pace = pace if self._pace is None else self._pace + SMOOTH * (pace - self._pace)
            self._most = max(self._rules.least, self._pace * self._rules.longest)
        self.busy = lag > self._rules.late or bool(self._waiting)
        if not self.busy:
            self._pace, self._most, self._came = None, inf, 0
        self._since, self._began = now, 0

    async def turn(self) -> None:
        """Returns when the request may begin."""
        self._arm()
        self._came += 1
        if self._left and not self._waiting:
            self._left -= 1
            self._began += 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        await mine

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._soon(self._next)

    def _next(self) -> None:
        """Another turn of the loop."""
        self._armed = False
        self._left = self._rules.at_once
        while self._waiting and self._left:
            first = self._waiting.popleft()
            if not first.done():  # whoever left has been cancelled
                first.set_result(None)
                self._left -= 1
                self._began += 1
        if self._left < self._rules.at_once:
            self._arm()  # this turn's places are taken, the next one's are not
