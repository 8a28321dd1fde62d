"""A burst over two processes, its way into the ledger and their exchanges, in every possible order of steps: no unit
counts twice, no threshold is reported too early, and after both have read the ledger they agree."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import TypeAlias

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.limit import Period, ScopeBudget, Unit
from proxy.limits.shared_spending import ClaimState, SharedSpending
from proxy.limits.spending import SpendingCounter, SpendingNotes, rules_of
from proxy.shared_state.lease import LeaseGrant, SpendingRequest
from tests.proxy.limits.kit.simulation import BERLIN, WALL
from tests.proxy.limits.kit.still_keeper import StillKeeper
from tests.support.looped import looped
from tests.support.not_none import not_none

NOW = 100.0
COUNTED = (*SpendingCounter.__slots__, *SharedSpending.__slots__)
KEPT = [name for name in COUNTED if name not in {"_claim", "_keeper", "_notes", "clock", "rules", "scope"}]

Rows: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The units that the requests of each process use. They reserve as many, and end within one tick of their process."""

State: TypeAlias = tuple[tuple[tuple[object, ...], ...], tuple[tuple[object, ...], ...], tuple[object, ...]]


class Burst:
    """Two processes with their ledger and coordinator. Each process reads the ledger once and exchanges once; other
    steps may occur while the first one does. `ended` and `loaded` count the rows of each process, `read` is the part
    of the ledger that the first has read and not used yet, `ask` and `grant` are its exchange in flight. `left` are
    the steps that may occur once."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.all = rows, sum(map(sum, rows))
        self.agreed = ScopeBudget(Unit.TOKENS, self.all, Period.DAY, 1.0, "route", "cheap")
        self.never = ScopeBudget(Unit.TOKENS, self.all + 1, Period.DAY, 1.0, "warn")
        rules, clock = rules_of([self.agreed, self.never]), PeriodClock(Period.DAY, BERLIN, WALL)
        self.every = [SharedSpending("team t", rules, clock, SpendingNotes(1), StillKeeper()) for _ in rows]
        for each, its in zip(self.every, rows, strict=True):
            each.take(sum(its), NOW, WALL)
            each.next_request(NOW)
        self.counter = LeaseCounter()
        self.counter.exchange("nobody", [not_none(self.every[0].next_request(NOW))], NOW * 1e6)
        (self.told,) = self.counter._keys.values()
        self.told.amounts.clear()
        self.ended: tuple[int, ...] = (0, 0)
        self.loaded: tuple[int, ...] = (0, 0)
        self.left = frozenset({"look", "ask", "read", "exchange"})
        self.read: tuple[int, int] | None = None
        self.asked: SpendingRequest | None = None
        self.grant: LeaseGrant | None = None

    @property
    def settled(self) -> int:
        return sum(sum(its[:count]) for its, count in zip(self.rows, self.ended, strict=True))

    def steps(self) -> Iterator[Callable[[], None]]:
        """Yield the possible next steps."""
        for number, its in enumerate(self.rows):
            if self.ended[number] < len(its):
                yield partial(self.end, number)
            if self.loaded[number] < self.ended[number]:
                yield partial(self.load, number)
        for name in self.left:
            yield partial(self.once, name)
        if self.read is not None:
            yield self.use
        if self.asked is not None:
            yield self.count
        if self.grant is not None:
            yield self.tell

    def end(self, number: int) -> None:
        units = self.rows[number][self.ended[number]]
        self.every[number].settle(units, units)
        self.ended = _raised(self.ended, number)

    def load(self, number: int) -> None:
        self.loaded = _raised(self.loaded, number)

    def once(self, name: str) -> None:
        self.left -= {name}
        match name:
            case "look":
                self.read = self.ledger(0)
            case "ask":
                self.asked = self.every[0].next_request(NOW)
            case "read":
                self.take_in(1, *self.ledger(1))
            case _:
                self.every[1].apply_grant(self.counted(1, not_none(self.every[1].next_request(NOW))), NOW)

    def use(self) -> None:
        self.take_in(0, *not_none(self.read))
        self.read = None

    def count(self) -> None:
        self.grant = self.counted(0, not_none(self.asked))
        self.asked = None

    def tell(self) -> None:
        self.every[0].apply_grant(self.grant, NOW)
        self.grant = None

    def ledger(self, number: int) -> tuple[int, int]:
        """Return the data that a process reads: the sum, and how many of its own rows are in it."""
        total = sum(sum(its[:count]) for its, count in zip(self.rows, self.loaded, strict=True))
        return total, self.loaded[number]

    def take_in(self, number: int, total: int, own: int) -> None:
        each = self.every[number]
        each.load(each.clock.start, total, int(own == len(self.rows[number])), int(own > 0))

    def counted(self, number: int, ask: SpendingRequest) -> LeaseGrant:
        return self.counter.exchange(f"p{number}", [ask], NOW * 1e6)[0]

    def state(self) -> State:
        """Return all data that changes."""
        counters = tuple(tuple(_frozen(getattr(each, name)) for name in KEPT) for each in self.every)
        claims = tuple(tuple(getattr(each._claim, name) for name in ClaimState.__slots__) for each in self.every)
        told = tuple(self.told.amounts.items())
        return counters, claims, (self.ended, self.loaded, self.left, self.read, self.asked, self.grant, told)

    def go_to(self, state: State) -> None:
        """Set everything to a state."""
        counters, claims, around = state
        for each, values, claim in zip(self.every, counters, claims, strict=True):
            for name, value in zip(KEPT, values, strict=True):
                setattr(each, name, list(value) if name == "_older" and isinstance(value, tuple) else value)
            for name, value in zip(ClaimState.__slots__, claim, strict=True):
                setattr(each._claim, name, value)
        names = ("ended", "loaded", "left", "read", "asked", "grant")
        for name, value in zip(names, around[:-1], strict=True):
            setattr(self, name, value)
        self.told.amounts.clear()
        self.told.amounts.update(around[-1])  # type: ignore[call-overload]  # as `state` made it

    def check(self) -> None:
        for each in self.every:
            assert each.used <= each.settled <= self.settled
            assert each.spent <= self.all  # unsettled units are reserved
            assert self.never not in each.reached
            assert self.agreed not in each.reached or self.settled == self.all
        if all(each._base == self.all for each in self.every):
            assert all(each.spent == each.settled == self.all for each in self.every)
            assert all(each.reached == (self.agreed,) for each in self.every)


def _raised(counts: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(count + (at == number) for at, count in enumerate(counts))


def _frozen(value: object) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


@looped("rows", [((5,), (6,)), ((5, 4), ()), ((), (5, 4))])
def test_no_order_counts_a_unit_twice_and_all_processes_agree(rows: Rows) -> None:
    burst = Burst(rows)
    first = burst.state()
    seen, ahead = {first}, deque([first])
    while ahead:
        state = ahead.popleft()
        burst.go_to(state)
        for number in range(len(list(burst.steps()))):
            burst.go_to(state)
            list(burst.steps())[number]()
            burst.check()
            if (after := burst.state()) not in seen:
                seen.add(after)
                ahead.append(after)
    assert len(seen) > 100
