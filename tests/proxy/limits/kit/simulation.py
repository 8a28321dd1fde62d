"""Several processes that share limits, simulated in virtual time. Their registries are the real ones. The coordinator
is a model with a round trip, a clock of its own, and times at which it is lost."""

import asyncio
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.limit import Limits, ScopeBudget
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.reservation import Reservation
from proxy.shared_state.lease import LeaseGrant, LeaseRequest
from proxy.shared_state.membership import MEMBERSHIP_KEY

BERLIN = ZoneInfo("Europe/Berlin")
WALL = 1_795_000_000.0
"""The moment in November 2026 at which virtual time begins."""

EVEN = (1.0,) * 8
UNEVEN = (50.0, 20.0, 10.0, 10.0, 5.0, 3.0, 1.0, 1.0)


@dataclass(slots=True, eq=False)
class World:
    """The coordinator. `step` is how far its clock was set, in seconds. `late` is the share of round trips that take
    from 50 to 500 ms, like the round trips of a process without CPU time. `calls` counts exchanges of more than the
    membership."""

    counter: LeaseCounter = field(default_factory=LeaseCounter)
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    lost: bool = False
    foreign: bool = False
    step: float = 0.0
    round_trip: float = 0.0004
    late: float = 0.0
    calls: int = 0

    async def trip(self) -> None:
        if self.lost:
            await asyncio.sleep(0.05)
            raise ConnectionError("lost")
        if self.late and self.chance.random() < self.late:
            await asyncio.sleep(self.chance.uniform(0.05, 0.5))
        await asyncio.sleep(self.chance.expovariate(2 / self.round_trip))


@dataclass(slots=True, eq=False)
class SimulatedSource:
    """One process's connection to the coordinator. If `cut`, no request arrives; if `deaf`, no response comes back.
    `still` is the number of seconds for which the process stands still after a response; requests wait until `goes`
    is set."""

    world: World
    process: str
    cut: bool = False
    deaf: bool = False
    still: float = 0.0
    goes: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.goes.set()

    async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        world = self.world
        world.calls += any(ask.key != MEMBERSHIP_KEY for ask in asks)
        await world.trip()
        if self.cut:
            await asyncio.sleep(0.05)
            raise ConnectionError("cut")
        if world.foreign:
            return [None] * len(asks)
        now = round((asyncio.get_running_loop().time() + world.step) * 1e6)
        grants = world.counter.exchange(self.process, asks, now)
        await world.trip()
        if self.deaf:
            await asyncio.sleep(0.05)
            raise ConnectionError("deaf")
        if self.still:
            self.goes.clear()
            await asyncio.sleep(self.still)
            self.goes.set()
        return grants


@dataclass(slots=True, eq=False)
class SimulatedProcess:
    """One process with its registry, the requests that it admitted and when, and how long that took. `shares` are
    stored on its disk. If `other_gateways`, other gateways may share the limits."""

    world: World
    name: str
    expected: int
    limits: dict[str, Limits]
    budgets: dict[str, tuple[ScopeBudget, ...]] = field(default_factory=dict)
    shares: dict[str, tuple[float, int]] = field(default_factory=dict)
    other_gateways: bool = False
    admitted: list[tuple[float, int]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    refusals: list[float] = field(default_factory=list)
    asked: int = 0
    held: list[Reservation] = field(default_factory=list)
    killed: bool = False
    source: SimulatedSource = field(init=False)
    leases: LeaseRegistry = field(init=False)
    registry: LimitRegistry = field(init=False)
    task: "asyncio.Task[None]" = field(init=False)

    def __post_init__(self) -> None:
        clock = asyncio.get_running_loop().time
        self.source = SimulatedSource(self.world, self.name)
        self.leases = LeaseRegistry(self.source, self.expected, clock)
        if self.other_gateways:
            self.leases.expect_other_gateways()
        self.registry = LimitRegistry(clock, lambda: WALL + clock(), self.leases, self.shares)
        self.registry.use(self.limits, self.budgets, BERLIN, clock())
        self.task = asyncio.create_task(self.leases.run())

    async def ask(self, tokens: int = 1) -> bool:
        """Send one request of the team. A process that stands still serves it later, a killed one never."""
        await self.source.goes.wait()
        if self.killed:
            return False
        clock = asyncio.get_running_loop().time
        begin = clock()
        self.asked += 1
        outcome = self.registry.admit(("team t",), tokens, 0, begin, WALL + begin)
        if outcome is None:
            outcome = await self.registry.admit_waiting(("team t",), tokens, 0)
        if isinstance(outcome, Reservation):
            self.admitted.append((clock(), tokens))
            self.waits.append(clock() - begin)
            self.held.append(outcome)
            return True
        self.refusals.append(clock() - begin)
        return False

    async def traffic(self, per_second: float, until: float, tokens: Sequence[int] = (1,)) -> None:
        """Send requests at random times without waiting for the previous one."""
        loop = asyncio.get_running_loop()
        chance = random.Random(self.name)
        async with asyncio.TaskGroup() as group:
            while True:
                pause = chance.expovariate(per_second)
                await asyncio.sleep(min(pause, until - loop.time()))
                if loop.time() >= until - 1e-6:  # timers are not more exact
                    return
                group.create_task(self._one(chance.choice(tokens)))

    async def _one(self, tokens: int) -> None:
        if await self.ask(tokens):
            self.held.pop().settle(tokens, 0)

    async def kill(self) -> None:
        """End the process like SIGKILL: it reports nothing, and its waiting requests get no result."""
        self.killed = True
        self.source.goes.set()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        for waiter in self.registry._waiting:
            waiter.outcome.cancel()


def fleet(world: World, limits: Limits, count: int = 8) -> list[SimulatedProcess]:
    return [SimulatedProcess(world, f"p{number}", count, {"team t": limits}) for number in range(count)]


async def run_traffic(
    processes: Sequence[SimulatedProcess], offered: float, seconds: float, weights: Sequence[float] = EVEN
) -> None:
    """Offer `offered` requests per second to all processes, divided by weights."""
    until = asyncio.get_running_loop().time() + seconds
    total = sum(weights[: len(processes)])
    await asyncio.gather(
        *(each.traffic(offered * weight / total, until) for each, weight in zip(processes, weights, strict=False))
    )


async def stop(processes: Sequence[SimulatedProcess]) -> None:
    for each in processes:
        await each.kill()


def all_admitted(processes: Sequence[SimulatedProcess]) -> list[tuple[float, int]]:
    return sorted(entry for each in processes for entry in each.admitted)


def excess(admitted: Sequence[tuple[float, int]], burst: float, per_second: float) -> float:
    """Return the greatest number of units by which any window exceeds `burst + per_second * t`."""
    worst = lowest = 0.0
    total = 0
    for number, (at, units) in enumerate(admitted):
        before = total - per_second * at
        lowest = before if number == 0 else min(lowest, before)
        total += units
        worst = max(worst, total - per_second * at - lowest - burst)
    return worst


def within(admitted: Sequence[tuple[float, int]], begin: float, end: float) -> int:
    """Return the units admitted between two moments."""
    times = [at for at, _ in admitted]
    return sum(units for _, units in admitted[bisect_right(times, begin) : bisect_right(times, end)])


def quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]
