"""Whether something that may be lost answers: when to ask it next, and which changes are worth a line in the log.

Never asks, reads a clock or logs.
"""

from collections import deque
from enum import StrEnum
from typing import Final

EVERY: Final = 1.0
"""Seconds between two questions as long as it answers, and until it is taken for lost."""

MISSES: Final = 5
"""Misses in a row after which it is."""

FIRST_WAIT: Final = 5.0
LONGEST_WAIT: Final = 30.0
"""Seconds until a lost one is asked again; each miss doubles them."""

LINES: Final = 4
LINES_IN: Final = 600.0
"""At most so many lines in so many seconds: what comes and goes must not fill the log."""


class Condition(StrEnum):
    """What is to be said of it. FOREIGN: it answers, with more than what was put there."""

    UP = "up"
    FOREIGN = "foreign"
    ALONE = "alone"


class Standing:
    """What the last answers and misses come to. Nothing is known at first, and nothing said."""

    __slots__ = ("_condition", "_misses", "_said", "_times")

    def __init__(self) -> None:
        self._misses = 0
        self._condition: Condition | None = None
        self._said = Condition.UP
        self._times: deque[float] = deque(maxlen=LINES)

    @property
    def up(self) -> bool:
        """Whether it answered the last time, or is not taken for lost yet."""
        return self._condition in (Condition.UP, Condition.FOREIGN)

    @property
    def unknown(self) -> bool:
        """Whether it has not answered yet, or not the last time."""
        return self._condition is None or self._misses > 0

    def answered(self, condition: Condition) -> float:
        """It answered, and is UP or FOREIGN; gives the seconds until the next question."""
        self._misses = 0
        self._condition = condition
        return EVERY

    def missed(self) -> float:
        """It did not answer as it should; gives the seconds until the next question."""
        self._misses += 1
        if self._misses < MISSES:
            return EVERY
        self._condition = Condition.ALONE
        return float(min(FIRST_WAIT * 2.0 ** min(self._misses - MISSES, 10), LONGEST_WAIT))

    def news(self, now: float) -> Condition | None:
        """What to say now, once: that it is otherwise than was said last. What had to be left unsaid is said later."""
        condition, before = self._condition, self._said
        if condition is None or condition is before:
            return None
        if (before, condition) == (Condition.FOREIGN, Condition.UP):
            self._said = condition
            return None
        if len(self._times) == LINES and now - self._times[0] < LINES_IN:
            return None
        self._times.append(now)
        self._said = condition
        return condition
