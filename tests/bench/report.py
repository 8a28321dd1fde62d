"""The printed table of readings: pure arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One load on one program: CPU and wall time in seconds, and how many requests or chunks they bought."""

    cpu: float
    wall: float
    count: int

    @property
    def microseconds(self) -> float:
        """CPU per request or chunk."""
        return self.cpu / self.count * 1e6

    @property
    def rate(self) -> float:
        return self.count / self.wall


def cheapest(readings: Sequence[Reading]) -> Reading:
    """The reading with the least CPU each: whatever else ran on the machine can only add to it."""
    return min(readings, key=lambda reading: reading.microseconds)


@dataclass(frozen=True, slots=True)
class Row:
    """A measured thing: the gateway's readings, and nginx's of the same loads in the same run, if there were any."""

    name: str
    gateway: Sequence[Reading]
    nginx: Sequence[Reading]

    def line(self) -> str:
        ours = cheapest(self.gateway)
        if not self.nginx:
            return f"{self.name:<18}{ours.microseconds:>12.1f}{'-':>12}{'-':>9}{ours.rate:>12.0f}{'-':>12}"
        theirs = cheapest(self.nginx)
        ratio = ours.microseconds / theirs.microseconds
        return (
            f"{self.name:<18}{ours.microseconds:>12.1f}{theirs.microseconds:>12.1f}{ratio:>9.2f}"
            f"{ours.rate:>12.0f}{theirs.rate:>12.0f}"
        )


HEADER = f"{'CPU µs per':<18}{'gateway':>12}{'nginx':>12}{'ratio':>9}{'gateway/s':>12}{'nginx/s':>12}"


def table(rows: Sequence[Row]) -> str:
    """Return the printed table."""
    return "\n".join([HEADER, *(row.line() for row in rows)])
