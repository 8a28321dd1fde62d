"""How many requests one deployment has under way, and who waits for a place. Never knows why a place is wanted.

AIMD on loss: the length of answers rules how long an LLM takes, so a limit that followed latency would take long
answers for congestion.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from providers.failure import Failure, FailureKind, UpstreamError


@dataclass(frozen=True, slots=True)
class BulkheadRules:
    """Requests at once: `start`, and never outside `least` to `most`. A loss multiplies the limit by `shrink`, at most
    once in `shrink_every` seconds. Who finds no place waits `wait` seconds, unless `queue` times the limit do so."""

    start: int = 64
    least: int = 4
    most: int = 512
    shrink: float = 0.9
    shrink_every: float = 1.0
    wait: float = 1.0
    queue: int = 2


class Limit:
    """How many requests at once a deployment takes, learned from what it says. Pure."""

    __slots__ = ("_rules", "_shrunk", "_wins", "current")

    def __init__(self, rules: BulkheadRules) -> None:
        self.current = rules.start
        self._rules = rules
        self._wins = 0
        self._shrunk = float("-inf")

    def won(self) -> None:
        """A request succeeded: as many successes as the limit allows requests raise it by one."""
        self._wins += 1
        if self._wins >= self.current:
            self._wins = 0
            self.current = min(self._rules.most, self.current + 1)

    def lost(self, now: float) -> None:
        """The deployment had too much: a 429, a 529 or a timeout. `now` is seconds of any monotonic clock."""
        if now - self._shrunk < self._rules.shrink_every:
            return  # the answers of one moment are one sign, however many they are
        self._shrunk = now
        self._wins = 0
        self.current = max(self._rules.least, int(self.current * self._rules.shrink))


class Bulkhead:
    """The places of one deployment. Each `take` that returns is followed by exactly one `release`.

    A place is handed from its holder to the one who waits longest and is never free in between, so nobody overtakes.
    """

    __slots__ = ("_queue", "_rules", "in_flight", "limit")

    def __init__(self, rules: BulkheadRules) -> None:
        self.limit = Limit(rules)
        self.in_flight = 0
        self._rules = rules
        # True is a place, False the end of the patience.
        self._queue: OrderedDict[asyncio.Future[bool], None] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._queue)

    async def take(self) -> None:
        """Take a place, or wait for one. Raises UpstreamError BUSY when too many wait or none came in time."""
        if self.in_flight < self.limit.current and not self._queue:
            self.in_flight += 1
            return
        await self._wait()

    def release(self) -> None:
        """Give the place back."""
        self.in_flight -= 1
        if self._queue:
            self._hand_out()

    async def _wait(self) -> None:
        self._hand_out()  # the limit may have risen since the last place came back
        if self.in_flight < self.limit.current:
            self.in_flight += 1
            return
        if len(self._queue) >= self._rules.queue * self.limit.current:
            raise _full()
        loop = asyncio.get_running_loop()
        place: asyncio.Future[bool] = loop.create_future()
        self._queue[place] = None
        patience = loop.call_later(self._rules.wait, self._give_up, place)
        try:
            if not await place:
                raise _full()
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.result():
                self.release()  # it came in the moment in which its taker was cancelled
            raise
        finally:
            patience.cancel()
            self._queue.pop(place, None)

    def _give_up(self, place: asyncio.Future[bool]) -> None:
        if not place.done():
            del self._queue[place]
            place.set_result(False)

    def _hand_out(self) -> None:
        """Give what is free to those who wait longest."""
        while self._queue and self.in_flight < self.limit.current:
            place, _ = self._queue.popitem(last=False)
            if not place.done():
                self.in_flight += 1
                place.set_result(True)


def _full() -> UpstreamError:
    message = "The deployment has as many requests under way as it takes."
    return UpstreamError(Failure(FailureKind.BUSY, message, retry_after=1.0, unsent=True))
