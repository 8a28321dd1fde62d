"""The breakages, one after the other, and the alerts that each must fire."""

import asyncio
import os
import resource
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from tests.observe.prometheus import RunningPrometheus
from tests.observe.small_gateway import BROKEN
from tests.observe.world import GOOD, ControlGroup, Load, ObservedGateway, main_table, side_table
from tests.support.gateway import FRESH
from tests.support.redis import RealRedis

SPENT: Final = "dragoman_budget_used_ratio"


@dataclass(slots=True)
class World:
    """All parts that can be broken. `main` has teams, TLS, a ledger and Redis; `side` has two workers. `other` is a
    second gateway beside `side`, which `another_table` starts."""

    main: ObservedGateway
    side: ObservedGateway
    other: ObservedGateway
    vendor: str
    redis: RealRedis
    group: ControlGroup
    load: Load
    prometheus: RunningPrometheus
    settings: dict[str, str | int] = field(default_factory=lambda: {**GOOD})

    async def change(self, **settings: str | int) -> None:
        """Change values in the main gateway's config file."""
        self.settings |= settings
        status = await self.main.reload(main_table(self.main, self.vendor, self.redis.url, self.settings))
        assert status == 200, status

    async def in_flight(self) -> int:
        """Return the number of requests that the main gateway has in flight."""
        url = f"http://127.0.0.1:{self.main.admin}/status"
        async with aiohttp.ClientSession() as http, http.get(url) as answer:
            return int((await answer.json())["in_flight"])

    async def restore(self, *names: str) -> None:
        await self.change(**{name: GOOD[name] for name in names})


Break = Callable[[World], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Breakage:
    """A breakage. `broken` breaks something for the length of its block; `alerts` are the alerts that it must fire."""

    what: str
    alerts: tuple[str, ...]
    broken: Break


@asynccontextmanager
async def from_the_start(world: World) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def models(world: World, **named: str) -> AsyncIterator[None]:
    await world.change(**named)
    yield
    await world.restore(*named)


@asynccontextmanager
async def locked_database(world: World) -> AsyncIterator[None]:
    database = sqlite3.connect(world.main.folder / "ledger.db", isolation_level=None, timeout=30)
    database.execute("BEGIN EXCLUSIVE")
    yield
    database.close()


@asynccontextmanager
async def nothing_can_be_written(world: World) -> AsyncIterator[None]:
    before = world.main.limit(resource.RLIMIT_FSIZE, 0)
    yield
    world.main.limit(resource.RLIMIT_FSIZE, before)


@asynccontextmanager
async def slow_models(world: World) -> AsyncIterator[None]:
    await world.change(thinker="echo+first-12000")
    world.load.begin("search", "mock/thinker", 0.5)
    yield
    await world.load.end("search mock/thinker")
    await world.restore("thinker")


async def spent_tokens(world: World) -> float:
    """Return the tokens that the team `spender` has used of its budget."""
    url = f"http://127.0.0.1:{world.main.admin}/metrics"
    async with aiohttp.ClientSession(headers=FRESH) as http, http.get(url) as answer:
        lines = (await answer.text()).splitlines()
    used = sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(SPENT) and 'team="spender"' in line)
    return used * int(world.settings["budget"])


@asynccontextmanager
async def budget_of(world: World, share: float) -> AsyncIterator[None]:
    """Set the team's budget so that it has spent this share of it."""
    await world.load.end("spender fast")
    while await world.in_flight():  # noqa: ASYNC110 - nothing notifies
        await asyncio.sleep(0.2)
    used = await spent_tokens(world)
    assert used > 0
    await world.change(budget=int(used / share))
    yield
    await world.restore("budget")
    world.load.begin("spender", "fast", 0.5)


@asynccontextmanager
async def greedy_team(world: World) -> AsyncIterator[None]:
    world.load.begin("noisy", "fast", 0.1)
    yield
    await world.load.end("noisy fast")


@asynccontextmanager
async def broken_table(world: World) -> AsyncIterator[None]:
    good = main_table(world.main, world.vendor, world.redis.url, world.settings)
    status = await world.main.reload(good + "modles: {}\n")
    assert status != 200
    yield
    await world.change()


@asynccontextmanager
async def little_memory(world: World) -> AsyncIterator[None]:
    world.group.use(0.96)
    yield
    world.group.use(0.3)


@asynccontextmanager
async def failing_observer(world: World) -> AsyncIterator[None]:
    marker = world.group.folder / BROKEN
    marker.touch()
    yield
    marker.unlink()


