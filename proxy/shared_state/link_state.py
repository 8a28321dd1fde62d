"""The state of a link that may fail: the time of its next use, and the changes that are logged. The methods get the
current time as an argument."""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

EXCHANGE_EVERY: Final = 1.0
"""Seconds between two exchanges while the other side replies, and until it counts as lost."""

MISSES: Final = 5
"""The link counts as lost after this many failures in a row."""

FIRST_WAIT: Final = 5.0
LONGEST_WAIT: Final = 30.0
"""The seconds until a lost link is tried again: the first wait and the longest wait. Each failure doubles the wait."""

MAX_LINES: Final = 4
LINES_WINDOW: Final = 600.0
"""At most MAX_LINES log lines are written in LINES_WINDOW seconds, because an unstable link must not fill the log."""


class LinkCondition(StrEnum):
    """The condition of the link, as it is logged. FOREIGN: the other side replies with data that no gateway wrote."""

    UP = "up"
    FOREIGN = "foreign"
    ALONE = "alone"


@dataclass(slots=True, eq=False)
class LinkState:
    """The condition that follows from the last replies and failures. At first it is unknown, and nothing is logged."""

    _misses: int = 0
    _condition: LinkCondition | None = None
    _logged: LinkCondition = LinkCondition.UP
    _line_times: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_LINES))

    @property
    def up(self) -> bool:
        """Whether the other side replied the last time, or does not count as lost yet."""
        return self._condition in (LinkCondition.UP, LinkCondition.FOREIGN)

    @property
    def unknown(self) -> bool:
        """Whether the other side has never replied, or did not reply the last time."""
        return self._condition is None or self._misses > 0

    def answered(self, condition: LinkCondition) -> float:
        """Note a reply, UP or FOREIGN, and return the seconds until the next exchange."""
        self._misses = 0
        self._condition = condition
        return EXCHANGE_EVERY

    def missed(self) -> float:
        """Note a failure, and return the seconds until the next exchange."""
        self._misses += 1
        if self._misses < MISSES:
            return EXCHANGE_EVERY
        self._condition = LinkCondition.ALONE
        return float(min(FIRST_WAIT * 2.0 ** min(self._misses - MISSES, 10), LONGEST_WAIT))

    def news(self, now: float) -> LinkCondition | None:
        """Return the condition to log now; `None` if this condition was the last one logged. A change that may not be
        logged now is logged later."""
        condition, before = self._condition, self._logged
        if condition is None or condition is before:
            return None
        if (before, condition) == (LinkCondition.FOREIGN, LinkCondition.UP):
            self._logged = condition
            return None
        if len(self._line_times) == MAX_LINES and now - self._line_times[0] < LINES_WINDOW:
            return None
        self._line_times.append(now)
        self._logged = condition
        return condition
