"""What came on the public listener and was no HTTP request: counted by status, told once a second at most.

Never a byte of it: anybody can send anything, as often as they like.
"""

from collections import Counter
from collections.abc import Callable, Mapping

Told = Callable[[Mapping[int, int]], None]
"""Receives how many got which status since it was last called."""


class Malformed:
    """Refusals of bytes that are no request. `told` is called from `look` alone, and only where there is news."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._counts: Counter[int] = Counter()

    def count(self, status: int) -> None:
        """One was answered with this status."""
        self._counts[status] += 1

    def look(self) -> None:
        """Called every second."""
        if self._counts:
            counts, self._counts = self._counts, Counter()
            self._told(counts)