@asynccontextmanager
async def stuttering(world: World) -> AsyncIterator[None]:
    async def stutter() -> None:
        while True:
            os.kill(world.main.pid, signal.SIGSTOP)
            await asyncio.sleep(0.35)
            os.kill(world.main.pid, signal.SIGCONT)
            await asyncio.sleep(0.25)

    task = asyncio.create_task(stutter())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    os.kill(world.main.pid, signal.SIGCONT)


@asynccontextmanager
async def dying_workers(world: World) -> AsyncIterator[None]:
    async def kill() -> None:
        while True:
            for worker in (await world.side.workers())[:1]:
                os.kill(worker, signal.SIGKILL)
            await asyncio.sleep(2)

    task = asyncio.create_task(kill())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def few_descriptors(world: World) -> AsyncIterator[None]:
    before = world.main.limit(resource.RLIMIT_NOFILE, world.main.descriptors() + 4)
    yield
    world.main.limit(resource.RLIMIT_NOFILE, before)


@asynccontextmanager
async def no_redis(world: World) -> AsyncIterator[None]:
    world.redis.stop()
    yield
    world.redis.start()


@asynccontextmanager
async def another_table(world: World) -> AsyncIterator[None]:
    names = [f"mock/echo{number}" for number in range(40)]
    world.other.start(side_table(world.other, 1, *names))
    await world.other.ready()
    url = f"http://127.0.0.1:{world.other.port}/v1/chat/completions"
    async with aiohttp.ClientSession() as http:
        for name in names:
            body = {"model": name, "messages": [{"role": "user", "content": "Hi"}]}
            async with http.post(url, json=body) as answer:
                await answer.read()
    world.prometheus.scrape("dragoman-side", world.other.admin)
    yield


@asynccontextmanager
async def killed(world: World) -> AsyncIterator[None]:
    world.other.kill()
    yield


LASTING: Final = Breakage(
    "somebody holds the ledger's database", ("DragomanLedgerTrouble", "DragomanLedgerBehind"), locked_database
)
"""A breakage that lasts as long as all others together: the ledger alert needs two minutes."""

ONE_BY_ONE: Final = (
    Breakage("a certificate that ends in 3 days", ("DragomanCertificateExpiring",), from_the_start),
    Breakage("a key that ends in 3 days", ("DragomanKeyExpiring",), from_the_start),
    Breakage(
        "both targets of a route answer 500",
        (
            "DragomanRouteDown",
            "DragomanModelFailing",
            "DragomanBreakerOpen",
            "DragomanErrorBudgetBurnsFast",
            "DragomanErrorBudgetBurnsSlowly",
        ),
        lambda world: models(world, one="error-500", two="error-500"),
    ),
    Breakage(
        "a vendor answers 401", ("DragomanVendorRefusesAccount",), lambda world: models(world, account="error-401")
    ),
    Breakage(
        "a vendor answers 404 for its model", ("DragomanModelGone",), lambda world: models(world, account="error-404")
    ),
    Breakage("a model thinks for 12 s", ("DragomanFirstTokenSlow",), slow_models),
    Breakage("93 % of a budget are spent", ("DragomanBudgetNearlySpent",), lambda world: budget_of(world, 0.93)),
    Breakage("a budget is spent", ("DragomanBudgetSpent",), lambda world: budget_of(world, 1.2)),
    Breakage("a team asks 20 times as often as it may", ("DragomanLimitRefusalsHigh",), greedy_team),
    Breakage("a table with a misspelt key", ("DragomanReloadFailed",), broken_table),
    Breakage("memory.current at 96 % of memory.max", ("DragomanMemoryHigh", "DragomanShedding"), little_memory),
    Breakage("an observer of requests raises", ("DragomanObserverFailing",), failing_observer),
    Breakage("the process stopped every 0.6 s for 0.35 s", ("DragomanLoopLag",), stuttering),
    Breakage("workers killed", ("DragomanWorkersRestarting",), dying_workers),
    Breakage("a limit on descriptors just above those in use", ("DragomanDescriptorsRunningOut",), few_descriptors),
    Breakage("Redis stopped", ("DragomanSharedStateAlone", "DragomanLimitsAlone"), no_redis),
    Breakage("no file can grow, and memory keeps 50 rows", ("DragomanLedgerDropping",), nothing_can_be_written),
    Breakage(
        "a second gateway with another table and 20 label sets",
        ("DragomanTablesDiffer", "DragomanLabelOverflow"),
        another_table,
    ),
    Breakage("a gateway killed", ("DragomanDown",), killed),
)
