"""The clock is the clock of the event loop's timers, for every kind of event loop."""

import asyncio
import time

import uvloop

from proxy.loop_clock import loop_clock
from tests.proxy.kit.virtual_time import run


async def elapsed() -> tuple[float, float]:
    """Return the seconds that a wait takes, by both clocks."""
    loop, now = asyncio.get_running_loop(), loop_clock()
    before = loop.time(), now()
    assert abs(before[0] - before[1]) < 0.5
    await asyncio.sleep(0.02)
    return loop.time() - before[0], now() - before[1]


def test_on_asyncios_own_loop_it_is_the_systems() -> None:
    async def clock() -> bool:
        return loop_clock() is time.monotonic

    assert asyncio.run(clock())
    ours, other = asyncio.run(elapsed())
    assert abs(ours - other) < 0.5


def test_on_other_loops_it_is_their_own() -> None:
    ours, other = uvloop.run(elapsed())
    assert abs(ours - other) < 0.5
    assert run(elapsed()) == (0.02, 0.02)
