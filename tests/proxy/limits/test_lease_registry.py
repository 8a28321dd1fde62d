"""Processes that share a limit, in virtual time: how exactly they keep it, how fairly they divide it, and during
failures."""

import asyncio
import gc
import logging
import time
import tracemalloc
from collections.abc import Sequence
from datetime import UTC

import pytest

from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.leased_rate import HOLD_SECONDS
from proxy.limits.limit import NANO, Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.reservation import Reservation
from proxy.shared_state.lease import MAX_ENTRIES, LeaseGrant, LeaseRequest, RateRequest
from proxy.shared_state.lease_keeper import GONE_SECONDS
from proxy.shared_state.membership import MEMBERSHIP_KEY
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import (
    EVEN,
    UNEVEN,
    WALL,
    SimulatedProcess,
    World,
    all_admitted,
    excess,
    fleet,
    quantile,
    run_traffic,
    stop,
    within,
)
from tests.support.looped import looped
from tests.support.nightly import some

SHARP = Limits((Rate(Unit.REQUESTS, 60_000, Period.MINUTE, 1000),))
"""1,000 a second, in bursts of 1,000."""

CALM = Limits((Rate(Unit.REQUESTS, 18_000, Period.MINUTE, 300),))
"""300 a second, for tests that accept a deviation of a few percent."""


@pytest.mark.parametrize("weights", [EVEN, UNEVEN], ids=["even", "uneven"])
@in_virtual_time
async def test_above_the_limit_all_together_get_exactly_it(weights: Sequence[float]) -> None:
    world = World()
    processes = fleet(world, SHARP)
    await run_traffic(processes, 1500, 6, weights)
    await stop(processes)
    admitted = all_admitted(processes)
    assert within(admitted, 3, 6) == pytest.approx(3000, rel=0.01)
    assert excess(admitted, 1000, 1000) <= 1000 * HOLD_SECONDS / 50
    assert world.calls / 6 < 1000
    assert quantile([wait for each in processes for wait in each.refusals], 0.99) == 0
    got = [len(each.admitted) / each.asked for each in processes]
    assert min(got) > 0.5
    if weights is EVEN:
        assert max(got) - min(got) < 0.15


@pytest.mark.parametrize("late", [0.02, 0.5])
@in_virtual_time
async def test_late_answers_let_no_more_pass_since_the_beginning_than_the_limit(late: float) -> None:
    processes = fleet(World(late=late), CALM, 4)
    await run_traffic(processes, 450, 6)
    await stop(processes)
    admitted = all_admitted(processes)
    for number, (at, _) in enumerate(admitted):
        assert number + 1 <= 300 * (1 + at) + 1
    assert len(admitted) > 300 * 0.8 * (1 + 6)


@pytest.mark.parametrize("weights", [EVEN, UNEVEN], ids=["even", "uneven"])
@in_virtual_time
async def test_below_the_limit_nobody_waits_and_nobody_is_refused(weights: Sequence[float]) -> None:
    processes = fleet(World(), SHARP)
    await run_traffic(processes, 900, 5, weights)
    await stop(processes)
    assert sum(len(each.refusals) for each in processes) == 0
    assert quantile([wait for each in processes for wait in each.waits], 0.99) == 0


@in_virtual_time
async def test_a_limit_below_one_for_each_process_is_kept_too() -> None:
    processes = fleet(World(), Limits((Rate(Unit.REQUESTS, 60, Period.MINUTE, 30),)))
    await run_traffic(processes, 3, 120)
    await stop(processes)
    admitted = all_admitted(processes)
    assert within(admitted, 60, 120) == pytest.approx(60, abs=2)
    assert excess(admitted, 30, 1) <= 1
    assert quantile([wait for each in processes for wait in each.waits], 0.99) < 0.003


@in_virtual_time
async def test_tokens_of_large_requests_are_shared_without_being_hoarded() -> None:
    processes = fleet(World(), Limits((Rate(Unit.TOKENS, 1_000_000, Period.MINUTE, 1_000_000),)))
    sizes = (500, 2000, 8000)
    await asyncio.gather(*(each.traffic(1.2, 180, sizes) for each in processes))
    await stop(processes)
    admitted = all_admitted(processes)
    per_second = 1_000_000 / 60
    assert excess(admitted, 1_000_000, per_second) <= per_second * HOLD_SECONDS
    assert within(admitted, 120, 180) == pytest.approx(1_000_000, rel=0.02)
    assert {size for _, size in admitted if _ > 120} == set(sizes)


@in_virtual_time
async def test_lost_each_goes_on_with_its_share_and_the_sum_stays_at_the_limit() -> None:
    world = World()
    processes = fleet(world, CALM)
    await run_traffic(processes, 450, 4, UNEVEN)
    world.lost = True
    await run_traffic(processes, 450, 6, UNEVEN)
    assert all(each.registry.alone for each in processes)
    world.lost = False
    await run_traffic(processes, 450, 12, UNEVEN)
    assert not any(each.registry.alone for each in processes)
    await stop(processes)
    admitted = all_admitted(processes)
    assert within(admitted, 6, 10) == pytest.approx(1200, rel=0.15)
    assert within(admitted, 6, 10) <= 1200 * 1.03
    assert within(admitted, 18, 22) == pytest.approx(1200, rel=0.03)
    assert excess(admitted, 300, 300) <= 40


