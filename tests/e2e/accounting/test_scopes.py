"""Each scope of limits holds exactly: over workers, over gateways that share a Redis, and over restarts."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.e2e.accounting.kit import KEY, Client, sqlite_rows, started
from tests.proxy.kit.tables import digest_of
from tests.support.gateway import running_gateway
from tests.support.redis import real_redis

BUDGET: Final = 0.01
"""USD: 50 tokens."""

PRICE: Final = 200.0
"""USD per million tokens."""


@dataclass(frozen=True, slots=True)
class Place:
    """A scope, and where a config file has its limits."""

    scope: str
    place: str


PLACES: Final = (
    Place("all clients", "top"),
    Place("key search/ci", "key"),
    Place("vendor mock", "vendor"),
    Place("model mock/echo", "model"),
)


def config(where: Place, limits: str, workers: int = 0, shared: str = "") -> str:
    """A config file before the mock vendor whose limits are those of one scope."""
    at = {name: limits if name == where.place else "" for name in ("top", "key", "vendor", "model")}
    model = f"price: {{input: {PRICE}, output: {PRICE}}}, {at['model']}"
    lines = ["port: ${PORT}", "admin:", "  port: ${ADMIN_PORT}", "drain_grace: 0s", "watch: false"]
    server = "\n".join(f"  {line}" for line in (*lines, f"workers: {workers or 1}", shared))
    return f"""\
version: 1
server:
{server}
{at["top"]}
vendors: {{mock: {{{at["vendor"]}}}}}
models: {{mock/echo: {{{model}}}}}
teams:
  search: {{keys: [{{hash: "{digest_of(KEY)}", name: ci, {at["key"]}}}], models: ["mock/*"]}}
"""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("where", PLACES, ids=lambda each: each.scope)
async def test_a_quota_passes_what_it_says_and_a_restart_gives_none_again(
    tmp_path: Path, client: Client, where: Place, workers: int
) -> None:
    text = config(where, "limits: {requests_per_day: 30}", workers)
    async with running_gateway(text, tmp_path) as gateway:
        await asyncio.gather(*(client.ask(gateway, 10) for _ in range(6)))
        assert client.statuses == {200: 30, 429: 30}
        assert await gateway.stop() == 0
    async with started(text, tmp_path) as gateway:
        assert await client.ask(gateway, 3) == {429: 3}
        assert await gateway.stop() == 0
    assert sqlite_rows(tmp_path / "ledger.db").requests == client.names


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("where", PLACES, ids=lambda each: each.scope)
async def test_a_budget_is_spent_to_what_a_request_holds_and_never_passed(
    tmp_path: Path, client: Client, where: Place, workers: int
) -> None:
    text = config(where, f"budget: {{usd: {BUDGET}, per: day}}", workers)
    async with running_gateway(text, tmp_path) as gateway:
        await asyncio.gather(*(client.ask(gateway, 8) for _ in range(5)))
        assert client.statuses.keys() == {200, 429}
        assert await gateway.stop() == 0
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as link:
        ((spent,),) = link.execute("SELECT sum(cost) FROM spend WHERE scope = ?", (where.scope,)).fetchall()
    assert 0.8 * BUDGET <= spent / 1e9 <= BUDGET


@pytest.mark.parametrize("where", PLACES, ids=lambda each: each.scope)
async def test_two_gateways_of_one_redis_hold_one_limit(tmp_path: Path, client: Client, where: Place) -> None:
    with real_redis(tmp_path) as redis:
        text = config(where, "limits: {requests_per_month: 40}", 0, f"shared: {{redis: '{redis.url}'}}")
        async with AsyncExitStack() as stack:
            made = []
            for name in ("one", "two"):
                (tmp_path / name).mkdir()
                made.append(await stack.enter_async_context(running_gateway(text, tmp_path / name)))
            await asyncio.gather(*(client.ask(gateway, 15) for gateway in made for _ in range(3)))
            for gateway in made:
                assert await gateway.stop() == 0
    assert client.statuses == {200: 40, 429: 50}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("where", PLACES, ids=lambda each: each.scope)
async def test_the_log_and_the_operator_s_page_name_the_scope_that_refused(
    tmp_path: Path, client: Client, where: Place, workers: int
) -> None:
    async with running_gateway(config(where, "budget: {tokens: 10, per: day}", workers), tmp_path) as gateway:
        await client.ask(gateway, 12)
        refused = [line for line in await gateway.logged(12) if line["status"] == 429]
        async with aiohttp.ClientSession() as http:
            pages = [
                await (await http.get(f"{gateway.admin_url}{path}")).text() for path in ("/", "/status", "/limits")
            ]
    named = {"scope": where.scope, "kind": "budget", "unit": "tokens", "period": "day", "limit": "10 tokens"}
    assert refused
    assert [line["limit"] for line in refused] == [named] * len(refused)
    assert [where.scope in page for page in pages] == [True] * 3
    assert f"budget of {where.scope}: 10 tokens per day" in pages[0]
