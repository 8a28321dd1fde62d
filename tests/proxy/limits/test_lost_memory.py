"""The coordinator comes back with or without its memory, or other data is in its place: spending and slots stay
within their limits, and all of them are soon available again."""

import asyncio
import logging
import random
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedSlots
from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.limit import Limits, Period, Quota, Unit
from proxy.limits.reservation import Reservation
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingNotes, rules_of
from proxy.shared_state.lease import LeaseGrant
from proxy.shared_state.lease_keeper import REJOIN_SECONDS
from tests.proxy.kit.virtual_time import VirtualLoop, in_virtual_time
from tests.proxy.limits.kit.simulation import BERLIN, WALL, SimulatedProcess, World, all_admitted, fleet, stop
from tests.proxy.limits.kit.still_keeper import StillKeeper
from tests.support.looped import looped
from tests.support.nightly import by_day, some
from tests.support.not_none import not_none

DAY = Quota(Unit.REQUESTS, 240, Period.DAY)
COUNT = 4


def lose(world: World, kind: str) -> None:
    match kind:
        case "wiped":
            world.counter = LeaseCounter()
        case "foreign":
            world.foreign = True
        case _:
            world.lost = True


def find(world: World, kind: str) -> None:
    if kind in ("restarted", "foreign"):
        world.counter = LeaseCounter()
    world.lost = world.foreign = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure of the coordinator: after how many seconds it begins and how many it lasts."""

    kind: str
    after: float
    lasts: float


TROUBLES = st.builds(
    Trouble, st.sampled_from(["frozen", "restarted", "wiped", "foreign"]), st.floats(0.1, 3), st.floats(0.02, 4)
)


async def spent_in_the_end(troubles: list[Trouble], rates: list[int]) -> int:
    """Return how many requests of DAY pass in total: at these rates during the troubles, then as many as remain."""
    world = World()
    processes = fleet(world, Limits(quotas=(DAY,)), COUNT)
    loop = asyncio.get_running_loop()

    async def befall() -> None:
        for each in troubles:
            await asyncio.sleep(each.after)
            lose(world, each.kind)
            await asyncio.sleep(each.lasts)
            find(world, each.kind)

    async def ask(process: SimulatedProcess, rate: int) -> None:
        chance = random.Random(process.name)
        while loop.time() < until:
            await asyncio.sleep(chance.expovariate(rate))
            await process.ask()

    until = 4 + sum(each.after + each.lasts for each in troubles)
    await asyncio.gather(befall(), *(ask(each, rate) for each, rate in zip(processes, rates, strict=True)))
    await asyncio.sleep(4)
    for _ in range(DAY.amount):
        await processes[0].ask()
    await stop(processes)
    return len(all_admitted(processes))


@example(
    [Trouble("wiped", 1.13, 1.546), Trouble("restarted", 0.7845, 3.1385), Trouble("frozen", 1.2, 2.4193)],
    [15, 2, 5, 16],
)
@example([Trouble("wiped", 0.5, 0.5), Trouble("restarted", 1.0, 1.0), Trouble("frozen", 1.0, 2.0)], [20] * 4)
@given(st.lists(TROUBLES, min_size=1, max_size=3), st.lists(st.integers(1, 20), min_size=COUNT, max_size=COUNT))
@settings(max_examples=by_day(8, 25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_more_is_spent_than_the_limit_and_all_of_it_in_the_end(troubles: list[Trouble], rates: list[int]) -> None:
    loop = VirtualLoop()
    try:
        passed = loop.run_until_complete(spent_in_the_end(troubles, rates))
    finally:
        loop.close()
    # Units that were claimed in the last second are not known to all processes that divide the remainder.
    assert DAY.amount <= passed <= DAY.amount + len(troubles) * sum(rates) / COUNT


def used(processes: list[SimulatedProcess]) -> int:
    return sum(slots.used for each in processes for slots in each.registry._scopes["team t"].slots)


@looped(
    ("kind", "rates"),
    some(
        [*product(("frozen", "restarted", "wiped", "foreign"), ((200, 5, 5, 20), (60, 60, 60, 60), (5, 200, 0, 0)))], 5
    ),
)
@in_virtual_time
async def test_places_are_never_more_than_there_are_and_all_are_in_use_soon(kind: str, rates: tuple[int, ...]) -> None:
    world = World()
    processes = fleet(world, Limits(concurrent=40), COUNT)
    loop = asyncio.get_running_loop()
    seen: list[tuple[float, int]] = []

    async def one(process: SimulatedProcess, chance: random.Random) -> None:
        if await process.ask():
            await asyncio.sleep(chance.expovariate(2))
            process.held.pop().settle(1, 0)
        seen.append((loop.time(), used(processes)))

    async def ask(process: SimulatedProcess, rate: int) -> None:
        chance = random.Random(process.name)
        async with asyncio.TaskGroup() as group:
            while rate and loop.time() < 12:
                await asyncio.sleep(chance.expovariate(rate))
                group.create_task(one(process, chance))

    async def befall() -> None:
        await asyncio.sleep(3)
        lose(world, kind)
        await asyncio.sleep(3)
        find(world, kind)

    await asyncio.gather(befall(), *(ask(each, rate) for each, rate in zip(processes, rates, strict=True)))
    await stop(processes)
    assert max(taken for _, taken in seen) <= 41  # each has at least one, however small its share
    assert max(taken for at, taken in seen if 6 < at < 8.5) >= 37


@looped("kind", ["restarted", "wiped", "foreign"])
@in_virtual_time
async def test_nobody_is_refused_who_used_nothing(kind: str) -> None:
    world = World()
    limits = {f"team {name}": Limits(quotas=(DAY,), concurrent=40) for name in "tu"}
    processes = [SimulatedProcess(world, f"p{number}", COUNT, limits) for number in range(COUNT)]
    for each in processes:
        assert await each.ask()
        each.held.pop().settle(1, 0)
    await asyncio.sleep(1)
    lose(world, kind)
    await asyncio.sleep(2.1)
    find(world, kind)
    for _ in range(25):
        for each in processes:
            for team in ("team t", "team u"):
                outcome = await each.registry.admit_waiting((team,), 1, 0)
                assert isinstance(outcome, Reservation)
                outcome.settle(1, 0)
        await asyncio.sleep(0.05)
    await stop(processes)


@in_virtual_time
async def test_that_something_else_is_kept_is_said_once_and_shown_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    (process,) = fleet(world, Limits(quotas=(DAY,), concurrent=3), 1)
    assert await process.ask()
    shown = [process.registry.alone]
    world.foreign = True
    with caplog.at_level(logging.WARNING, "dragoman"):
        await asyncio.sleep(30)
    shown.append(process.registry.alone)
    assert process.leases.lost_at < 0
    (said,) = caplog.messages
    assert said.startswith("limits: Redis holds foreign data in place of 'team t ")
    world.foreign = False
    await asyncio.sleep(2 * REJOIN_SECONDS)
    shown.append(process.registry.alone)
    assert shown == [False, True, False]
    await stop([process])


def spending(keeper: StillKeeper) -> SharedSpending:
    rules = rules_of([Quota(Unit.TOKENS, 1000, Period.DAY)])
    return SharedSpending("team t", rules, PeriodClock(Period.DAY, BERLIN, WALL), SpendingNotes(), keeper)


def test_back_among_others_it_claims_what_it_has_left_of_its_part_and_no_more() -> None:
    keeper = StillKeeper(alone=True)
    each = spending(keeper)
    assert not each.lacks(250, 5.0, WALL)
    each.take(100, 5.0, WALL)
    keeper.alone, keeper.rejoining = False, True
    ask = not_none(each.next_request(6.0))
    assert (ask.amount, ask.held, ask.want) == (100, 0, 150)
    each.apply_grant(LeaseGrant(120, 300.0, 1.0, 2), 6.0)
    assert each.room == 120
    assert each.lacks(121, 6.0, WALL)
    assert not each.fetchable(121, 6.0)
    ask = not_none(each.next_request(6.1))
    assert (ask.held, ask.want) == (120, 0)
    each.apply_grant(LeaseGrant(0, 300.0, 1.0, 2), 6.1)
    assert each.exceeded("team t", 130, 6.1, WALL).alone == 120
    keeper.rejoining = False
    assert each.fetchable(121, 6.2)


def test_what_is_granted_by_who_has_lost_its_memory_counts_only_as_far_as_ones_part() -> None:
    keeper = StillKeeper()
    each = spending(keeper)
    each.touched = 1.0
    each.next_request(1.0)
    each.apply_grant(LeaseGrant(0, 600.0, 1.0, 2, epoch=1), 1.0)
    each.add_waiting(200)
    ask = not_none(each.next_request(2.0))
    assert ask.want >= 200
    each.apply_grant(LeaseGrant(ask.want, 0.0, 1.0, 1, epoch=2), 2.0)
    each.remove_waiting(200)
    assert (each.room, keeper.noted) == (100, ["wake"])
    assert not_none(each.next_request(2.1)).want == 100
    each.apply_grant(LeaseGrant(100, 600.0, 1.0, 2, epoch=2), 2.1)
    assert each.lacks(101, 2.1, WALL)
    assert not each.fetchable(101, 2.1)
    keeper.all_reported_since = 2.0
    assert each.fetchable(101, 2.1)


def test_it_takes_no_other_part_before_it_was_answered_after_all_others_told() -> None:
    keeper = StillKeeper(alone=True)
    each = spending(keeper)
    assert not each.lacks(250, 5.0, WALL)
    each.take(250, 5.0, WALL)
    keeper.alone, keeper.rejoining = False, True
    each.next_request(6.0)
    each.apply_grant(LeaseGrant(0, 0.0, 1.0, 1), 6.0)  # no other process has reported yet
    keeper.rejoining = False
    keeper.alone = True
    assert each.lacks(1, 6.5, WALL)
    keeper.alone = False
    for now in (7.0, 7.1):
        each.next_request(now)
        each.apply_grant(LeaseGrant(0, 350.0, 1.0, 4), now)
    keeper.alone = True
    assert not each.lacks(100, 7.5, WALL)
    assert each.lacks(101, 7.5, WALL)


def test_a_key_that_ended_by_itself_was_not_lost() -> None:
    each = spending(StillKeeper())
    each.touched = 25.0
    each.next_request(1.0)
    each.apply_grant(LeaseGrant(0, 600.0, 1.0, 2, epoch=1), 1.0)
    each.add_waiting(200)
    each.next_request(30.0)
    each.apply_grant(LeaseGrant(200, 0.0, 1.0, 1, epoch=2), 30.0)
    assert each.room == 200
    slots = LeasedSlots("t", 4, StillKeeper())
    for now, epoch in ((1.0, 1), (30.0, 2)):
        slots.next_request(now)
        slots.apply_grant(LeaseGrant(0, 0.0, 1.0, 1, epoch), now)
    assert slots.fetchable(1, 30.0)
    assert not slots.needs_renewal(30.0)


def test_places_of_a_memory_that_was_lost_are_taken_up_to_ones_part() -> None:
    keeper = StillKeeper(expected=2)
    slots = LeasedSlots("t", 40, keeper)
    slots.apply_grant(LeaseGrant(0, 20.0, 0.5, 2, epoch=1), 1.0)
    slots.waiting = 30
    slots.next_request(2.0)
    slots.apply_grant(LeaseGrant(30, 30.0, 1.0, 1, epoch=2), 2.0)
    taken = 0
    while slots.attempt():
        taken += 1
    assert taken == 20
    assert slots.exceeded("t", 1, 2.0, 0.0).alone == 0
    assert not slots.fetchable(1, 2.0)
    assert slots.needs_renewal(2.0 + REJOIN_SECONDS - 0.1)
    slots.needs_renewal(2.0 + REJOIN_SECONDS)
    assert slots.attempt()
