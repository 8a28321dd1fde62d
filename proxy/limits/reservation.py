"""What a request holds of its limits while it runs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from proxy.limits.limit import Unit
from proxy.limits.limit_views import Exceeded, LimitView, Shown

INDEX: Final = {Unit.REQUESTS: 0, Unit.TOKENS: 1, Unit.USD: 2}
PLACE: Final = 3
"""Where the amount of a unit stands among those that a request takes; it takes one place of what may be under way at
once. Headers speak of the first two."""


class Meter(Protocol):
    """One limit that is counted. `lacks` tests so many units, `take` takes them at the same time, `settle` corrects.

    A cost that nobody knows is None. `shown` is what headers show, None for what they do not speak of: places and
    budgets.
    """

    def lacks(self, units: int, now: float, wall: float) -> bool: ...

    def take(self, units: int, now: float, wall: float) -> None: ...

    def settle(self, reserved: int, used: int) -> None: ...

    def refused(self, units: int, now: float) -> None: ...

    def fetchable(self, now: float) -> bool: ...

    def wait(self, units: int, now: float, wall: float) -> float: ...

    def remaining(self, now: float, wall: float) -> int: ...

    def shown(self, now: float, wall: float) -> Shown | None: ...

    def full_in(self, now: float, wall: float) -> float: ...

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]: ...

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded: ...


Facts: TypeAlias = tuple[Shown | None, Shown | None]
"""What headers say of the tightest limits of requests and of tokens."""


class Reservation:
    """What one request holds. It ends once: with what was used, or with nothing. The limits it came from may be gone
    from the table by then."""

    __slots__ = ("_cost", "_ended", "_meters", "_tokens")

    def __init__(self, meters: "Sequence[BoundMeter]", tokens: int, cost: int | None) -> None:
        self._meters = meters
        self._tokens = tokens
        self._cost = cost
        self._ended = False

    def settle(self, tokens: int, cost: int | None) -> None:
        """End with the tokens that were used and what they cost in billionths of a USD, None for no price."""
        if not self._ended:
            self._ended = True
            reserved, used = (1, self._tokens, self._cost or 0, 1), (1, tokens, cost or 0, 0)
            for index, meter in self._meters:
                meter.settle(reserved[index], used[index])

    def release(self) -> None:
        """End as if the request had never been: nothing was sent for it."""
        if not self._ended:
            self._ended = True
            reserved = (1, self._tokens, self._cost or 0, 1)
            for index, meter in self._meters:
                meter.settle(reserved[index], 0)

    def facts(self, now: float, wall: float) -> Facts:
        """Return the tightest limits of requests and of tokens, those with the fewest left, also after its end."""
        return tightest(self._meters, now, wall)


BoundMeter = tuple[int, Meter]
"""A limit with the place of its unit's amount."""


def tightest(meters: Iterable[BoundMeter], now: float, wall: float) -> Facts:
    """Return the tightest limits of requests and of tokens: those with the fewest left."""
    requests: Shown | None = None
    tokens: Shown | None = None
    for index, meter in meters:
        if index > 1 or (shown := meter.shown(now, wall)) is None:
            continue
        if index == 0:
            if requests is None or shown < requests:
                requests = shown
        elif tokens is None or shown < tokens:
            tokens = shown
    return requests, tokens