@in_virtual_time
async def test_a_process_that_starts_alone_takes_its_part_and_no_more() -> None:
    world = World(lost=True)
    processes = fleet(world, CALM)
    await run_traffic(processes, 600, 4)
    await stop(processes)
    admitted = all_admitted(processes)
    assert excess(admitted, 300, 300) <= 10
    assert within(admitted, 2, 4) == pytest.approx(600, rel=0.03)


@in_virtual_time
async def test_a_restart_while_it_is_lost_goes_on_with_the_last_division() -> None:
    world = World()
    processes = fleet(world, CALM)
    await run_traffic(processes, 450, 4, UNEVEN)
    shares = [dict(each.registry.shares()) for each in processes]
    await stop(processes)
    world.lost = True
    again = [
        SimulatedProcess(world, each.name, 8, each.limits, shares=share)
        for each, share in zip(processes, shares, strict=True)
    ]
    begin = asyncio.get_running_loop().time()
    await run_traffic(again, 450, 6, UNEVEN)
    await stop(again)
    assert len(again[0].admitted) > 3 * len(again[7].admitted)
    assert excess(all_admitted(again), 300, 300) <= 20
    assert within(all_admitted(again), begin + 3, begin + 6) == pytest.approx(900, rel=0.15)


@looped("step", some([-600.0, -5.0, 5.0, 600.0], 2))
@in_virtual_time
async def test_the_clock_of_who_counts_may_step(step: float) -> None:
    world = World()
    processes = fleet(world, CALM)
    await run_traffic(processes, 450, 3)
    world.step += step
    await run_traffic(processes, 450, 4)
    await stop(processes)
    admitted = all_admitted(processes)
    extra = 300 if step == 5.0 else 0  # after ten minutes the key has expired, and its usage is reported again
    assert within(admitted, 3, 7) == pytest.approx(1200 + extra, rel=0.03)
    assert excess(admitted, 300 + extra, 300) <= 40


@in_virtual_time
async def test_a_counter_that_is_wiped_is_told_again_what_was_used() -> None:
    world = World()
    processes = fleet(world, CALM)
    await run_traffic(processes, 450, 3)
    world.counter = LeaseCounter()
    await run_traffic(processes, 450, 4)
    await stop(processes)
    assert within(all_admitted(processes), 3, 7) == pytest.approx(1200, rel=0.03)


@in_virtual_time
async def test_where_something_else_is_kept_the_sum_stays_at_the_limit() -> None:
    world = World()
    processes = fleet(world, CALM)
    await run_traffic(processes, 450, 3)
    world.foreign = True
    await run_traffic(processes, 450, 4)
    world.foreign = False
    await run_traffic(processes, 450, 4)
    await stop(processes)
    assert excess(all_admitted(processes), 300, 300) <= 50
    assert within(all_admitted(processes), 8, 11) == pytest.approx(900, rel=0.05)


@pytest.mark.parametrize(("seen", "seconds"), [(True, 1), (False, GONE_SECONDS + 1)], ids=["seen to end", "silent"])
@in_virtual_time
async def test_killed_processes_leave_the_rate_to_the_others(seen: bool, seconds: float) -> None:
    """A process that is silent may still admit requests on its own, so its part is not free until GONE_SECONDS have
    passed."""
    world = World()
    processes = fleet(world, CALM)
    await run_traffic(processes, 450, 3)
    await stop(processes[:6])
    for each in processes[:6]:
        if seen:
            world.counter.forget(each.name)
    await run_traffic(processes[6:], 450, seconds + 3)
    await stop(processes)
    begin = 3 + seconds
    assert within(all_admitted(processes), begin, begin + 3) == pytest.approx(900, rel=0.03)


@in_virtual_time
async def test_places_are_never_more_than_there_are_and_those_of_the_dead_come_back() -> None:
    world = World()
    one, two = fleet(world, Limits(concurrent=6), 2)
    assert [await one.ask() for _ in range(4)] == [True] * 4
    assert [await two.ask() for _ in range(4)] == [True, True, False, False]
    await one.kill()
    await asyncio.sleep(8)
    assert not await two.ask()
    await asyncio.sleep(3)
    assert [await two.ask() for _ in range(5)] == [True] * 4 + [False]
    two.held.pop().settle(1, 0)
    assert await two.ask()
    await stop([two])


@in_virtual_time
async def test_a_place_that_is_released_is_free_for_the_others_at_once() -> None:
    one, two = fleet(World(), Limits(concurrent=1), 2)
    assert await one.ask()
    assert not await two.ask()
    one.held.pop().settle(1, 0)
    await asyncio.sleep(0.03)
    assert await two.ask()
    await stop([one, two])


@in_virtual_time
async def test_what_others_spend_is_known_within_seconds() -> None:
    one, two = fleet(World(), Limits(quotas=(Quota(Unit.TOKENS, 1000, Period.DAY),)), 2)
    assert await two.ask(1)
    assert await one.ask(700)
    await asyncio.sleep(2.5)
    assert not await two.ask(500)
    assert await two.ask(299)
    await stop([one, two])


