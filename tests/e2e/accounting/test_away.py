"""Redis, PostgreSQL or the disk are unavailable: requests are served, limits stay closed, and no row is lost."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.accounting.kit import Client, postgres_rows, sqlite_rows, started, table
from tests.support.gateway import ROOT, RunningGateway
from tests.support.postgres import real_postgres
from tests.support.redis import real_redis
from tests.support.waiting import until

SMALL_FILES: Final = """\
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
"""


async def alone(gateway: RunningGateway, value: float) -> None:
    """Wait until the gateway's state of counting by itself has this value."""
    while (await gateway.metrics())["dragoman_limits_alone"] != value:
        pass


async def test_a_redis_that_is_lost_and_back_stops_nothing_and_opens_no_limit(tmp_path: Path, client: Client) -> None:
    text = table("limits: {requests_per_minute: 300}", 'shared: {redis: "${REDIS}"}')
    with real_redis(tmp_path) as redis:
        async with started(text, tmp_path, {"REDIS": redis.url}) as gateway:
            assert await client.ask(gateway, 100) == {200: 100}
            assert (await gateway.metrics())["dragoman_limits_alone"] == 0
            redis.stop()
            await client.load(gateway, 1.5, 40)
            await alone(gateway, 1)
            assert client.statuses == {200: 160}
            await client.load(gateway, 1.5, 400)
            # A lease that was in flight when Redis went away counts as used.
            assert 270 <= client.statuses[200] <= 300 + 5 * 10
            redis.start()
            await alone(gateway, 0)
            assert (await client.ask(gateway, 20))[429] >= 10
            assert await gateway.stop() == 0
    assert gateway.messages().count("does not answer; continuing with this process's share") == 1


async def test_keys_that_another_program_wrote_are_said_shown_and_replaced(tmp_path: Path, client: Client) -> None:
    limits = "limits: {requests_per_minute: 600, concurrent: 50}\nbudget: {usd: 1, per: day}"
    with real_redis(tmp_path) as redis:
        text = table(limits, 'shared: {redis: "${REDIS}"}', 2)
        async with started(text, tmp_path, {"REDIS": redis.url}) as gateway:
            await gateway.serving(2)
            assert await client.ask(gateway, 20) == {200: 20}
            names = [line for line in redis.command("KEYS", "*") if ":lim:" in line]
            assert len(names) >= 4
            for name in names:
                redis.command("DEL", name)
                redis.command("RPUSH", name, "somebody's")
            assert await client.ask(gateway, 20) == {200: 20}
            await alone(gateway, 1)
            await until(lambda: all(redis.command("TYPE", name) != ["+list"] for name in names))
            redis.command("FLUSHALL")
            assert await client.ask(gateway, 40) == {200: 40}
            await alone(gateway, 0)
            assert await gateway.stop() == 0
    # Each worker logs its first finding, once a minute.
    assert 1 <= gateway.messages().count("limits: Redis holds foreign data in place of '") <= 2


async def test_a_database_that_is_away_at_the_start_gets_its_rows_later(tmp_path: Path, client: Client) -> None:
    with real_postgres() as server:
        url = server.fresh_database()
        server.stop()
        async with started(table("", 'ledger: {url: "${LEDGER}"}', 2), tmp_path, {"LEDGER": url}) as gateway:
            await client.ask(gateway, 20)
            await until(lambda: "cannot be used: connection refused" in gateway.messages())
            server.start()
            await until(lambda: "can be used again" in gateway.messages())
            await client.ask(gateway, 20)
            assert await gateway.stop() == 0
        assert postgres_rows(url).requests == client.names
    assert gateway.messages().count("cannot be used") == 1


async def test_what_a_full_disk_does_not_take_arrives_with_the_next_start(tmp_path: Path, client: Client) -> None:
    program = tmp_path / "full"
    program.mkdir()
    (program / "sitecustomize.py").write_text(SMALL_FILES, encoding="utf-8")
    text = table("")
    async with started(text, tmp_path, {"PYTHONPATH": f"{program}:{ROOT}"}) as gateway:
        assert await client.ask(gateway, 250) == {200: 250}
        await until(lambda: "requests stay in the journals in" in gateway.messages())
        assert await gateway.stop() == 0
    async with started(text, tmp_path) as gateway:
        assert await gateway.stop() == 0
    assert sqlite_rows(tmp_path / "ledger.db").requests == client.names


async def test_a_ledger_of_a_newer_version_is_left_alone_and_named(tmp_path: Path, client: Client) -> None:
    async with started(table(""), tmp_path) as gateway:
        await client.ask(gateway, 3)
        assert await gateway.stop() == 0
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as link:
        link.execute("UPDATE meta SET version = 99")
        link.commit()
    async with started(table("budget: {usd: 5, per: day}"), tmp_path) as gateway:
        assert await client.ask(gateway, 3) == {200: 3}
        await until(lambda: "has version 99, and this gateway knows versions up to" in gateway.messages())
        assert await gateway.stop() == 0
    assert len(sqlite_rows(tmp_path / "ledger.db").requests) == 3
    assert list((tmp_path / "ledger.db.journal").glob("*.jsonl"))


async def test_a_journal_without_a_folder_is_said_and_requests_are_answered(tmp_path: Path, client: Client) -> None:
    (tmp_path / "file").touch()
    async with started(table("", "ledger: {journal: file/journal}"), tmp_path) as gateway:
        assert await client.ask(gateway, 5) == {200: 5}
        await until(lambda: "cannot be written (Not a directory): " in gateway.messages())
        series = await gateway.metrics()
        assert series["dragoman_ledger_errors_total"] > 0
        assert await gateway.stop() == 0
    assert "rows are lost at the end" in gateway.messages()


@pytest.mark.parametrize("workers", [0, 2])
async def test_other_limits_reach_every_process_by_a_reload(tmp_path: Path, client: Client, workers: int) -> None:
    async with started(table("limits: {requests_per_minute: 600}", "", workers), tmp_path) as gateway:
        assert await client.ask(gateway, 20) == {200: 20}
        await gateway.reload(table("limits: {requests_per_minute: 10}", "", workers))
        # Between workers, earlier use counts at the new rate, and each worker may hold a few units.
        assert (await client.ask(gateway, 30))[429] >= (30 - 10 - 3 * workers if workers else 30)
        await gateway.reload(table("limits: {requests_per_minute: 6000}", "", workers))
        assert await client.ask(gateway, 30) == {200: 30}
        assert await gateway.stop() == 0
