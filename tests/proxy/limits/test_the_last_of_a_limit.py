"""Processes that share a calendar limit, near its end: exactly the remaining units pass, whichever process requests
them."""

import asyncio

from proxy.limits.limit import Limits, Period, Quota, Unit
from proxy.limits.reservation import Reservation
from proxy.limits.shared_spending import RETURNS_WAIT
from proxy.limits.spending import STATEMENT_HOLDS
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import WALL, SimulatedProcess, World, fleet, stop
from tests.support.looped import looped

HUNDRED = Limits(quotas=(Quota(Unit.REQUESTS, 100, Period.DAY),))


@looped("count", [1, 2, 8])
@in_virtual_time
async def test_of_a_burst_exactly_the_limit_passes(count: int) -> None:
    processes = fleet(World(), HUNDRED, count)
    outcomes = await asyncio.gather(*(processes[number % count].ask() for number in range(300)))
    assert sum(outcomes) == 100
    await stop(processes)


@looped("count", [2, 4, 8])
@in_virtual_time
async def test_large_requests_of_several_processes_are_refused_only_once_the_limit_is_used_up(count: int) -> None:
    limits = Limits(quotas=(Quota(Unit.TOKENS, 3000, Period.DAY),))
    processes = fleet(World(), limits, count)
    passed, early = 0, 0

    async def ask_on(process: SimulatedProcess) -> None:
        nonlocal passed, early
        for _ in range(80 // count):
            if await process.ask(50):
                passed += 1
            else:
                early += passed < 60
            await asyncio.sleep(0.01)

    await asyncio.gather(*(ask_on(each) for each in processes for _ in range(2)))
    assert (passed, early) == (60, 0)
    await stop(processes)


@in_virtual_time
async def test_one_busy_process_gets_all_that_idle_ones_claimed() -> None:
    processes = fleet(World(), HUNDRED, 4)
    for each in processes:
        assert await each.ask()
    outcomes = [await processes[0].ask() for _ in range(120)]
    assert sum(outcomes) == 96
    assert max(processes[0].waits) <= RETURNS_WAIT
    await stop(processes)


@in_virtual_time
async def test_reservations_given_back_pass_to_other_processes() -> None:
    one, two = fleet(World(), Limits(quotas=(Quota(Unit.TOKENS, 1000, Period.DAY),)), 2)
    assert await one.ask(990)
    assert not await two.ask(500)
    reservation = one.held.pop()
    assert isinstance(reservation, Reservation)
    reservation.settle(100, 0)
    await asyncio.sleep(0.2)
    assert await two.ask(900)
    assert not await one.ask(1)
    await stop([one, two])


@in_virtual_time
async def test_a_process_that_stood_still_longer_than_its_claim_holds_asks_again() -> None:
    world = World()
    one, two = (SimulatedProcess(world, name, 2, {"team t": HUNDRED}) for name in ("one", "two"))
    assert await one.ask()
    one.task.cancel()
    await asyncio.sleep(STATEMENT_HOLDS + 1)
    outcomes = [await two.ask() for _ in range(120)]
    assert sum(outcomes) == 100
    assert one.registry.admit(("team t",), 1, 0, asyncio.get_running_loop().time(), WALL) is None
    await stop([one, two])
