"""Readings of CPU and wall time of a piece of work, and the cheapest of several: pure arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU and wall time in seconds, and how many requests or chunks they bought."""

    cpu: float
    wall: float
    count: int

    @property
    def microseconds(self) -> float:
        """CPU for each."""
        return self.cpu / self.count * 1e6

    @property
    def rate(self) -> float:
        return self.count / self.wall


def cheapest(readings: Sequence[Reading]) -> Reading:
    """The reading with the least CPU each: whatever else ran on the machine can only add to it."""
    return min(readings, key=lambda reading: reading.microseconds)
