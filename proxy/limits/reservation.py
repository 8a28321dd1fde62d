"""The units that a request holds of its limits while it runs."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeAlias, cast

from proxy.limits.concurrency import Slots
from proxy.limits.gcra import LocalRate
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import INDEX, Unit
from proxy.limits.limit_views import Exceeded, HeaderLimit, LimitView
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingCounter

SLOT_INDEX: Final = 3
"""The index of slots in the amounts of a request, after the indexes of `INDEX`. Each request takes one slot."""


class Meter(Protocol):
    """One counted limit. `lacks` tests units, `take` takes them at the same `now`, and `settle` corrects them.

    An unknown cost is `None`. `for_headers` returns `None` for slots and budgets, which headers do not show.
    """

    def lacks(self, units: int, now: float, wall: float) -> bool: ...

    def take(self, units: int, now: float, wall: float) -> None: ...

    def settle(self, reserved: int, used: int) -> None: ...

    def refused(self, units: int, now: float) -> None: ...

    def fetchable(self, units: int, now: float) -> bool: ...

    def wait(self, units: int, now: float, wall: float) -> float: ...

    def remaining(self, now: float, wall: float) -> int: ...

    def for_headers(self, now: float, wall: float) -> HeaderLimit | None: ...

    def full_in(self, now: float, wall: float) -> float: ...

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]: ...

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded: ...


HeaderFacts: TypeAlias = tuple[HeaderLimit | None, HeaderLimit | None, str, str]
"""The header values of the tightest limits of requests and of tokens, and the scopes of both."""

BoundMeter: TypeAlias = tuple[int, Meter]
"""A meter with the index of its unit's amount."""


_LOCAL: Final = (Slots, LocalRate, SpendingCounter)
"""The meters that one process counts by itself."""


class Meters:
    """The meters of a request, by kind. Each kind has its own loop, because each kind takes, settles and shows units in
    its own way. One loop over all meters would cost twice as much.

    Each admitted request runs `attempt`, `unused` and `Reservation.settle`, and method calls would be most of their
    cost. So if one process counts by itself, the common case of `Slots`, `LocalRate` and `SpendingCounter` is written
    inline there, and only other cases call them. A test compares both ways.

    `hold` computes these facts once, in place of the loops that would compute them for each request:

    - `leased`: whether other processes count too. Then all limits of a process are leased, otherwise none.
    - `local_rates`: the rates if they are not leased. `token_rates` are the ones that a request may settle with other
      units than it took. `shared`: the counters if they are leased.
    - `dated`: whether headers show a calendar period. Its remaining time changes with each response.
    - `priced`: whether a counter counts USD.
    - `full_lines`: the header lines while nothing is used of any limit, `None` until they are written.
    """

    __slots__ = (
        "counters",
        "dated",
        "full_lines",
        "leased",
        "local_rates",
        "priced",
        "rates",
        "shared",
        "slots",
        "token_rates",
    )

    def __init__(
        self,
        slots: tuple[Slots, ...],
        rates: tuple[LocalRate | LeasedRate, ...],
        counters: tuple[SpendingCounter, ...],
    ) -> None:
        self.hold(slots, rates, counters)

    def hold(
        self,
        slots: tuple[Slots, ...],
        rates: tuple[LocalRate | LeasedRate, ...],
        counters: tuple[SpendingCounter, ...],
    ) -> None:
        """Use these meters."""
        self.slots = slots
        self.rates = rates
        self.counters = counters
        self.leased = any([type(meter) not in _LOCAL for _, meter in self])
        shared = tuple([each for each in counters if type(each) is SharedSpending])
        self.shared = cast(tuple[SharedSpending, ...], counters) if shared == counters else shared
        self.local_rates = () if self.leased else tuple([rate for rate in rates if type(rate) is LocalRate])
        self.token_rates = tuple([rate for rate in self.local_rates if rate.rule.index])
        self.dated = any([counter.rules.quota_amount is not None for counter in counters])
        self.priced = any([counter.rules.index == INDEX[Unit.USD] for counter in counters])
        self.full_lines: str | None = None

    def __iter__(self) -> Iterator[BoundMeter]:
        for slots in self.slots:
            yield SLOT_INDEX, slots
        for rate in self.rates:
            yield rate.rule.index, rate
        for counter in self.counters:
            yield counter.rules.index, counter

    def attempt(self, tokens: int, cost: int | None, now: float, wall: float) -> bool:
        """Take the units of one request from all meters or from none, and return whether all had them. Calendar
        counters are tested first and taken last, because taking may reach and report a step."""
        if self.leased:
            return self._attempt_leased(tokens, cost, now, wall)
        units, counters = (1, tokens, cost), self.counters
        for counter in counters:  # As `SpendingCounter.lacks` without statements of others.
            rules = counter.rules
            amount = units[rules.index]
            if (amount is None or counter.spent + amount > rules.most or wall >= counter.ends) and counter.lacks(
                amount, now, wall
            ):
                return False
        for slots in self.slots:
            if slots.used >= slots.capacity:
                self.undo(slots, tokens)
                return False
            slots.used += 1
        for rate in self.local_rates:
            rule = rate.rule
            if rate.arrival <= now:  # As `LocalRate.attempt`: one request never exceeds `most`.
                taken = (tokens if tokens < rule.most else rule.most) if rule.index else 1
                rate.arrival = now + taken * rule.interval
            elif not rate.attempt(tokens if rule.index else 1, now, wall):
                self.undo(rate, tokens)
                return False
        for counter in counters:
            counter.take(units[counter.rules.index], now, wall)
        return True

    def _attempt_leased(self, tokens: int, cost: int | None, now: float, wall: float) -> bool:
        """Do the same for leases. Their methods are called, because more may be in doubt."""
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
        for slots in self.slots:
            if not slots.attempt():
                self.undo(slots, tokens)
                return False
        for rate in self.rates:
            if not rate.attempt(tokens if rate.rule.index else 1, now, wall):
                self.undo(rate, tokens)
                return False
        for counter in counters:
            counter.take(units[counter.rules.index], now, wall)
        return True

    def undo(self, refused: Meter, tokens: int) -> None:
        """Give back the units of one request that the slots and rates before `refused` had given, in their order."""
        for slots in self.slots:
            if slots is refused:
                return
            slots.undo()
        for rate in self.rates:
            if rate is refused:
                return
            rate.undo(tokens if rate.rule.index else 1)

    def unused(self, now: float) -> bool:
        """Return whether every limit that headers show is unused, so that each response has the same header lines."""
        if self.dated:
            return False
        if self.leased:
            return all([rate.for_headers(now, 0.0) is rate.rule.full for rate in self.rates])
        for rate in self.local_rates:  # noqa: SIM110 - `all` with a generator costs three times as much
            if rate.arrival > now:
                return False
        return True

    def facts(self, now: float, wall: float) -> HeaderFacts:
        """Return the tightest limit of requests and the tightest limit of tokens: the limits with the fewest units
        left."""
        requests: HeaderLimit | None = None
        tokens: HeaderLimit | None = None
        of_requests = of_tokens = ""
        for rate in self.rates:
            shown = rate.for_headers(now, wall)
            if rate.rule.index:
                if tokens is None or shown < tokens:
                    tokens, of_tokens = shown, rate.scope
            elif requests is None or shown < requests:
                requests, of_requests = shown, rate.scope
        for counter in self.counters if self.dated else ():
            if (header_values := counter.for_headers(now, wall)) is not None:
                if counter.rules.index:
                    if tokens is None or header_values < tokens:
                        tokens, of_tokens = header_values, counter.scope
                elif requests is None or header_values < requests:
                    requests, of_requests = header_values, counter.scope
        return requests, tokens, of_requests, of_tokens


