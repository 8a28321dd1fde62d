"""What a request holds of its limits while it runs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from proxy.limits.limit import Unit
from proxy.limits.limit_views import Exceeded, LimitView

INDEX: Final = {Unit.REQUESTS: 0, Unit.TOKENS: 1, Unit.USD: 2}
"""Where the amount of a unit stands among the three that a request takes."""


class Meter(Protocol):
    """One limit that is counted. `lacks` tests so many units, `take` takes them at the same time, `settle` corrects.

    A cost that nobody knows is None. `shown` is what headers show, None for what they do not speak of: places and
    budgets.
    """

    def lacks(self, units: int, now: float, wall: float) -> bool: ...

    def take(self, units: int, now: float, wall: float) -> None: ...

    def settle(self, reserved: int, used: int) -> None: ...

    def refused(self, units: int) -> None: ...

    def fetchable(self, now: float) -> bool: ...

    def wait(self, units: int, now: float, wall: float) -> float: ...

    def remaining(self, now: float, wall: float) -> int: ...

    def shown(self, now: float, wall: float) -> tuple[int, int] | None: ...

    def full_in(self, now: float, wall: float) -> float: ...

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]: ...

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded: ...


class LimitFacts(NamedTuple):
    """What the headers of an answer say of one limit; `reset` is the seconds until all of it is there again."""

    limit: int
    remaining: int
    reset: float


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
        self._end(1, tokens, cost)

    def release(self) -> None:
        """End as if the request had never been: nothing was sent for it."""
        self._end(0, 0, 0)

    def facts(self, now: float, wall: float) -> tuple[LimitFacts | None, LimitFacts | None]:
        """Return the tightest limits of requests and of tokens, those with the fewest left, also after its end."""
        return tightest(self._meters, now, wall)

    def _end(self, requests: int, tokens: int, cost: int | None) -> None:
        if self._ended or not self._meters:
            return
        self._ended = True
        reserved = (1, self._tokens, self._cost or 0)
        used = (requests, tokens, cost or 0)
        for index, meter in self._meters:
            meter.settle(reserved[index], used[index])


BoundMeter = tuple[int, Meter]
"""A limit with the place of its unit's amount."""


def tightest(meters: Iterable[BoundMeter], now: float, wall: float) -> tuple[LimitFacts | None, LimitFacts | None]:
    """Return the tightest limits of requests and of tokens: those with the fewest left."""
    requests: tuple[tuple[int, int], Meter] | None = None
    tokens: tuple[tuple[int, int], Meter] | None = None
    for index, meter in meters:
        if (shown := meter.shown(now, wall)) is None:
            continue
        if index == 0:
            if requests is None or shown < requests[0]:
                requests = shown, meter
        elif tokens is None or shown < tokens[0]:
            tokens = shown, meter
    return _facts(requests, now, wall), _facts(tokens, now, wall)


def _facts(found: tuple[tuple[int, int], Meter] | None, now: float, wall: float) -> LimitFacts | None:
    if found is None:
        return None
    (left, limit), meter = found
    return LimitFacts(limit, left, meter.full_in(now, wall))
