"""A process that has lost the coordinator counts its spending alone: it counts the units that requests use, not the
units that they reserved."""

import asyncio

from proxy.limits.limit import Limits, Period, Quota, Unit
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import SimulatedProcess, World, fleet, stop


async def lost_requests(world: World, per_process: int, tokens: int, used: int) -> list[bool]:
    """Lose the coordinator, and send `per_process` requests to each process in three seconds, one after the other:
    each reserves `tokens` and ends with `used`. Return which passed."""
    processes = fleet(world, Limits(quotas=(Quota(Unit.TOKENS, 30_000, Period.DAY),)), 4)

    async def one(each: SimulatedProcess) -> bool:
        if passed := await each.ask(tokens):
            await asyncio.sleep(0.01)
            each.held.pop().settle(used, 0)
        await asyncio.sleep(3 / per_process - 0.01)
        return passed

    await asyncio.gather(*(one(each) for each in processes))
    await asyncio.sleep(3)
    world.lost = True
    rounds = [await asyncio.gather(*(one(each) for each in processes)) for _ in range(per_process)]
    await stop(processes)
    return [passed for each in rounds for passed in each]


@in_virtual_time
async def test_requests_that_reserve_much_and_use_little_all_pass() -> None:
    assert all(await lost_requests(World(), 24, 2430, 10))


@in_virtual_time
async def test_all_together_use_what_is_left_and_no_more() -> None:
    passed = await lost_requests(World(), 60, 400, 200)
    left = 30_000 - 4 * 200
    assert 0.8 * left <= 200 * sum(passed) <= left
