"""Spending that processes share: all together never exceed the limit, and a request that fits passes."""

import asyncio
import math
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.limit import Limits, Period, Quota, ScopeBudget, Unit
from proxy.limits.shared_spending import RETRY_AFTER, RETURNS_WAIT, SharedSpending
from proxy.limits.spending import STATEMENT_HOLDS, SpendingNotes, rules_of
from proxy.shared_state.lease import LeaseGrant
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import BERLIN, WALL, World, all_admitted, fleet, stop
from tests.proxy.limits.kit.still_keeper import StillKeeper
from tests.support.not_none import not_none

DAY = Quota(Unit.TOKENS, 1000, Period.DAY)
HUNDRED = Limits(quotas=(Quota(Unit.REQUESTS, 100, Period.DAY),))
NOW = 100.0


def spending(keeper: StillKeeper, *limits: Quota | ScopeBudget) -> SharedSpending:
    every = limits or (DAY,)
    clock = PeriodClock(every[0].period, BERLIN, WALL)
    return SharedSpending("team t", rules_of(every), clock, SpendingNotes(), keeper)


def granted_counter(keeper: StillKeeper, granted: int, level: int = 0, claimed: int = 0) -> SharedSpending:
    """Return a counter that waited for `units` and got them."""
    each = spending(keeper)
    each.add_waiting(granted)
    each.next_request(NOW)
    each.apply_grant(LeaseGrant(granted, level, 1.0, 2, 0, claimed), NOW)
    each.remove_waiting(granted)
    return each


def test_a_process_tells_what_no_ledger_holds_and_hears_the_same_of_others() -> None:
    each = granted_counter(keeper := StillKeeper(), 45)
    assert not each.needs_renewal(NOW)
    each.take(40, NOW, WALL)
    each.settle(40, 30)
    each.take(5, NOW, WALL)
    assert keeper.noted[0] == "watch"
    assert each.needs_renewal(NOW)
    ask = not_none(each.next_request(NOW))
    assert (ask.amount, ask.key) == (35, f"team t tokens day {each.clock.start}")
    each.apply_grant(LeaseGrant(0, 500.0, 1.0, 2), NOW)
    each.exchange_failed()
    assert each.spent == 535
    assert not each.may_need_renewal()
    assert each.forget_if_idle(NOW)


def test_only_what_is_claimed_passes_and_the_rest_is_fetched() -> None:
    each = granted_counter(StillKeeper(), 10)
    assert not each.lacks(10, NOW, WALL)
    assert each.lacks(11, NOW, WALL)
    assert each.fetchable(11, NOW)
    assert each.remaining(NOW, WALL) == 1000
    each.take(10, NOW, WALL)
    assert each.lacks(1, NOW, WALL)
    assert not each.fetchable(None, NOW)


def test_what_was_used_beyond_the_reservation_is_taken_from_the_claim() -> None:
    each = granted_counter(StillKeeper(), 30)
    each.take(10, NOW, WALL)
    each.settle(10, 25)
    assert each.room == 5
    each.settle(0, 50)
    assert each.room == -45
    ask = not_none(each.next_request(NOW))
    assert (ask.amount, ask.held) == (75, 0)


def test_more_than_the_whole_limit_takes_all_of_it() -> None:
    each = granted_counter(StillKeeper(), 1000)
    assert not each.lacks(5000, NOW, WALL)
    each.take(5000, NOW, WALL)
    assert (each.room, each.own) == (0, 5000)
    each.settle(5000, 20)
    assert (each.room, each.own) == (0, 20)


def test_after_a_refusal_smaller_requests_ask_at_once_and_others_for_a_while_not() -> None:
    each = spending(StillKeeper())
    each.add_waiting(500)
    each.next_request(NOW)
    each.apply_grant(LeaseGrant(0, 700.0, 1.0, 2), NOW)
    each.remove_waiting(500)
    assert not each.fetchable(500, NOW + 0.01)
    assert each.fetchable(299, NOW + 0.01)
    assert each.fetchable(500, NOW + 0.02)


