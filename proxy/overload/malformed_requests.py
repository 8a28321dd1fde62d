"""Counts bytes on the public listener that were no HTTP request, and reports them at most once a second.

Holds no byte of them: any client can send anything, as often as it likes.
"""

from collections import Counter
from collections.abc import Callable, Mapping

Report = Callable[[Mapping[int, int]], None]
"""Receives the number of answers by status since its last call."""


class MalformedRequests:
    """Counts answers to bytes that are no request. `report` is called only from `look`, and only with counts."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._counts: Counter[int] = Counter()

    def count(self, status: int) -> None:
        """Count one answer with this status."""
        self._counts[status] += 1

    def look(self) -> None:
        """Report what was counted. Called every second."""
        if self._counts:
            counts, self._counts = self._counts, Counter()
            self._report(counts)
