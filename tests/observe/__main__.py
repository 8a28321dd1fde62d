"""`make observe`: break gateways one way after the other, and show that a real Prometheus fires each alert.

The rules are the shipped rules with their times divided (`short_rules`). At the end, each expression of the dashboards
is queried from the same Prometheus. Takes about five minutes. The exit code is 1 if an alert did not fire, fired before
its cause or was not tried, if a panel is empty, or if a gateway does not exit cleanly.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.observe.breakages import LASTING, ONE_BY_ONE, Breakage, World, from_the_start
from tests.observe.mock_vendor import mock_vendor
from tests.observe.prometheus import RunningPrometheus, running_prometheus
from tests.observe.shipped import RULES, alerts, dashboard_expressions, dashboards, with_values
from tests.observe.short_rules import FACTOR, shortened
from tests.observe.world import ControlGroup, Load, ObservedGateway, main_table, side_table, write_certificate
from tests.support.gateway import free_ports
from tests.support.redis import RealRedis

PATIENCE: Final = 200.0
"""Seconds to wait for an alert."""

WARM: Final = 15.0
"""Seconds of load before the first breakage."""

NEVER_HERE: Final = frozenset({"Dragoman: deployments: Retries that were not made A"})
"""Panels that stay empty, because these breakages do not spend a retry budget."""


@asynccontextmanager
async def whole_world(folder: Path) -> AsyncIterator[World]:
    """Yield a world of Prometheus, Redis, the gateways and the load. They are stopped in reverse order."""
    main, side, other = _gateways(folder)
    (port,) = free_ports(1)
    redis, group = RealRedis(folder, port), ControlGroup(main.folder / "group")
    group.use(0.3)
    write_certificate(main.folder)
    async with AsyncExitStack() as stack:
        redis.start()
        stack.callback(redis.stop)
        for gateway in (main, side, other):
            stack.callback(gateway.kill)
        vendor = await stack.enter_async_context(mock_vendor())
        main.start(main_table(main, vendor, redis.url))
        side.start(side_table(side, 2, "mock/echo"))
        await main.ready()
        await side.ready()
        rules = shortened(RULES.read_text(encoding="utf-8"))
        prometheus = await stack.enter_async_context(running_prometheus(folder, rules))
        prometheus.scrape("dragoman-main", main.admin)
        prometheus.scrape("dragoman-side", side.admin)
        load = Load(f"https://127.0.0.1:{main.port}")
        stack.push_async_callback(load.end)
        yield World(main, side, other, vendor, redis, group, load, prometheus)


def _gateways(folder: Path) -> Iterator[ObservedGateway]:
    small = "tests.observe.small_gateway"
    for name, module, label_sets in (("main", small, 5000), ("side", "proxy", 0), ("other", small, 20)):
        place = folder / name
        place.mkdir()
        bounds = {"OBSERVE_ROWS": "50", "OBSERVE_LABEL_SETS": str(label_sets), "OBSERVE_GROUP": str(place / "group")}
        port, admin = free_ports(2)
        yield ObservedGateway(place, module, port, admin, bounds)


def begin_load(load: Load) -> None:
    """Send requests for everything that a dashboard shows, without causing an alert."""
    for team, model, every in (
        ("search", "fast", 0.1),
        ("search", "mock/account", 1.0),
        ("search", "mock/cut", 20.0),
        ("spender", "fast", 0.5),
        ("noisy", "fast", 5.0),
        ("nobody", "fast", 5.0),
    ):
        load.begin(team, model, every)


async def fired_after(prometheus: RunningPrometheus, alert: str, since: float) -> float | None:
    """Return the seconds until an alert fires, or `None` if it does not fire."""
    while time.monotonic() - since < PATIENCE:
        if alert in await prometheus.firing():
            return time.monotonic() - since
        await asyncio.sleep(0.2)
    return None


async def awaited(prometheus: RunningPrometheus, breakage: Breakage, since: float, before: set[str]) -> list[str]:
    """Print when each alert of a breakage fires. Return the alerts that did not fire, or fired `before` it."""
    wrong = []
    for alert in breakage.alerts:
        after = await fired_after(prometheus, alert, since)
        told = "did not fire" if after is None else f"{after:6.1f} s"
        if alert in before:
            told += ", and before it was broken"
        if after is None or alert in before:
            wrong.append(alert)
        print(f"{alert:32} {breakage.what:56} {told}", flush=True)
    return wrong


async def one_by_one(world: World) -> list[str]:
    """Apply each breakage, one after the other. Return the alerts that did not fire as they must."""
    wrong = []
    for breakage in ONE_BY_ONE:
        before = set() if breakage.broken is from_the_start else await world.prometheus.firing()
        since = time.monotonic()
        async with breakage.broken(world):
            wrong += await awaited(world.prometheus, breakage, since, before)
    return wrong


async def empty_panels(prometheus: RunningPrometheus) -> list[str]:
    """Return the dashboard expressions that have no result."""
    every = [each for board in dashboards().values() for each in dashboard_expressions(board)]
    print(f"\n{len(every)} expressions of the dashboards asked", flush=True)
    return [each.where for each in every if not await prometheus.query(with_values(each.text))]


async def run(folder: Path) -> int:
    """Run everything and return the exit code."""
    print(f"the rules of {RULES.name}, their times divided by {FACTOR}\n")
    print(f"{'alert':32} {'broken':56} fired after", flush=True)
    async with whole_world(folder) as world:
        begin_load(world.load)
        await asyncio.sleep(WARM)
        since, before = time.monotonic(), await world.prometheus.firing()
        async with LASTING.broken(world), asyncio.TaskGroup() as group:
            lasting = group.create_task(awaited(world.prometheus, LASTING, since, before))
            others = group.create_task(one_by_one(world))
        wrong = [*others.result(), *lasting.result()]
        await world.change(budget=int(world.settings["budget"]) + 1)  # a reload that the annotations show
        await asyncio.sleep(3)
        empty = sorted(set(await empty_panels(world.prometheus)) - NEVER_HERE)
        await world.load.end()
        codes = [await gateway.stop() for gateway in (world.main, world.side)]
    tried = {alert for breakage in (LASTING, *ONE_BY_ONE) for alert in breakage.alerts}
    complaints = {
        "did not fire as they must": wrong,
        "were not tried": sorted(alerts().keys() - tried),
        "panels are empty": empty,
        "exit codes of the gateways": [str(code) for code in codes if code],
    }
    for complaint, found in complaints.items():
        if found:
            print(f"{complaint}: {', '.join(found)}")
    print(f"answers by status: {dict(world.load.statuses)}, lost: {dict(world.load.lost)}")
    return int(any(complaints.values()))


if __name__ == "__main__":
    with TemporaryDirectory(prefix="observe-") as scratch:
        sys.exit(asyncio.run(run(Path(scratch))))
