"""Waiting at the registry: for leased units, and in line for a limit that is used up."""

import asyncio

import pytest

from proxy.limits.lease_registry import FIRST_ANSWER_WAIT
from proxy.limits.limit import Limits, Period, Quota, Rate, Unit
from proxy.limits.limit_registry import NOTHING_RESERVED, LimitRegistry
from proxy.limits.limit_views import Exceeded, LimitKind
from proxy.limits.reservation import Reservation
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import BERLIN, WALL, SimulatedProcess, World, fleet, stop

SCOPES = ("team t", "key t/k", "team t model m")


def per_minute(unit: Unit, amount: int) -> Rate:
    return Rate(unit, amount, Period.MINUTE, amount)


REQUESTS = per_minute(Unit.REQUESTS, 60)


def waiting_desk(limits: Limits) -> tuple[LimitRegistry, float]:
    clock = asyncio.get_running_loop().time
    registry = LimitRegistry(clock, lambda: WALL + clock())
    registry.use({"team t": limits}, {}, BERLIN, clock())
    return registry, clock()


@in_virtual_time
async def test_a_patient_request_waits_for_its_turn_and_nobody_overtakes() -> None:
    registry, _ = waiting_desk(Limits((per_minute(Unit.TOKENS, 60),)))
    clock = asyncio.get_running_loop().time
    assert isinstance(await registry.admit_within(SCOPES, 60, 0, 5.0), Reservation)
    large = asyncio.create_task(registry.admit_within(SCOPES, 4, 0, 30.0))
    await asyncio.sleep(2)
    small = asyncio.create_task(registry.admit_within(SCOPES, 1, 0, 30.0))
    await asyncio.sleep(0)
    assert isinstance(registry.admit(SCOPES, 1, 0, clock(), WALL), Exceeded)
    assert isinstance(await large, Reservation)
    assert clock() == pytest.approx(4, abs=0.01)
    assert isinstance(await small, Reservation)
    assert clock() == pytest.approx(5, abs=0.01)
    await asyncio.sleep(1)
    assert isinstance(registry.admit(SCOPES, 1, 0, clock(), WALL), Reservation)


@in_virtual_time
async def test_what_cannot_pass_in_time_is_refused_at_once() -> None:
    registry, _ = waiting_desk(Limits((), (Quota(Unit.REQUESTS, 1, Period.DAY),)))
    await registry.admit_within(SCOPES, 1, 0, 5.0)
    assert isinstance(await registry.admit_within(SCOPES, 1, 0, 5.0), Exceeded)
    assert asyncio.get_running_loop().time() == 0


@in_virtual_time
async def test_a_place_is_waited_for_however_short_the_patience() -> None:
    registry, _ = waiting_desk(Limits(concurrent=1))
    first = await registry.admit_within(SCOPES, 1, 0, 0.0)
    assert isinstance(first, Reservation)
    assert isinstance(await registry.admit_within(SCOPES, 1, 0, 0.0), Exceeded)
    second = asyncio.create_task(registry.admit_within(SCOPES, 1, 0, 0.2))
    third = asyncio.create_task(registry.admit_within(SCOPES, 1, 0, 0.2))
    await asyncio.sleep(0.1)
    first.settle(1, 0)
    assert isinstance(await second, Reservation)
    assert isinstance(await third, Exceeded)
    assert asyncio.get_running_loop().time() == pytest.approx(0.2)


@in_virtual_time
async def test_a_place_goes_to_who_waits_when_it_is_released() -> None:
    registry, _ = waiting_desk(Limits(concurrent=1))
    first = await registry.admit_within(SCOPES, 1, 0, 0.0)
    assert isinstance(first, Reservation)
    second = asyncio.create_task(registry.admit_within(SCOPES, 1, 0, 30.0))
    await asyncio.sleep(0.5)
    first.settle(1, 0)
    assert isinstance(await second, Reservation)
    assert asyncio.get_running_loop().time() == pytest.approx(0.5)


@in_virtual_time
async def test_leased_units_are_waited_for_once_and_cancelled_requests_hold_none() -> None:
    world = World(round_trip=0.1)
    (process,) = fleet(world, Limits((REQUESTS,), concurrent=5), 1)
    registry = process.registry
    assert registry.admit(("team t",), 1, 0, 0.0, WALL) is None
    waiting = [asyncio.create_task(registry.admit_waiting(("team t",), 1, 0)) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[2].cancel()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(each, Reservation) for each in outcomes) == 4
    views = {each.kind: each.used for each in registry.views(0.0, WALL)}
    assert views[LimitKind.CONCURRENT] == 4
    await stop([process])


@in_virtual_time
async def test_the_first_request_of_all_fetches_from_all_its_limits_in_one_exchange() -> None:
    world = World()
    limits = {scope: Limits((REQUESTS, per_minute(Unit.TOKENS, 1000)), concurrent=3) for scope in SCOPES}
    process = SimulatedProcess(world, "one", 1, limits)
    assert isinstance(await process.registry.admit_waiting(SCOPES, 100, 0), Reservation)
    assert world.calls == 1
    await stop([process])


