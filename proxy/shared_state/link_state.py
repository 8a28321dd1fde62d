"""The state of a link that may fail: when to use it next, and which changes are logged.

Pure: time is an argument.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

EVERY: Final = 1.0
"""Seconds between two exchanges as long as the other side answers, and until it is taken for lost."""

MISSES: Final = 5
"""Misses in a row after which it is taken for lost."""

FIRST_WAIT: Final = 5.0
LONGEST_WAIT: Final = 30.0
"""Seconds until a lost one is called again; each miss doubles them."""

LINES: Final = 4
LINES_IN: Final = 600.0
"""At most LINES lines in so many seconds: a link that comes and goes must not fill the log."""


class LinkCondition(StrEnum):
    """What the log says of the link. FOREIGN: it answers, with data that no gateway wrote."""

    UP = "up"
    FOREIGN = "foreign"
    ALONE = "alone"


@dataclass(slots=True, eq=False)
class LinkState:
    """What the last answers and misses amount to. At first nothing is known, and nothing is logged."""

    _misses: int = 0
    _condition: LinkCondition | None = None
    _said: LinkCondition = LinkCondition.UP
    _times: deque[float] = field(default_factory=lambda: deque(maxlen=LINES))

    @property
    def up(self) -> bool:
        """Whether it answered the last time, or is not taken for lost yet."""
        return self._condition in (LinkCondition.UP, LinkCondition.FOREIGN)

    @property
    def unknown(self) -> bool:
        """Whether it has not answered yet, or not the last time."""
        return self._condition is None or self._misses > 0

    def answered(self, condition: LinkCondition) -> float:
        """Note an answer, UP or FOREIGN, and return the seconds until the next exchange."""
        self._misses = 0
        self._condition = condition
        return EVERY

    def missed(self) -> float:
        """Note a miss, and return the seconds until the next exchange."""
        self._misses += 1
        if self._misses < MISSES:
            return EVERY
        self._condition = LinkCondition.ALONE
        return float(min(FIRST_WAIT * 2.0 ** min(self._misses - MISSES, 10), LONGEST_WAIT))

    def news(self, now: float) -> LinkCondition | None:
        """Return what to log now: a condition other than the last one logged. What cannot be logged now is later."""
        condition, before = self._condition, self._said
        if condition is None or condition is before:
            return None
        if (before, condition) == (LinkCondition.FOREIGN, LinkCondition.UP):
            self._said = condition
            return None
        if len(self._times) == LINES and now - self._times[0] < LINES_IN:
            return None
        self._times.append(now)
        self._said = condition
        return condition