def test_who_may_get_what_others_claimed_waits_for_it_and_not_for_ever() -> None:
    each = spending(StillKeeper())
    each.add_waiting(500)
    for passed in (0.0, 0.1, RETURNS_WAIT - 0.01):
        each.next_request(NOW + passed)
        each.apply_grant(LeaseGrant(0, 0.0, 1.0, 2, 0, 600.0), NOW + passed)
        assert each.awaits_returns(NOW + passed)
        assert each.fetchable(500, NOW + passed)
    assert not each.awaits_returns(NOW + RETURNS_WAIT)
    each.next_request(NOW + RETURNS_WAIT)
    each.apply_grant(LeaseGrant(0, 0.0, 1.0, 2, 0, 600.0), NOW + RETURNS_WAIT)
    assert not each.awaits_returns(NOW + RETURNS_WAIT)
    assert not each.fetchable(500, NOW + RETURNS_WAIT)


def test_a_claim_lapses_for_who_was_not_heard_of_and_another_period_has_none() -> None:
    each = granted_counter(StillKeeper(), 10)
    assert each.lacks(10, NOW + STATEMENT_HOLDS + 0.01, WALL)
    other = granted_counter(StillKeeper(), 10)
    assert other.lacks(10, NOW, float(other.clock.end))
    assert other.room == 0


def test_an_answer_of_a_period_that_is_over_counts_nothing() -> None:
    each = spending(StillKeeper())
    each.add_waiting(10)
    each.next_request(NOW)
    assert each.lacks(10, NOW, float(each.clock.end))
    each.apply_grant(LeaseGrant(10, 500.0, 1.0, 2), NOW)
    assert (each.room, each.spent) == (0, 0)


def test_other_limits_are_asked_for_again() -> None:
    each = granted_counter(StillKeeper(), 10)
    each.follow(rules_of([Quota(Unit.TOKENS, 5, Period.DAY)]), each.clock)
    assert each.room == 0
    each.follow(rules_of([ScopeBudget(Unit.TOKENS, 5, Period.DAY, 0.5, "warn")]), each.clock)
    assert not each.lacks(10**12, NOW, WALL)


def test_warnings_alone_claim_nothing() -> None:
    each = spending(StillKeeper(), ScopeBudget(Unit.TOKENS, 50, Period.DAY, 0.5, "warn"))
    assert not each.lacks(10**12, NOW, WALL)
    each.take(30, NOW, WALL)
    ask = not_none(each.next_request(NOW))
    assert (ask.amount, ask.want, ask.held) == (30, 0, 0)
    each.apply_grant(LeaseGrant(0, 30.0, 1.0, 2), NOW)
    assert (each.spent, each.room) == (60, math.inf)


def test_a_refusal_tells_what_others_have_claimed_and_to_come_back_in_a_moment() -> None:
    each = granted_counter(StillKeeper(), 10, level=900, claimed=60)
    told = each.exceeded("team t", 40, NOW, WALL)
    assert (told.used, told.elsewhere, told.wait, told.alone, told.passing) == (900, 90, RETRY_AFTER, None, True)
    spent = each.exceeded("team t", 101, NOW, WALL)
    assert (spent.elsewhere, spent.wait > RETRY_AFTER, spent.passing) == (0, True, False)


def test_a_part_too_small_for_a_request_is_not_claimed() -> None:
    each = granted_counter(StillKeeper(), 50, level=600)
    each.take(50, NOW, WALL)
    ask = not_none(each.next_request(NOW))
    assert (ask.held, ask.want) == (0, 0)
    small = granted_counter(StillKeeper(), 5, level=600)
    small.take(5, NOW, WALL)
    assert not_none(small.next_request(NOW)).want == 5


def test_who_waits_for_more_than_it_holds_gives_that_back_and_asks_for_all_at_once() -> None:
    each = granted_counter(StillKeeper(), 30)
    each.add_waiting(50)
    ask = not_none(each.next_request(NOW))
    assert (ask.held, ask.want, ask.least) == (0, 50, 50)


