"""The coordinator repeatedly disappears and comes back: the limit still holds, and the traffic continues."""

import asyncio
from collections.abc import Sequence

import pytest

from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.limit import Limits, Period, Rate, Unit
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import (
    EVEN,
    UNEVEN,
    World,
    all_admitted,
    excess,
    fleet,
    run_traffic,
    stop,
    within,
)
from tests.support.looped import looped
from tests.support.nightly import by_day

SHARP = Limits((Rate(Unit.REQUESTS, 18_000, Period.MINUTE, 300),))
"""300 a second, in bursts of 300."""

WIDE = Limits((Rate(Unit.REQUESTS, 1500, Period.MINUTE, 1500),))
"""25 a second, with a burst of a minute's units."""


async def flap(world: World, seconds: Sequence[tuple[float, float]], *, wiped: bool) -> None:
    """Lose the coordinator for the first number of seconds of each pair, and have it back for the second. If `wiped`,
    it comes back without its memory."""
    for away, back in seconds:
        world.lost = True
        await asyncio.sleep(away)
        if wiped:
            world.counter = LeaseCounter()
        world.lost = False
        await asyncio.sleep(back)


@looped(
    ("wiped", "weights", "pairs"),
    [
        pytest.param(False, EVEN, [(0.4, 0.7)] * 8, id="frozen, fast"),
        pytest.param(True, EVEN, [(2.5, 1.5)] * 3, id="restarted, slow"),
        pytest.param(False, UNEVEN, [(2.5, 1.5)] * 3, id="frozen, slow, uneven"),
        pytest.param(True, UNEVEN, [(0.4, 0.7)] * 8, id="restarted, fast, uneven"),
        pytest.param(True, EVEN, [(1.0, 5.0)] * 2, id="restarted, rare"),
    ][:: by_day(3, 1)],
)
@in_virtual_time
async def test_no_window_holds_more_than_the_limit(
    wiped: bool, weights: Sequence[float], pairs: list[tuple[float, float]]
) -> None:
    world = World()
    processes = fleet(world, SHARP)
    await run_traffic(processes, 450, 4, weights)
    seconds = sum(map(sum, pairs))
    await asyncio.gather(run_traffic(processes, 450, seconds, weights), flap(world, pairs, wiped=wiped))
    await stop(processes)
    admitted = all_admitted(processes)
    assert excess(admitted, 300, 300) <= 0.1 * 300
    assert within(admitted, 4, 4 + seconds) >= 0.7 * 300 * seconds


@pytest.mark.parametrize("wiped", [False, True], ids=["frozen", "restarted"])
@in_virtual_time
async def test_a_burst_is_spent_once_however_often_it_comes_back(wiped: bool) -> None:
    world = World()
    processes = fleet(world, WIDE)
    pairs = [(3.0, 4.0)] * 4
    await run_traffic(processes, 10, 3)
    await asyncio.gather(run_traffic(processes, 300, 28), flap(world, pairs, wiped=wiped))
    await run_traffic(processes, 40, 9)
    await stop(processes)
    admitted = all_admitted(processes)
    assert (
        excess(admitted, 1500, 25) <= 0.04 * 1500
    )  # the units that all processes took in the 0.1 s before they detected the loss
    assert within(admitted, 3, 31) >= 0.9 * (1500 + 28 * 25)
    assert within(admitted, 31, 40) >= 0.8 * 225


@in_virtual_time
async def test_an_outage_while_the_limit_is_used_up_silences_nobody_afterwards() -> None:
    world = World()
    processes = fleet(world, WIDE)
    await run_traffic(processes, 300, 8)
    await asyncio.gather(run_traffic(processes, 40, 20), flap(world, [(4.0, 0.0)], wiped=False))
    await stop(processes)
    admitted = all_admitted(processes)
    assert within(admitted, 14, 28) == pytest.approx(350, rel=0.1)


@in_virtual_time
async def test_traffic_that_moves_when_it_is_lost_finds_no_second_limit() -> None:
    world = World()
    processes = fleet(world, SHARP)
    await run_traffic(processes, 450, 1)
    await run_traffic(processes[:1], 450, 6, (1.0,))
    world.lost = True
    await asyncio.sleep(0.5)
    await run_traffic(processes, 1500, 6)
    await stop(processes)
    assert excess(all_admitted(processes), 300, 300) <= 0.05 * 300


@in_virtual_time
async def test_places_are_never_more_than_there_are_after_a_restart_of_who_counts() -> None:
    world = World()
    processes = fleet(world, Limits(concurrent=80))

    for _ in range(40):
        await asyncio.gather(*(each.ask() for each in processes))
        await asyncio.sleep(0.02)
    assert sum(len(each.held) for each in processes) == 80
    for _ in range(3):
        world.lost = True
        await asyncio.sleep(1.5)
        world.counter, world.lost = LeaseCounter(), False
        for _ in range(20):
            await asyncio.sleep(0.1)
            await asyncio.gather(*(each.ask() for each in processes))
    assert sum(len(each.held) for each in processes) <= 80
    await stop(processes)
