"""Processes of one gateway, and gateways with one Redis and one PostgreSQL, hold one limit and write one ledger."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from providers.json_types import JsonObject
from proxy.limits.leased_rate import HOLD_SECONDS
from proxy.limits.leased_units import SILENCE_LIMIT
from tests.e2e.accounting.kit import KEY, Client, ended, killed_at_end, postgres_rows, sqlite_rows, started, table
from tests.proxy.kit.raw_client import connected, request
from tests.proxy.kit.whole_gateway import port_of
from tests.support.gateway import RunningGateway, running_gateway, start_gateway
from tests.support.postgres import real_postgres
from tests.support.redis import real_redis

PER_SECOND = 200

ALONE = "does not answer; continuing with this process's share"
"""The log message of a gateway that continues with its own share, which the coordinator reserves for it."""


@pytest.mark.parametrize("workers", [0, 2])
async def test_what_is_below_the_limit_passes_what_is_above_does_not_and_each_has_its_row(
    tmp_path: Path, client: Client, workers: int
) -> None:
    loop = asyncio.get_running_loop()
    async with running_gateway(table("limits: {requests_per_minute: 600}", "", workers), tmp_path) as gateway:
        begin = loop.time()
        assert await client.ask(gateway, 300) == {200: 300}
        await client.load(gateway, 1.5, 600)
        assert client.statuses[200] == pytest.approx(600 + 10 * (loop.time() - begin), rel=0.02)
        assert client.statuses.keys() == {200, 429}
        assert await gateway.stop() == 0
    rows = sqlite_rows(tmp_path / "ledger.db")
    assert rows.requests == client.names
    assert rows.statuses == client.answers
    assert rows.spent[0] == client.statuses[200]


async def places(gateway: RunningGateway, count: int) -> Counter[int]:
    """Return the statuses of `count` concurrent slow streams, which are then abandoned."""
    body: JsonObject = {"model": "mock/hang-1", "prompt": "hi", "max_tokens": 4, "stream": True}
    data = request("POST", "/v1/completions", body, {"Authorization": f"Bearer {KEY}"})
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(port_of(gateway.url))) for _ in range(count)]
        for client in clients:
            await client.send(data)
        return Counter([(await client.head())[0] for client in clients])


@pytest.mark.parametrize("workers", [0, 2])
async def test_places_are_held_together_and_come_back(tmp_path: Path, workers: int) -> None:
    async with running_gateway(table("limits: {concurrent: 6}", "", workers), tmp_path) as gateway:
        assert await places(gateway, 20) == {200: 6, 429: 14}
        while (await places(gateway, 6))[200] < 6:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)


async def together(client: Client, folder: Path, gateways: int, seconds: float) -> None:
    """Assert that `gateways` gateways of two workers hold one limit within 2 % at 1.5 times of it, and write each row.

    On a busy machine a gateway may receive no reply for a while. It then takes at most SILENCE_LIMIT of the limit
    before the others can notice. Units leased by a process that does not run lapse after HOLD_SECONDS, and are lost.

    Passed requests are counted from the beginning to the last one. In a part of that time more may pass: requests that
    a delayed client sends late, and units that were granted earlier and read late. Delays only add time.
    """
    limit = f"limits: {{requests_per_second: {PER_SECOND}}}"
    loop = asyncio.get_running_loop()
    with real_redis(folder) as redis, real_postgres() as postgres:
        environment = {"REDIS": redis.url, "LEDGER": postgres.fresh_database()}
        lines = 'shared: {redis: "${REDIS}"}\nledger: {url: "${LEDGER}"}'
        async with AsyncExitStack() as stack:
            made = []
            for number in range(gateways):
                own = folder / str(number)
                own.mkdir()
                made.append(await stack.enter_async_context(running_gateway(table(limit, lines, 2), own, environment)))
            begin = loop.time()
            each = 1.5 * PER_SECOND / gateways
            await asyncio.gather(*(client.load(gateway, seconds, each, 4) for gateway in made))
            last = max(client.at[name] for name, status in client.answers.items() if status == 200)
            alone = any(ALONE in gateway.messages() for gateway in made)
            most = PER_SECOND * (1.02 * (1 + last - begin) + (SILENCE_LIMIT if alone else 0))
            least = PER_SECOND * (1 + seconds - HOLD_SECONDS)
            assert least <= client.statuses[200] <= most
            for gateway in made:
                assert await gateway.stop() == 0
        rows = postgres_rows(environment["LEDGER"])
    assert not client.lost
    assert rows.requests == client.names
    assert rows.statuses == client.answers
    assert rows.spent[0] == client.statuses[200]


async def test_two_gateways_of_two_workers_hold_one_limit_and_write_one_ledger(tmp_path: Path, client: Client) -> None:
    await together(client, tmp_path, 2, 4)


@pytest.mark.nightly
@pytest.mark.timeout(180)
async def test_four_gateways_of_two_workers_hold_one_limit_and_write_one_ledger(tmp_path: Path, client: Client) -> None:
    await together(client, tmp_path, 4, 30)


@pytest.mark.parametrize("workers", [0, 2])
async def test_a_second_gateway_on_a_sqlite_ledger_is_refused_while_the_first_lives(
    tmp_path: Path, client: Client, workers: int
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    lines = f"ledger: 'sqlite:{tmp_path}/ledger.db'"
    other = f"ledger: {{url: 'sqlite:{tmp_path}/ledger.db', journal: other}}"
    async with started(table("", lines, workers), one) as first:
        assert await client.ask(first, 5) == {200: 5}
        with killed_at_end(start_gateway(table("", other, workers), two, {})) as second:
            second.exit_code = await asyncio.to_thread(second.process.wait)
            assert second.exit_code == 1
            assert "another gateway uses the ledger" in second.messages()
        assert await client.ask(first, 5) == {200: 5}
        first.process.kill()
        await ended(first)
    async with running_gateway(table("", lines, workers), one) as third:
        assert await client.ask(third, 5) == {200: 5}
        assert await third.stop() == 0
