"""Counts malformed requests on the public listener, and reports their number at most once a second.

It stores none of their bytes, since any client can send any bytes at any rate.
"""

from collections import Counter
from collections.abc import Callable, Mapping

Report = Callable[[Mapping[int, int]], None]
"""Receives the numbers of responses since its last call, by status."""


class MalformedRequests:
    """Counts responses to malformed requests. `report` is called only from `look`, and only with counts."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._counts: Counter[int] = Counter()

    def count(self, status: int) -> None:
        """Count one response with this status."""
        self._counts[status] += 1

    def look(self) -> None:
        """Report the counts. Called every second."""
        if self._counts:
            counts, self._counts = self._counts, Counter()
            self._report(counts)
