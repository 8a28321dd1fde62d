"""After the gateway's end, no thread, task or process of limits and ledger remains, and while it runs there are not too
many."""

import asyncio
import os
import threading
from pathlib import Path

from tests.bench.cpu import family, processes
from tests.e2e.accounting.kit import KEY, sqlite_rows
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of, up
from tests.support.postgres import real_postgres
from tests.support.redis import real_redis
from tests.support.waiting import until

TABLE = """\
version: 1
server: {LINES}
vendors: {mock: {}}
models: {mock/echo: {price: {input: 1, output: 1}}}
teams:
  search:
    keys: ["DIGEST"]
    models: ["mock/*"]
    limits: {requests_per_minute: 600, tokens_per_day: 1M, concurrent: 4}
    budget: {usd: 5, per: month}
    on_limit: {queue: 5s}
""".replace("DIGEST", digest_of(KEY))


def name(pid: int) -> str:
    """Return the name of a process. Return an empty text if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def loaders() -> list[int]:
    """Return the child processes of this process that load a ledger."""
    own = family(processes().values(), os.getpid())
    return [each.pid for each in own if name(each.pid) == "dragoman-ledger"]


def names() -> list[str]:
    return sorted(each.name for each in threading.enumerate() if not each.name.startswith("asyncio_"))


async def served(folder: Path, lines: str) -> None:
    """Serve requests with limits, a budget and a ledger, and assert that none of their resources is left."""
    threads, tasks = names(), len(asyncio.all_tasks())
    data = request(
        "POST",
        "/v1/completions",
        {"model": "mock/echo", "prompt": "hi", "max_tokens": 4},
        {"Authorization": f"Bearer {KEY}"},
    )
    async with up(TABLE.replace("LINES", lines), folder) as app:
        answers = await asyncio.gather(*(exchange(port_of(app.url), data) for _ in range(20)))
        assert [answer.status for answer in answers] == [200] * 20
        await until(lambda: len(loaders()) == 1)
    assert loaders() == []
    await until(lambda: names() == threads)  # asyncio's thread that waits for a process ends a moment after it
    assert len(asyncio.all_tasks()) == tasks


async def test_with_a_ledger_in_a_file(tmp_path: Path) -> None:
    await served(tmp_path, "port: 0")
    assert len(sqlite_rows(tmp_path / "ledger.db").statuses) == 20


async def test_with_redis_and_a_ledger_in_postgresql(tmp_path: Path) -> None:
    with real_redis(tmp_path) as redis, real_postgres() as server:
        await served(tmp_path, f"shared: {{redis: '{redis.url}'}}, ledger: '{server.fresh_database()}'")