def test_alone_a_process_has_its_claim_and_an_equal_part_of_what_nobody_claimed() -> None:
    each = granted_counter(keeper := StillKeeper(), 100, level=300, claimed=200)
    keeper.alone = True
    assert each.lacks(201, NOW, WALL)
    assert not each.lacks(200, NOW, WALL)
    each.take(195, NOW, WALL)
    told = each.exceeded("team t", 6, NOW, WALL)
    assert (told.limit, told.used, told.alone, told.unspent, told.passing) == (1000, 495, 5, True, True)
    each.take(5, NOW, WALL)
    assert each.lacks(1, NOW + 2 * STATEMENT_HOLDS, WALL)
    assert not each.fetchable(1, NOW)
    keeper.alone = False
    each.next_request(NOW + 3 * STATEMENT_HOLDS)
    each.apply_grant(LeaseGrant(7, 0.0, 1.0, 2), NOW + 3 * STATEMENT_HOLDS)
    assert each.room == 7


def test_alone_a_process_has_again_what_requests_reserved_and_did_not_use() -> None:
    each = granted_counter(keeper := StillKeeper(), 100, level=300, claimed=200)
    each.take(80, NOW, WALL)
    keeper.alone = True
    assert not each.lacks(120, NOW, WALL)
    each.settle(80, 5)
    used = 5
    for _ in range(9):
        assert (each.own, each.room) == (used, 200 - used)
        assert not each.lacks(150, NOW, WALL)
        each.take(150, NOW, WALL)
        assert each.lacks(51, NOW, WALL)
        each.settle(150, 5)
        used += 5
    each.take(10, NOW, WALL)
    each.settle(10, 40)
    assert not each.lacks(110, NOW, WALL)
    assert each.lacks(111, NOW, WALL)


def test_who_was_alone_keeps_nothing_of_what_was_given_back_beside_what_is_granted() -> None:
    each = granted_counter(keeper := StillKeeper(), 100, level=300, claimed=200)
    keeper.alone = True
    assert not each.lacks(150, NOW, WALL)
    each.take(150, NOW, WALL)
    ask = each.next_request(NOW)
    each.settle(150, 5)
    keeper.alone = False
    each.apply_grant(LeaseGrant(7, 0.0, 1.0, 2), NOW)
    assert ask is not None
    assert (ask.amount, ask.held, each.own, each.room) == (150, 0, 5, 7)


def test_a_key_that_holds_something_else_leaves_a_process_alone() -> None:
    each = spending(StillKeeper())
    each.next_request(NOW)
    each.apply_grant(None, NOW)
    each.apply_grant(None, NOW)
    assert not each.lacks(250, NOW, WALL)
    assert each.lacks(251, NOW, WALL)


@in_virtual_time
async def test_far_from_the_limit_hardly_a_request_waits() -> None:
    processes = fleet(World(), Limits(quotas=(Quota(Unit.REQUESTS, 10**6, Period.DAY),)), 2)
    await asyncio.gather(*(each.traffic(200.0, 10.0) for each in processes))
    waits = [wait for each in processes for wait in each.waits]
    assert len(waits) == sum(each.asked for each in processes)
    assert sum(wait > 0 for wait in waits) <= 0.01 * len(waits)
    await stop(processes)


@in_virtual_time
async def test_lost_the_parts_of_all_are_no_more_than_the_limit() -> None:
    world = World()
    processes = fleet(world, HUNDRED, 4)
    for each in processes:
        assert await each.ask()
    await asyncio.sleep(3)
    world.lost = True
    await asyncio.sleep(5)
    for _ in range(50):
        await asyncio.gather(*(each.ask() for each in processes))
        await asyncio.sleep(0.5)
    assert 90 <= len(all_admitted(processes)) <= 100
    world.lost = False
    await asyncio.sleep(5)
    for _ in range(30):
        await processes[0].ask()
        await asyncio.sleep(0.1)
    assert len(all_admitted(processes)) == 100
    await stop(processes)


