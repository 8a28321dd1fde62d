"""Processes that begin while Redis is away: together they take no more than a limit if each knows how it was divided.
A process without that knowledge takes at most the share of a process that used nothing, in addition."""

import asyncio
from dataclasses import dataclass, field
from itertools import permutations

import pytest

from proxy.limits.limit import Limits, Period, Rate, Unit
from proxy.shared_state.lease_keeper import idle_share
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import SimulatedProcess, World, all_admitted, stop, within
from tests.support.looped import looped

PER_SECOND = 40
BURST = 4
PLACES = 12
LIMITS = {
    "rate": Limits((Rate(Unit.REQUESTS, 60 * PER_SECOND, Period.MINUTE, BURST),)),
    "slots": Limits(concurrent=PLACES),
}
WARM = 3.0
STEP = 2.5
HELD = 0.2

EVENTS = ("lose", "start B", "replace A", "back")
ORDERS = [order for order in permutations(EVENTS) if order.index("lose") < order.index("back")]


@dataclass(slots=True, eq=False)
class Gateways:
    """Two gateways of two processes each. No process of B runs at first; if there is a `file`, B ran before.
    `unknown` counts the processes that began alone and without knowledge."""

    kind: str
    file: bool
    world: World = field(default_factory=World)
    running: dict[str, SimulatedProcess] = field(default_factory=dict)
    ended: list[SimulatedProcess] = field(default_factory=list)
    files: dict[str, dict[str, tuple[float, int]]] = field(default_factory=dict)
    unknown: int = 0
    busy: int = 0
    most: int = 0

    def start(self, name: str) -> None:
        shares = self.files.get(name, {}) if self.file else {}
        self.unknown += self.world.lost and not shares
        limits, again = {"team t": LIMITS[self.kind]}, f"{name} {len(self.ended)}"
        self.running[name] = SimulatedProcess(self.world, again, 2, limits, shares=shares, other_gateways=True)

    async def kill(self, name: str) -> None:
        """End a process. Its supervisor reports its end, unless the supervisor has ended too."""
        each = self.running.pop(name)
        self.files[name] = dict(each.registry.shares())
        self.busy -= sum(meter.used for meter in each.registry._scopes["team t"].slots)
        await each.kill()
        if not self.world.lost and name == "A1":
            self.world.counter.forget(each.name)
        self.ended.append(each)

    async def befall(self, event: str) -> None:
        match event:
            case "lose" | "back":
                self.world.lost = event == "lose"
            case "start B":
                for name in ("B1", "B2"):
                    self.start(name)
            case _:
                await self.kill("A1")
                self.start("A1")

    async def one(self, name: str) -> None:
        each = self.running[name]
        if not await each.ask():
            return
        held = each.held.pop()
        self.busy += self.kind == "slots"
        self.most = max(self.most, self.busy)
        await asyncio.sleep(HELD if self.kind == "slots" else 0.0)
        if not each.killed:
            self.busy -= self.kind == "slots"
            held.settle(1, 0)

    async def traffic(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        async with asyncio.TaskGroup() as group:
            while loop.time() < until:
                for name in tuple(self.running):
                    group.create_task(self.one(name))
                await asyncio.sleep(1 / (PER_SECOND if self.kind == "slots" else 0.7 * PER_SECOND))


async def run(kind: str, order: tuple[str, ...], file: bool) -> tuple[Gateways, float]:
    """Return the gateways, and the greatest number of units beyond the limit in STEP seconds after an event."""
    every = Gateways(kind, file)
    for name in ("A1", "A2", *(("B1", "B2") if file else ())):
        every.start(name)
    await every.traffic(WARM)
    for name in ("B1", "B2") if file else ():
        await every.kill(name)
    every.most, worst = 0, 0.0
    for event in order:
        await every.befall(event)
        await every.traffic(0.5)  # until the loss is noticed
        begin = asyncio.get_running_loop().time()
        await every.traffic(STEP)
        passed = within(all_admitted([*every.running.values(), *every.ended]), begin, begin + STEP)
        worst = max(worst, passed / STEP / PER_SECOND - 1)
    await stop([*every.running.values()])
    return every, worst


@pytest.mark.thorough
@looped("order", ORDERS, ids=[", ".join(order) for order in ORDERS])
@looped("file", [True, False], ids=["each has its file", "nothing is known"])
@looped("kind", ["rate", "slots"])
@in_virtual_time
async def test_all_together_take_a_limit_and_strangers_an_idle_part_on_top(
    order: tuple[str, ...], file: bool, kind: str
) -> None:
    every, worst = await run(kind, order, file)
    idle = idle_share(3)
    if kind == "rate":
        assert worst <= 0.02 + every.unknown * idle
    else:
        assert every.most <= PLACES + every.unknown * max(1, int(PLACES * idle))
    assert file <= (not every.unknown)