class SilentSource:
    """A source of leases whose exchanges fail while it is `deaf`. `sizes` has the number of leases in each exchange."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.counter = LeaseCounter()
        self.deaf = False

    async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        if any(ask.key != MEMBERSHIP_KEY for ask in asks):
            self.sizes.append(len(asks))
        await asyncio.sleep(0.001)
        if self.deaf:
            raise ConnectionError
        return self.counter.exchange("one", asks, asyncio.get_running_loop().time() * 1e6)


@in_virtual_time
async def test_many_limits_are_exchanged_fifty_at_a_time_and_idle_ones_not_at_all() -> None:
    world = World()
    limits = {f"team {number}": Limits((Rate(Unit.REQUESTS, 600, Period.MINUTE, 600),)) for number in range(120)}
    process = SimulatedProcess(world, "one", 1, limits)
    source = SilentSource()
    process.leases._source = source
    asked = [process.registry.admit_waiting((scope,), 1, 0) for scope in limits]
    outcomes = await asyncio.gather(*asked)
    assert all(isinstance(each, Reservation) for each in outcomes)
    assert max(source.sizes) == MAX_ENTRIES
    await asyncio.sleep(3)
    source.sizes.clear()
    await asyncio.sleep(10)
    assert source.sizes == []
    assert process.leases._live == [process.leases._membership]
    await stop([process])


@pytest.mark.parametrize("budgets", some([(ScopeBudget(Unit.USD, 500 * NANO, Period.MONTH),), ()], 2))
@in_virtual_time
async def test_a_team_with_leased_limits_takes_about_a_kilobyte(budgets: tuple[ScopeBudget, ...]) -> None:
    rates = tuple(Rate(unit, 600, Period.MINUTE, 600) for unit in (Unit.REQUESTS, Unit.TOKENS))
    names = [f"team {number}" for number in range(500)]
    limits = {name: Limits(rates, concurrent=64) for name in names}
    warm = SimulatedProcess(World(), "warm", 8, limits, dict.fromkeys(names, budgets) if budgets else {})
    assert isinstance(await warm.registry.admit_waiting((names[0],), 100, 100), Reservation)
    await stop([warm])  # creates cached objects, which are not part of a team's memory
    tracemalloc.start()
    process = SimulatedProcess(world := World(), "one", 8, limits, dict.fromkeys(names, budgets) if budgets else {})
    for first in range(0, len(names), MAX_ENTRIES):
        asked = (process.registry.admit_waiting((name,), 100, 100) for name in names[first : first + MAX_ENTRIES])
        for each in await asyncio.gather(*asked):
            assert isinstance(each, Reservation)
            each.settle(90, 90)
    await asyncio.sleep(12)
    world.counter = LeaseCounter()
    gc.collect()  # garbage of the exchanges is not part of a team's memory
    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/proxy/limits/*")])
    tracemalloc.stop()
    await stop([process])
    assert (
        256 <= sum(trace.size for trace in ours.traces) / len(names) <= 1100
    )  # the first team in a process fills caches


@in_virtual_time
async def test_losing_and_finding_is_said_once_a_minute_at_most() -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]  # only in this test
    log = logging.getLogger("dragoman")
    log.addHandler(handler)
    (process,) = fleet(World(), SHARP, 1)
    process.leases._source = source = SilentSource()
    for _ in range(20):
        await process.ask()
        source.deaf = not source.deaf
        await asyncio.sleep(3)
    log.removeHandler(handler)
    assert 1 <= len(said) <= 2
    assert "continuing with this process's share" in said[0]
    await stop([process])


@in_virtual_time
async def test_a_scope_that_is_gone_is_exchanged_no_more_and_its_requests_end() -> None:
    world = World()
    (process,) = fleet(world, SHARP, 1)
    assert await process.ask()
    process.registry.use({}, {}, process.registry.maker.clocks[Period.DAY].zone, 0.0)
    process.held.pop().settle(5, 0)
    calls = world.calls
    await asyncio.sleep(10)
    assert world.calls == calls
    assert process.registry.admit(("team t",), 1, 0, 10.0, WALL + 10) is not None
    await stop([process])


async def test_units_of_a_short_period_are_there_when_the_answer_took_longer_than_they_hold() -> None:
    """A limit per second leases units for 10 ms."""

    class Slow:
        async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
            await asyncio.sleep(0.03)
            return [LeaseGrant(each.want if isinstance(each, RateRequest) else 0, 100, 1.0, 1) for each in asks]

    clock = asyncio.get_running_loop().time
    leases = LeaseRegistry(Slow(), 1, clock)
    registry = LimitRegistry(clock, time.time, leases)
    limits = Limits(rates=(Rate(Unit.REQUESTS, 200, Period.SECOND, 200),))
    registry.use({"team a": limits}, {}, UTC, clock())
    asking = asyncio.create_task(registry.admit_waiting(("team a",), 1, 1))
    await asyncio.sleep(0)
    await leases.exchange_due()
    assert isinstance(await asking, Reservation)
