"""One of two workers is killed under load (R08)."""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from tests.support.gateway import SERVER, running_gateway
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script
from tests.trust.figure_types import Result
from tests.trust.load_client import Ended, ask, asking, failures, paced
from tests.trust.load_rig import WHOLE, many, port_of, slow_stream, streams, table

TWO: Final = SERVER + "  workers: 2\n  watch: false\n"
REFUSED_FOR: Final = 0.02
"""Seconds after the kill in which a new connection may fail: the kernel may have given it to the dead worker."""

BACK_WITHIN: Final = 1.5
"""Seconds after which two workers serve again."""


@dataclass(frozen=True, slots=True)
class Killed:
    """The result. `held` streams were at the worker that was killed `at` this second of the loop's clock. Two workers
    served again `back` seconds later."""

    asked: list[Ended]
    streamed: list[Ended]
    held: int
    at: float
    back: float

    def late(self) -> list[Ended]:
        """Return the number of failed connections that began when the worker's death was already known."""
        return [ended for ended in self.asked if not ended.well and ended.began > self.at + REFUSED_FOR]


async def kill_once(folder: Path, rate: float, seconds: float, waiting: int) -> Killed:
    """Open new connections at this rate for `seconds` seconds. After a third of them, kill one of two workers, which
    has some of the waiting streams."""

    def serve(received: Received) -> Script:
        return slow_stream(seconds, 15) if streams(received) else WHOLE

    loop = asyncio.get_running_loop()
    async with FakeVendor(serve) as vendor:
        models = many("fake", waiting + 100)
        text = table({"fake": vendor.base_url}, [f"{model}: {{}}" for model in models], TWO)
        async with running_gateway(text, folder) as gateway, asyncio.TaskGroup() as group:
            await gateway.serving(2)
            port = port_of(gateway)
            streamed = [group.create_task(ask(port, asking(models[0], stream=True))) for _ in range(waiting)]
            await vendor.received(waiting)
            (victim, held), _ = (await gateway.in_flight()).items()
            data = asking(models[-1])
            asked = group.create_task(paced(rate, int(rate * seconds), lambda _: ask(port, data)))
            await asyncio.sleep(seconds / 3)
            at = loop.time()
            os.kill(victim, signal.SIGKILL)
            await gateway.serving(2, restarts=1)
            back = loop.time() - at
            return Killed(await asked, [await task for task in streamed], held, at, back)


def shown(killed: Killed) -> Result:
    """Return the figure as text."""
    cut = sum(not ended.well for ended in killed.streamed)
    late = killed.late()
    value = (
        f"{cut} of {len(killed.streamed)} streams lost, {killed.held} of which were at the killed worker; of "
        f"{len(killed.asked)} new connections failed: {failures(killed.asked)}, {len(late)} of them later than "
        f"{REFUSED_FOR * 1000:.0f} ms; two workers again after {killed.back:.2f} s"
    )
    return Result(value, cut == killed.held and not late and killed.back <= BACK_WITHIN)


def r08(folder: Path) -> Result:
    """Return the figure for 400 connections a second for 12 seconds, and 40 streams."""
    return shown(uvloop.run(kill_once(folder, 400.0, 12.0, 40)))