@dataclass(slots=True)
class Ledger:
    """A model of the ledger: a finished request is in it after it was loaded, and each process reads it at any time."""

    rows: list[tuple[int, int]] = field(default_factory=list)
    loaded: int = 0

    def read(self, number: int, each: SharedSpending, notes: SpendingNotes) -> None:
        rows = self.rows[: self.loaded]
        mark = max((at + 1 for at, row in enumerate(rows) if row[0] == number), default=0)
        each.load(each.clock.start, sum(units for _, units in rows), mark)


STEP = st.tuples(
    st.sampled_from(("ask", "ask", "ask", "end", "tell", "lose", "load", "read")),
    st.integers(0, 2),
    st.sampled_from((1, 2, 7, 30, 61)),
    st.sampled_from((0.0, 0.0, 0.05, 0.3, 1.0)),
)


class SharedModel:
    """Three processes, their coordinator and the ledger. `total` is the units that they took and used. `beyond` is
    the part of it beyond their reservations, or the part of one request's reservation beyond the whole limit."""

    def __init__(self) -> None:
        self.now = NOW
        self.total = self.beyond = 0
        self.counter, self.ledger = LeaseCounter(), Ledger()
        self.notes = [SpendingNotes() for _ in range(3)]
        rules = rules_of([Quota(Unit.TOKENS, 60, Period.DAY)])
        self.every = [
            SharedSpending("team t", rules, PeriodClock(Period.DAY, BERLIN, WALL), notes, StillKeeper())
            for notes in self.notes
        ]
        self.heard = [NOW] * 3
        self.open: list[tuple[int, int]] = []

    def exchange(self, number: int, *, answered: bool = True) -> None:
        ask = not_none(self.every[number].next_request(self.now))
        (grant,) = self.counter.exchange(f"p{number}", [ask], self.now * 1e6)
        if answered:
            self.every[number].apply_grant(grant, self.now)
        self.heard[number] = self.now

    def fetch(self, number: int, units: int) -> None:
        self.every[number].add_waiting(units)
        self.exchange(number)
        self.every[number].remove_waiting(units)

    def begin(self, number: int, units: int) -> None:
        each = self.every[number]
        if each.lacks(units, self.now, WALL) and each.fetchable(units, self.now):
            self.fetch(number, units)
        if not each.lacks(units, self.now, WALL):
            each.take(units, self.now, WALL)
            self.open.append((number, units))
            self.total += units
            self.beyond += units - min(units, 60)

    def end(self, used: int) -> None:
        if not self.open:
            return
        owner, reserved = self.open.pop(0)
        self.notes[owner].mark = len(self.ledger.rows) + 1
        self.every[owner].settle(reserved, used)
        self.ledger.rows.append((owner, used))
        self.total += used - reserved
        self.beyond += max(0, used - reserved)

    def step(self, kind: str, number: int, units: int, passed: float) -> None:
        self.now += passed
        for silent in range(3):
            if self.now - self.heard[silent] >= 0.9:  # as the keeper does
                self.exchange(silent)
        match kind:
            case "ask":
                self.begin(number, units)
            case "end":
                self.end(units)
            case "tell":
                self.exchange(number)
            case "lose":
                self.exchange(number, answered=False)
            case "load":
                self.ledger.loaded = len(self.ledger.rows)
            case _:
                self.ledger.read(number, self.every[number], self.notes[number])
        assert self.total <= 60 + self.beyond


@given(st.lists(STEP, max_size=60))
def test_all_never_took_more_than_the_limit_and_what_fits_passes(steps: list[tuple[str, int, int, float]]) -> None:
    model = SharedModel()
    for each in steps:
        model.step(*each)
    model.ledger.loaded = len(model.ledger.rows)
    for number in (0, 1, 2, 0, 1, 2):
        model.now += 1.0
        model.ledger.read(number, model.every[number], model.notes[number])
        model.exchange(number)
    left = 60 - model.total
    if left > 0:
        model.fetch(0, left)
    assert model.every[0].lacks(max(1, left), model.now, WALL) is (left <= 0)
