"""Readings of CPU and wall time of some work, and the cheapest of several: pure arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU and wall time in seconds, and the number of requests or chunks in that time."""

    cpu: float
    wall: float
    count: int

    @property
    def microseconds(self) -> float:
        """Return the microseconds of CPU for each unit."""
        return self.cpu / self.count * 1e6

    @property
    def rate(self) -> float:
        return self.count / self.wall


def cheapest(readings: Sequence[Reading]) -> Reading:
    """Return the reading with the least CPU for each unit. Other programs on the machine can only add to a reading."""
    return min(readings, key=lambda reading: reading.microseconds)
