"""The numbers of a deployment's recent successes and failures, in constant memory, and the recent outcomes of each
team.

The outcomes of the teams decide whether one team's failures count for all. Teams send different requests, and some
failures are due to the request: a payload that an engine cannot process, a file that only its sender may read. Pure:
time is an argument.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

from providers.failure import Failure, FailureKind

_CERTAIN = frozenset({FailureKind.CONNECT, FailureKind.TLS})
"""Failures that no request can cause, because it had not been sent."""


class Ruling(Enum):
    """The teams for which a failure counts."""

    ALL = auto()  # no request can cause the failure, or another team's latest attempt failed too
    TEAM = auto()  # no other team has called the deployment lately
    NOBODY = auto()  # the latest attempts of all other teams succeeded


@dataclass(slots=True, eq=False)
class Witnesses:
    """The latest outcome of each team's attempts, valid for `window` seconds. A team without a name stands for all
    clients."""

    _window: float
    _latest: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def succeeded(self, team: str, now: float) -> None:
        """Note a success of a team."""
        self._latest[team] = (now, True)

    def failed(self, team: str, failure: Failure, now: float) -> Ruling:
        """Note a failure of a team, and return the teams for which it counts."""
        since = now - self._window
        others = {succeeded for other, (at, succeeded) in self._latest.items() if other != team and at >= since}
        self._latest[team] = (now, False)
        if not team or failure.kind in _CERTAIN or False in others:
            return Ruling.ALL
        return Ruling.NOBODY if others else Ruling.TEAM


SLOTS = 6
"""The number of slots of the window; the oldest slot is dropped when its time is over."""


class Outcomes:
    """The numbers of successes and failures in the last `window` seconds, or in a period that is shorter by at most one
    slot. A success costs one comparison and one addition."""

    __slots__ = ("_ends", "_now", "_slots", "_width")

    def __init__(self, window: float) -> None:
        self._width = window / SLOTS
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._now = [0, 0]
        self._slots: deque[tuple[float, list[int]]] = deque(maxlen=SLOTS)
        self._ends = float("-inf")

    def succeeded(self, now: float) -> None:
        """Count a success."""
        if now >= self._ends:
            self._start_slot(now)
        self._now[0] += 1

    def failed(self, now: float) -> tuple[int, int]:
        """Count a failure. Return the number of attempts within the window, and how many of them failed."""
        if now >= self._ends:
            self._start_slot(now)
        self._now[1] += 1
        # Only slots that began within the window count.
        since = now - (SLOTS - 1) * self._width
        recent = [counts for ends, counts in self._slots if ends > since]
        failed = sum(counts[1] for counts in recent)
        return failed + sum(counts[0] for counts in recent), failed

    def _start_slot(self, now: float) -> None:
        self._now = [0, 0]
        self._ends = now + self._width
        self._slots.append((self._ends, self._now))
