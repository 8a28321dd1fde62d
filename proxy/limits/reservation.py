"""What a request holds of its limits while it runs."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from proxy.limits.concurrency import Places
from proxy.limits.gcra import LocalRate
from proxy.limits.limit_views import Exceeded, LimitView, Shown
from proxy.limits.rate_lease import RateLease
from proxy.limits.spending import SpendingCounter

PLACE: Final = 3
"""Where the places that a request takes stand among its amounts, after those of `INDEX`: it takes one of what may be
under way at once."""


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

BoundMeter: TypeAlias = tuple[int, Meter]
"""A limit with the place of its unit's amount."""


class Meters:
    """What counts for a request, by kind: each kind takes, settles and shows in its own way, and is asked in a loop of
    its own, which costs half as much as asking all in one."""

    __slots__ = ("counters", "places", "rates")

    def __init__(
        self,
        places: tuple[Places, ...],
        rates: tuple[LocalRate | RateLease, ...],
        counters: tuple[SpendingCounter, ...],
    ) -> None:
        self.places = places
        self.rates = rates
        self.counters = counters

    def __iter__(self) -> Iterator[BoundMeter]:
        for places in self.places:
            yield PLACE, places
        for rate in self.rates:
            yield rate.rule.index, rate
        for counter in self.counters:
            yield counter.rules.index, counter

    def undo(self, refused: Meter, tokens: int) -> None:
        """Put back what one request took of places and rates, in their order, before the one that refused it."""
        for places in self.places:
            if places is refused:
                return
            places.undo()
        for rate in self.rates:
            if rate is refused:
                return
            rate.undo(tokens if rate.rule.index else 1)

    def facts(self, now: float, wall: float) -> Facts:
        """Return the tightest limits of requests and of tokens: those with the fewest left."""
        requests: Shown | None = None
        tokens: Shown | None = None
        for rate in self.rates:
            shown = rate.shown(now, wall)
            if rate.rule.index:
                if tokens is None or shown < tokens:
                    tokens = shown
            elif requests is None or shown < requests:
                requests = shown
        for counter in self.counters:
            if counter.rules.told is not None and (told := counter.shown(now, wall)) is not None:
                if counter.rules.index:
                    if tokens is None or told < tokens:
                        tokens = told
                elif requests is None or told < requests:
                    requests = told
        return requests, tokens


def joined(every: Sequence[Meters]) -> Meters:
    """Return what counts for a request that several scopes limit."""
    return Meters(
        tuple([places for each in every for places in each.places]),
        tuple([rate for each in every for rate in each.rates]),
        tuple([counter for each in every for counter in each.counters]),
    )


NOTHING: Final = Meters((), (), ())
"""What counts where there is no limit."""


class Reservation:
    """What one request holds. It ends once: with what was used, or with nothing. The limits it came from may be gone
    from the table by then; `meters` are they, also after its end. `tokens` are those that are reserved."""

    __slots__ = ("_cost", "_ended", "meters", "tokens")

    def __init__(self, meters: Meters, tokens: int, cost: int | None) -> None:
        self.meters = meters
        self.tokens = tokens
        self._cost = cost
        self._ended = False

    def settle(self, tokens: int, cost: int | None) -> None:
        """End with the tokens that were used and what they cost in billionths of a USD, None for no price."""
        if self._ended:
            return
        self._ended = True
        meters, reserved = self.meters, self.tokens
        for places in meters.places:
            places.settle(1, 0)
        if tokens != reserved:  # of requests one was taken and one is used
            for rate in meters.rates:
                if rate.rule.index:
                    rate.settle(reserved, tokens)
        if meters.counters:
            before, used = (1, reserved, self._cost), (1, tokens, cost)
            for counter in meters.counters:
                index = counter.rules.index
                counter.settle(before[index], used[index])

    def release(self) -> None:
        """End as if the request had never been: nothing was sent for it."""
        if not self._ended:
            self._ended = True
            reserved = (1, self.tokens, self._cost or 0, 1)
            for index, meter in self.meters:
                meter.settle(reserved[index], 0)
