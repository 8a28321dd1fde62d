"""Processes that are killed or stopped under load: no row older than a tick is lost, no row is doubled, budgets
hold."""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.accounting.kit import Client, Rows, ended, sqlite_rows, started, table
from tests.support.gateway import RunningGateway
from tests.support.redis import real_redis
from tests.support.waiting import until

TICK = 0.1
WRITING = 0.2
"""Seconds that a write may take on a busy machine."""

LAPSE = 9.0
"""Seconds, less than the time after which the slots of a silent process lapse."""

BUDGET = "budget: {usd: 0.01, per: day}"
PASSES = 500
"""Requests of 2 tokens at 10 USD a million that this budget pays for."""


def nothing_is_lost(client: Client, rows: Rows, cut: float) -> None:
    """Assert that there is one row for each response, except for responses of the last moment before the kill."""
    assert rows.doubled == []
    assert [name for name in rows.lacks(client.answers) if client.at[name] < cut - TICK - WRITING] == []
    assert {name: client.answers.get(name, status) for name, status in rows.statuses.items()} == rows.statuses
    assert rows.requests.keys() <= client.answers.keys() | client.lost
    assert rows.spent[0] == sum(1 for status in rows.statuses.values() if status == 200)


async def killed(gateway: RunningGateway, processes: Mapping[str, list[int]], victims: str) -> float:
    """Kill some processes at once and return the time."""
    cut = asyncio.get_running_loop().time()
    for process in processes[victims]:
        os.kill(process, signal.SIGKILL)
    return cut


async def gone(processes: list[int]) -> None:
    await until(lambda: not any(Path(f"/proc/{process}/cmdline").exists() for process in processes))


@pytest.mark.parametrize(
    "victims", [*(pytest.param(one, marks=pytest.mark.nightly) for one in ("a worker", "the supervisor")), "all"]
)
async def test_rows_and_budget_after_a_kill_under_load(tmp_path: Path, client: Client, victims: str) -> None:
    text = table(BUDGET, "", 2)
    async with started(text, tmp_path) as gateway:
        await gateway.serving(2)
        workers = list(await gateway.in_flight())
        processes = {"a worker": workers[:1], "the supervisor": [gateway.process.pid]}
        processes["all"] = [gateway.process.pid, *workers]
        load = asyncio.create_task(client.load(gateway, 1.2, 150))
        await asyncio.sleep(0.7)
        cut = await killed(gateway, processes, victims)
        await load
        if victims == "a worker":
            await gateway.serving(2, restarts=1)
            assert await gateway.stop() == 0
        else:
            await ended(gateway)
            await gone(workers)
    before = len(client.answers)
    async with started(text, tmp_path) as gateway:
        await until(lambda: (tmp_path / "ledger.db").exists() and sqlite_rows(tmp_path / "ledger.db").spent[0] > 0)
        series: dict[str, float] = {}
        while not any(name.startswith("dragoman_budget_used_ratio") for name in series):
            series = await gateway.metrics()
        nothing_is_lost(client, rows := sqlite_rows(tmp_path / "ledger.db"), cut)
        (ratio,) = (value for name, value in series.items() if name.startswith("dragoman_budget_used_ratio"))
        assert ratio == pytest.approx(rows.spent[0] / PASSES)
        assert await gateway.stop() == 0
    assert before == len(client.answers)


async def test_a_spent_budget_stays_so_after_everything_was_killed(tmp_path: Path, client: Client) -> None:
    text = table(BUDGET)
    async with started(text, tmp_path) as gateway:
        # For a moment, loaded rows may count twice, so one or two requests may be refused too early.
        await client.load(gateway, 5, 200)
        assert PASSES - 2 <= client.statuses[200] <= PASSES
        await until(lambda: sqlite_rows(tmp_path / "ledger.db").spent[0] == client.statuses[200])
        gateway.process.kill()
        await ended(gateway)
    async with started(table(BUDGET, "ledger: {unread: reject}"), tmp_path) as gateway:
        while (status := await client.ask(gateway)) != {429: 1}:
            # Either no process has read the spending yet, or it was not the complete budget.
            assert status == {503: 1} or client.statuses[200] <= PASSES
        assert await client.ask(gateway, 4) == {429: 4}
        assert await gateway.stop() == 0
    assert sqlite_rows(tmp_path / "ledger.db").spent[0] == client.statuses[200]


@pytest.mark.parametrize("workers", [0, 2])
async def test_every_answer_is_in_the_ledger_when_a_process_that_was_told_to_end_has_ended(
    tmp_path: Path, client: Client, workers: int
) -> None:
    async with started(table("", "", workers), tmp_path) as gateway:
        load = asyncio.create_task(client.load(gateway, 1, 200))
        await asyncio.sleep(0.5)
        assert await gateway.stop() == 0
        await load
    rows = sqlite_rows(tmp_path / "ledger.db")
    assert rows.lacks(client.answers) == []
    assert rows.doubled == []
    assert rows.requests.keys() <= client.answers.keys() | client.lost


async def test_a_killed_workers_places_are_free_at_once(tmp_path: Path, client: Client) -> None:
    async with started(table("limits: {concurrent: 4}", "", 2), tmp_path) as gateway:
        await gateway.serving(2)
        assert [(await (await client.hold(gateway)).head())[0] for _ in range(4)] == [200] * 4
        assert await client.ask(gateway, 2) == {429: 2}
        for process in await gateway.in_flight():
            os.kill(process, signal.SIGKILL)
        await gateway.serving(2, restarts=2)
        assert [(await (await client.hold(gateway)).head())[0] for _ in range(4)] == [200] * 4
        assert await client.ask(gateway, 1) == {429: 1}


async def test_a_killed_workers_places_are_free_elsewhere_before_they_lapse(tmp_path: Path, client: Client) -> None:
    text = "limits: {concurrent: 3}", 'shared: {redis: "${REDIS}"}'
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    with real_redis(tmp_path) as redis:
        environment = {"REDIS": redis.url}
        first, second = table(*text, workers=2), table(*text)
        async with started(first, places[0], environment) as one, started(second, places[1], environment) as two:
            await one.serving(2)
            assert [(await (await client.hold(one)).head())[0] for _ in range(3)] == [200] * 3
            assert await client.ask(two) == {429: 1}
            victims = list(await one.in_flight())
            async with asyncio.timeout(LAPSE):
                for process in victims:
                    os.kill(process, signal.SIGKILL)
                while await client.ask(two) != {200: 1}:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.05)