def join_meters(every: Sequence[Meters]) -> Meters:
    """Return the joined meters of several scopes that limit one request."""
    return Meters(
        tuple([slots for each in every for slots in each.slots]),
        tuple([rate for each in every for rate in each.rates]),
        tuple([counter for each in every for counter in each.counters]),
    )


NO_METERS: Final = Meters((), (), ())
"""The meters of a request without limits."""


class Reservation:
    """The units that one request holds. A reservation ends once, by `settle` or `release`. The configuration may no
    longer have the limits by then, but `meters` stays the same, also after the end. `tokens` are the reserved
    tokens."""

    __slots__ = ("_cost", "ended", "meters", "tokens")

    def __init__(self, meters: Meters, tokens: int, cost: int | None) -> None:
        self.meters = meters
        self.tokens = tokens
        self._cost = cost
        self.ended = False

    @property
    def priced(self) -> bool:
        """Whether the cost counts for one of its limits."""
        return self.meters.priced

    def settle(self, tokens: int, cost: int | None) -> None:
        """End with the used tokens and their cost in billionths of a USD, `None` if there is no price."""
        if self.ended:
            return
        self.ended = True
        meters, reserved = self.meters, self.tokens
        if meters.leased:
            self._settle_leases(tokens)
        else:
            for slots in meters.slots:  # As `Slots.settle`.
                slots.used -= 1
                if slots.freed is not None:
                    slots.freed()
            if tokens != reserved:  # A request takes and uses exactly one request.
                for rate in meters.token_rates:
                    rule = rate.rule
                    if reserved < rule.most > tokens:  # As `LocalRate.settle`.
                        rate.arrival += (tokens - reserved) * rule.interval
                    else:
                        rate.settle(reserved, tokens)
        if meters.counters:
            before, used = (1, reserved, self._cost), (1, tokens, cost)
            for counter in meters.counters:
                index = counter.rules.index
                counter.settle(before[index], used[index])

    def _settle_leases(self, tokens: int) -> None:
        for slots in self.meters.slots:
            slots.settle(1, 0)
        for rate in self.meters.rates:
            if rate.rule.index:
                rate.settle(self.tokens, tokens)

    def release(self) -> None:
        """End as if the request had not existed, because nothing was sent for it."""
        if not self.ended:
            self.ended = True
            reserved = (1, self.tokens, self._cost or 0, 1)
            for index, meter in self.meters:
                meter.settle(reserved[index], 0)
