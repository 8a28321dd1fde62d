"""What a request holds of its limits while it runs."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeAlias, cast

from proxy.limits.concurrency import Places
from proxy.limits.gcra import LocalRate
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import INDEX, Unit
from proxy.limits.limit_views import Exceeded, LimitView, Shown
from proxy.limits.shared_spending import SharedSpending
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

    def fetchable(self, units: int, now: float) -> bool: ...

    def wait(self, units: int, now: float, wall: float) -> float: ...

    def remaining(self, now: float, wall: float) -> int: ...

    def shown(self, now: float, wall: float) -> Shown | None: ...

    def full_in(self, now: float, wall: float) -> float: ...

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]: ...

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded: ...


Facts: TypeAlias = tuple[Shown | None, Shown | None, str, str]
"""What headers say of the tightest limits of requests and of tokens, and the scopes of both."""

BoundMeter: TypeAlias = tuple[int, Meter]
"""A limit with the place of its unit's amount."""


_LOCAL: Final = (Places, LocalRate, SpendingCounter)
"""What a process counts by itself."""


class Meters:
    """What counts for a request, by kind: each kind takes, settles and shows in its own way, and is asked in a loop of
    its own, which costs half as much as asking all in one.

    Each good request passes `attempt`, `unused` and `Reservation.settle`, where calls would be most of the cost. So
    where one process counts by itself, what `Places`, `LocalRate` and `SpendingCounter` do is written out there, as it
    would end in the ordinary case; all else is asked of them. A test compares both ways.

    What these loops would find out anew for each request is found out once, in `hold`: `leased`, whether other
    processes count too (then all of a process's limits are leased, else none is); `local_rates`, the rates where they
    do not, `shared`, the counters where they do, and `token_rates`, those of the rates that a request may leave with
    other units than it took; `dated`, whether headers speak of a period, whose end comes closer all the time; `priced`,
    whether a counter counts USD. `full_lines` are those of a head where nothing is used of any limit, None until they
    are written.
    """

    __slots__ = (
        "counters",
        "dated",
        "full_lines",
        "leased",
        "local_rates",
        "places",
        "priced",
        "rates",
        "shared",
        "token_rates",
    )

    def __init__(
        self,
        places: tuple[Places, ...],
        rates: tuple[LocalRate | LeasedRate, ...],
        counters: tuple[SpendingCounter, ...],
    ) -> None:
        self.hold(places, rates, counters)

    def hold(
        self,
        places: tuple[Places, ...],
        rates: tuple[LocalRate | LeasedRate, ...],
        counters: tuple[SpendingCounter, ...],
    ) -> None:
        """Count by these."""
        self.places = places
        self.rates = rates
        self.counters = counters
        self.leased = any([type(meter) not in _LOCAL for _, meter in self])
        shared = tuple([each for each in counters if type(each) is SharedSpending])
        self.shared = cast(tuple[SharedSpending, ...], counters) if shared == counters else shared  # nearly always
        self.local_rates = () if self.leased else tuple([rate for rate in rates if type(rate) is LocalRate])
        self.token_rates = tuple([rate for rate in self.local_rates if rate.rule.index])
        self.dated = any([counter.rules.told is not None for counter in counters])
        self.priced = any([counter.rules.index == INDEX[Unit.USD] for counter in counters])
        self.full_lines: str | None = None

    def __iter__(self) -> Iterator[BoundMeter]:
        for places in self.places:
            yield PLACE, places
        for rate in self.rates:
            yield rate.rule.index, rate
        for counter in self.counters:
            yield counter.rules.index, counter

    def attempt(self, tokens: int, cost: int | None, now: float, wall: float) -> bool:
        """Take what one request takes of all, or nothing, and return whether all had it. What is counted by the
        calendar is tested first and taken last, since its steps are told when they are reached."""
        if self.leased:
            return self._attempt_leased(tokens, cost, now, wall)
        units, counters = (1, tokens, cost), self.counters
        for counter in counters:  # as SpendingCounter.lacks, where nobody else has a word
            rules = counter.rules
            amount = units[rules.index]
            if (amount is None or counter.spent + amount > rules.most or wall >= counter.ends) and counter.lacks(
                amount, now, wall
            ):
                return False
        for places in self.places:
            if places.used >= places.capacity:
                self.undo(places, tokens)
                return False
            places.used += 1
        for rate in self.local_rates:
            rule = rate.rule
            if rate.arrival <= now:  # as LocalRate.attempt; one request is never beyond `most`
                taken = (tokens if tokens < rule.most else rule.most) if rule.index else 1
                rate.arrival = now + taken * rule.interval
            elif not rate.attempt(tokens if rule.index else 1, now, wall):
                self.undo(rate, tokens)
                return False
        for counter in counters:
            counter.take(units[counter.rules.index], now, wall)
        return True

    def _attempt_leased(self, tokens: int, cost: int | None, now: float, wall: float) -> bool:
        """Do the same where other processes count too: leases are asked, since much may be in doubt."""
        units, counters = (1, tokens, cost), self.shared
        for counter in counters:
            rules = counter.rules
            amount = units[rules.index]
            if (
                amount is None
                or amount > counter.room
                or counter.spent + amount > rules.most
                or wall >= counter.ends
                or now > counter.others_until
            ) and counter.lacks(amount, now, wall):
                return False
        for places in self.places:
            if not places.attempt():
                self.undo(places, tokens)
                return False
        for rate in self.rates:
            if not rate.attempt(tokens if rate.rule.index else 1, now, wall):
                self.undo(rate, tokens)
                return False
        for counter in counters:
            counter.take(units[counter.rules.index], now, wall)
        return True

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

    def unused(self, now: float) -> bool:
        """Return whether all that headers speak of is there, so that each answer has the same lines of them."""
        if self.dated:
            return False
        if self.leased:
            return all([rate.shown(now, 0.0) is rate.rule.full for rate in self.rates])
        for rate in self.local_rates:  # noqa: SIM110 - `all` with a generator costs three times as much
            if rate.arrival > now:
                return False
        return True

    def facts(self, now: float, wall: float) -> Facts:
        """Return the tightest limits of requests and of tokens: those with the fewest left."""
        requests: Shown | None = None
        tokens: Shown | None = None
        of_requests = of_tokens = ""
        for rate in self.rates:
            shown = rate.shown(now, wall)
            if rate.rule.index:
                if tokens is None or shown < tokens:
                    tokens, of_tokens = shown, rate.scope
            elif requests is None or shown < requests:
                requests, of_requests = shown, rate.scope
        for counter in self.counters if self.dated else ():
            if (told := counter.shown(now, wall)) is not None:
                if counter.rules.index:
                    if tokens is None or told < tokens:
                        tokens, of_tokens = told, counter.scope
                elif requests is None or told < requests:
                    requests, of_requests = told, counter.scope
        return requests, tokens, of_requests, of_tokens


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
    from the table by then; `meters` are they, also after its end. `tokens` are those that are reserved, `ended` says
    that it has ended."""

    __slots__ = ("_cost", "ended", "meters", "tokens")

    def __init__(self, meters: Meters, tokens: int, cost: int | None) -> None:
        self.meters = meters
        self.tokens = tokens
        self._cost = cost
        self.ended = False

    @property
    def priced(self) -> bool:
        """Whether what it costs counts for one of its limits."""
        return self.meters.priced

    def settle(self, tokens: int, cost: int | None) -> None:
        """End with the tokens that were used and what they cost in billionths of a USD, None for no price."""
        if self.ended:
            return
        self.ended = True
        meters, reserved = self.meters, self.tokens
        if meters.leased:
            self._settle_leases(tokens)
        else:
            for places in meters.places:  # as Places.settle
                places.used -= 1
                if places.freed is not None:
                    places.freed()
            if tokens != reserved:  # of requests one was taken and one is used
                for rate in meters.token_rates:
                    rule = rate.rule
                    if reserved < rule.most > tokens:  # as LocalRate.settle
                        rate.arrival += (tokens - reserved) * rule.interval
                    else:
                        rate.settle(reserved, tokens)
        if meters.counters:
            before, used = (1, reserved, self._cost), (1, tokens, cost)
            for counter in meters.counters:
                index = counter.rules.index
                counter.settle(before[index], used[index])

    def _settle_leases(self, tokens: int) -> None:
        for places in self.meters.places:
            places.settle(1, 0)
        for rate in self.meters.rates:
            if rate.rule.index:
                rate.settle(self.tokens, tokens)

    def release(self) -> None:
        """End as if the request had never been: nothing was sent for it."""
        if not self.ended:
            self.ended = True
            reserved = (1, self.tokens, self._cost or 0, 1)
            for index, meter in self.meters:
                meter.settle(reserved[index], 0)
