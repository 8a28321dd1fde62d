"""Tracks the attempts that wait for the first byte of one kind of response, and how long that wait usually takes.

The two kinds are separate: the first byte of a stream arrives with the first token; the first byte of a non-streaming
response arrives when all of it has been generated.
"""

from dataclasses import dataclass, field
from typing import Final

RECENT = 0.1
"""The weight of the newest wait in the mean: about the last twenty waits count."""

TAIL_SHARE = 0.95
TAIL_STEPS = (0.5, 0.03)
TAIL_STEP_DECAY = 0.97
"""The tail is a running estimate: a wait above it raises it by 95 % of a step, a wait below it lowers it by 5 % of a
step, so that it is stable when one wait in twenty is above. The first step is large, because the first wait may be due
to a cold start. Each wait shrinks the step, down to one that is small compared with the variation of the waits."""

SETTLED = 50
"""The number of waits after which the tail is reliable."""

_SETTLED_STEP: Final[float] = TAIL_STEPS[0] * TAIL_STEP_DECAY ** (SETTLED - 1.5)

LEAST_TAIL = 0.001
"""The least value of the tail in seconds. The tail changes by shares of itself, so it must never be zero."""


@dataclass(slots=True, eq=False)
class Awaited:
    """The attempts at one deployment that are waiting for one kind of response.

    `usual` is the decayed mean of the seconds to the first byte, `None` before the first measured wait. `tail` is a
    decayed estimate of their 95th percentile, 0 before the first measured wait. Arrivals are counted over the last one
    to two times `span` seconds.
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
        """Whether the tail is based on SETTLED waits or more: each wait but the first shrinks the step."""
        return self._step <= _SETTLED_STEP

    def begin(self, key: object, now: float) -> None:
        """Note that an attempt waits from now on. `key` is its identity."""
        if now >= self._ends:
            self._start_span(now)
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
        """Note that an attempt was ended while it waited. A wait above the tail is counted, because the longest waits
        are the ones that are cut off, and would otherwise be missing. A wait below the tail is ignored."""
        if self.usual is not None and now - self._open[key] > self.tail:
            self.answered(key, now)
        else:
            self.forget(key)

    def forget(self, key: object) -> None:
        """Note the end of an attempt without a first byte."""
        del self._open[key]

    def oldest(self) -> float | None:
        """Return the time at which the longest waiting attempt began; `None` if no attempt is waiting."""
        return next(iter(self._open.values()), None)

    def expected(self, now: float) -> float:
        """Return the number of attempts that would be waiting if all waits were usual: arrivals per second times the
        usual wait (Little's law); 0 if no wait is known."""
        if self.usual is None:
            return 0.0
        if now >= self._ends:
            self._start_span(now)
        return self.usual * (self._arrived + self._earlier * (self._ends - now) / self._span) / self._span

    def _start_span(self, now: float) -> None:
        late = now - self._ends
        self._earlier = self._arrived if late < self._span else 0
        self._arrived = 0
        self._ends = now + self._span - (late if late < self._span else 0.0)
