"""The tries of one kind of answer that have had no byte yet, and how long that usually takes.

Never compares one kind of answer with another: a stream's first byte comes at the first token, a whole answer's when
all of it has been generated.
"""

RECENT = 0.1
"""The weight of the newest time in the usual one: about the last twenty count."""

TAIL_STEP = 0.1
TAIL_SHARE = 0.95
"""The tail is a running estimate: up by 9.5 % at each time above it, down by 0.5 % at each below. It stays where one
time in twenty is above."""

_UP = 1 + TAIL_STEP * TAIL_SHARE
_DOWN = 1 - TAIL_STEP * (1 - TAIL_SHARE)

LEAST_TAIL = 0.001
"""Seconds: an estimate that moves by shares of itself must not be nothing."""


class Awaited:
    """The tries of one kind of answer at one deployment.

    `usual` is the decayed mean of the seconds to the first byte, `tail` a decayed estimate of their 95th percentile;
    None and 0 as long as there was none. Arrivals are counted over the last one to two `span` seconds.
    """

    __slots__ = ("_arrived", "_earlier", "_ends", "_open", "_span", "tail", "usual")

    def __init__(self, span: float) -> None:
        self.usual: float | None = None
        self.tail = 0.0
        self._span = span
        self._open: dict[object, float] = {}
        self._arrived = 0
        self._earlier = 0
        self._ends = float("-inf")

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, key: object, now: float) -> None:
        """A try, by its identity, waits from now on."""
        if now >= self._ends:
            self._turn(now)
        self._arrived += 1
        self._open[key] = now

    def answered(self, key: object, now: float) -> None:
        """The first byte of a waiting try is there."""
        taken = now - self._open.pop(key)
        usual = self.usual
        if usual is None:
            self.usual = taken
            self.tail = max(taken, LEAST_TAIL)
            return
        self.usual = usual + RECENT * (taken - usual)
        tail = self.tail
        if taken > tail:
            self.tail = tail * _UP
        elif tail > LEAST_TAIL:
            self.tail = tail * _DOWN

    def forget(self, key: object) -> None:
        """A waiting try ended, which says nothing of how long a byte takes."""
        del self._open[key]

    def oldest(self) -> float | None:
        """When the try that has waited longest began."""
        return next(iter(self._open.values()), None)

    def expected(self, now: float) -> float:
        """How many tries would be waiting if all were as usual: arrivals a second times the usual wait (Little's
        law); 0 when no wait is known."""
        if self.usual is None:
            return 0.0
        if now >= self._ends:
            self._turn(now)
        return self.usual * (self._arrived + self._earlier * (self._ends - now) / self._span) / self._span

    def _turn(self, now: float) -> None:
        late = now - self._ends
        self._earlier = self._arrived if late < self._span else 0
        self._arrived = 0
        self._ends = now + self._span - (late if late < self._span else 0.0)