@in_virtual_time
async def test_a_request_that_is_cancelled_as_it_is_admitted_gives_back_what_it_got() -> None:
    (process,) = fleet(World(), Limits(concurrent=5), 1)
    waiting = asyncio.create_task(process.registry.admit_waiting(("team t",), 1, 0))
    await asyncio.sleep(0)
    answered = process.leases.on_exchange

    def then_cancel() -> None:
        answered()
        waiting.cancel()

    process.leases.on_exchange = then_cancel
    assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError)
    assert {each.kind: each.used for each in process.registry.views(0.0, WALL)} == {LimitKind.CONCURRENT: 0}
    await stop([process])


@in_virtual_time
async def test_a_leased_limit_that_is_used_up_is_refused_after_one_exchange_and_queued_for() -> None:
    one, two = fleet(World(), Limits((REQUESTS,)), 2)
    outcomes = await asyncio.gather(*(one.ask() for _ in range(60)))
    assert all(outcomes)
    assert not await two.ask()
    begin = asyncio.get_running_loop().time()
    outcome = await two.registry.admit_within(("team t",), 1, 0, 5.0)
    assert isinstance(outcome, Reservation)
    assert 0.9 < asyncio.get_running_loop().time() - begin < 1.2
    await stop([one, two])


@in_virtual_time
async def test_a_leased_deployment_is_waited_for_when_it_may_have_enough() -> None:
    (process,) = fleet(World(), Limits((per_minute(Unit.REQUESTS, 1),)), 1)
    registry = process.registry
    assert registry.try_target(("team t",), 1, 0, 0.0, WALL) is None
    assert isinstance(await registry.target_waiting(("team t",), 1, 0), Reservation)
    told = await registry.target_waiting(("team t",), 1, 0)
    assert isinstance(told, Exceeded)
    assert told.wait > 50
    await stop([process])


@in_virtual_time
async def test_lost_while_requests_wait_they_go_on_alone() -> None:
    process = SimulatedProcess(world := World(), "one", 2, {"team t": Limits((REQUESTS,))})
    await asyncio.sleep(1)
    world.lost = True
    assert await process.ask()
    assert asyncio.get_running_loop().time() == pytest.approx(1.1)
    assert process.registry.alone
    await stop([process])


@in_virtual_time
async def test_at_the_start_requests_wait_a_second_for_a_first_answer_and_no_longer() -> None:
    late, never = (SimulatedProcess(World(lost=True), "one", 2, {"team t": Limits((REQUESTS,))}) for _ in range(2))
    asking = [asyncio.create_task(each.ask()) for each in (late, never)]
    await asyncio.sleep(0.6)
    late.world.lost = False
    assert all(await asyncio.gather(*asking))
    assert late.waits[0] == pytest.approx(0.7, abs=0.1)
    assert never.waits[0] == pytest.approx(FIRST_ANSWER_WAIT, abs=0.1)
    assert [late.registry.alone, never.registry.alone] == [False, True]
    await stop([late, never])


def in_line(
    registry: LimitRegistry, count: int, patience: float = 30.0
) -> "list[asyncio.Task[Reservation | Exceeded]]":
    return [asyncio.create_task(registry.admit_within(SCOPES, 1, 0, patience)) for _ in range(count)]


@in_virtual_time
async def test_who_waits_for_a_limit_that_another_table_does_not_have_goes_on_waiting_for_it() -> None:
    registry, _ = waiting_desk(Limits((Rate(Unit.REQUESTS, 60, Period.MINUTE, 1),)))
    clock, passed = asyncio.get_running_loop().time, []
    assert isinstance(await registry.admit_within(SCOPES, 1, 0, 0.0), Reservation)
    waiting = in_line(registry, 4, 3.5)
    for each in waiting:
        each.add_done_callback(lambda _: passed.append(clock()))
    await asyncio.sleep(0.5)
    for _ in range(2):
        registry.use({}, {}, BERLIN, clock())
    outcomes = await asyncio.gather(*waiting)
    assert [isinstance(each, Reservation) for each in outcomes] == [True, True, True, False]
    assert sorted(passed)[:3] == pytest.approx([1, 2, 3], abs=0.01)
    assert registry.admit(SCOPES, 1, 0, clock(), WALL) is NOTHING_RESERVED
    assert not registry._former


@in_virtual_time
async def test_a_limit_that_comes_back_while_requests_wait_for_it_knows_what_was_used() -> None:
    registry, _ = waiting_desk(limits := Limits(concurrent=1))
    clock = asyncio.get_running_loop().time
    first = await registry.admit_within(SCOPES, 1, 0, 0.0)
    assert isinstance(first, Reservation)
    (waiting,) = in_line(registry, 1)
    await asyncio.sleep(0.5)
    registry.use({}, {}, BERLIN, clock())
    registry.use({"team t": limits}, {}, BERLIN, clock())
    await asyncio.sleep(0.5)
    assert not waiting.done()
    first.settle(1, 0)
    assert isinstance(await waiting, Reservation)


@in_virtual_time
async def test_a_leased_limit_that_is_gone_is_exchanged_as_long_as_requests_wait_for_it() -> None:
    (process,) = fleet(World(), Limits((Rate(Unit.REQUESTS, 60, Period.MINUTE, 1),)), 1)
    registry, clock = process.registry, asyncio.get_running_loop().time
    assert await process.ask()
    waiting = in_line(registry, 3)
    await asyncio.sleep(0.5)
    registry.use({}, {}, BERLIN, clock())
    assert all(isinstance(each, Reservation) for each in await asyncio.gather(*waiting))
    assert 2.8 < clock() < 3.5
    await stop([process])
