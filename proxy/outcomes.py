"""How many of a deployment's recent tries went well and how many did not.

Never decides anything, and never holds more than a few numbers however many tries there are.
"""

from collections import deque

SLOTS = 6
"""Pieces the window is counted in: what is forgotten is forgotten a piece at a time."""


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

    def well(self, now: float) -> None:
        """A try went well."""
        if now >= self._ends:
            self._turn(now)
        self._now[0] += 1

    def badly(self, now: float) -> tuple[int, int]:
        """A try did not; gives how many tries the window has, and how many of them failed."""
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
