"""How many of a deployment's recent attempts succeeded and failed, in constant memory."""

from collections import deque

SLOTS = 6
"""Slots of the window, which are forgotten one at a time."""


class Outcomes:
    """Counts over the last `window` seconds, or one slot less. A success costs one comparison and one addition."""

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
            self._turn(now)
        self._now[0] += 1

    def failed(self, now: float) -> tuple[int, int]:
        """Count a failure, and return the attempts within the window and how many of them failed."""
        if now >= self._ends:
            self._turn(now)
        self._now[1] += 1
        # Only slots that began within the window count.
        since = now - (SLOTS - 1) * self._width
        kept = [counts for ends, counts in self._slots if ends > since]
        failed = sum(counts[1] for counts in kept)
        return failed + sum(counts[0] for counts in kept), failed

    def _turn(self, now: float) -> None:
        self._now = [0, 0]
        self._ends = now + self._width
        self._slots.append((self._ends, self._now))
