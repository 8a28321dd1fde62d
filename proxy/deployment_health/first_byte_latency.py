"""The attempts of one kind of answer that wait for a first byte, and how long that usually takes.

The two kinds are kept apart: a stream's first byte comes at the first token, a whole answer's when all of it has been
generated.
"""

from dataclasses import dataclass, field
from typing import Final

RECENT = 0.1
"""The weight of the newest time in the usual one: about the last twenty count."""

TAIL_SHARE = 0.95
TAIL_STEPS = (0.5, 0.03)
TAIL_STEP_DECAY = 0.97
"""The tail is a running estimate: up by 95 % of a step at each time above it, down by 5 % of one at each below, so that
it stays where one time in twenty is above. The step begins large, since the first time may be a cold start's, and
shrinks with each time to one that is small beside what the times vary by."""

SETTLED = 50
"""Times after which the tail is more than a guess."""

_SETTLED_STEP: Final[float] = TAIL_STEPS[0] * TAIL_STEP_DECAY ** (SETTLED - 1.5)

LEAST_TAIL = 0.001
"""Seconds: an estimate that moves by shares of itself must not be nothing."""


@dataclass(slots=True, eq=False)
class Awaited:
    """The attempts of one kind of answer at one deployment.

    `usual` is the decayed mean of the seconds to the first byte, `tail` a decayed estimate of their 95th percentile;
    None and 0 as long as there was none. Arrivals are counted over the last one to two `span` seconds.
    """

    _span: float
    usual: float | None = None
    tail: float = 0.0
    _step: float = TAIL_STEPS[0]
    _open: dict[object, float] = field(default_factory=dict)
    _arrived: int = 0
    _earlier: int = 0
    _ends: float = float("-inf")

    def __len__(self) -> int:
        return len(self._open)

    @property
    def settled(self) -> bool:
        """Whether the tail is known from SETTLED times or more: each but the first shrinks the step."""
        return self._step <= _SETTLED_STEP

    def begin(self, key: object, now: float) -> None:
        """Note that an attempt, by its identity, waits from now on."""
        if now >= self._ends:
            self._turn(now)
        self._arrived += 1
        self._open[key] = now

    def answered(self, key: object, now: float) -> None:
        """Note the first byte of a waiting attempt."""
        taken = now - self._open.pop(key)
        usual = self.usual
        if usual is None:
            self.usual = taken
            self.tail = max(taken, LEAST_TAIL)
            return
        self.usual = usual + RECENT * (taken - usual)
        step = self._step
        if step > TAIL_STEPS[1]:
            self._step = step * TAIL_STEP_DECAY
        if taken > self.tail:
            self.tail *= 1 + step * TAIL_SHARE
        elif self.tail > LEAST_TAIL:
            self.tail *= 1 - step * (1 - TAIL_SHARE)

    def cut_off(self, key: object, now: float) -> None:
        """Note that an attempt was ended although it would have waited on. A wait above the tail counts as a time,
        since the longest waits, which are cut off, would be missing otherwise. A wait below the tail is ignored."""
        if self.usual is not None and now - self._open[key] > self.tail:
            self.answered(key, now)
        else:
            self.forget(key)

    def forget(self, key: object) -> None:
        """Note the end of an attempt without a first byte."""
        del self._open[key]

    def oldest(self) -> float | None:
        """Return when the attempt that has waited longest began, None where none waits."""
        return next(iter(self._open.values()), None)

    def expected(self, now: float) -> float:
        """Return how many attempts would be waiting if all were as usual: arrivals a second times the usual wait
        (Little's law); 0 when no wait is known."""
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
