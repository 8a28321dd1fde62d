"""Each scope of limits holds exactly: over workers, gateways of one Redis, reloads, restarts and the loss of Redis. One
gateway has all scopes: each row has requests that no other scope limits."""

import asyncio
import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import aiohttp
import pytest

from providers.json_types import JsonObject
from proxy.limits.limit import user_digest
from tests.e2e.accounting.kit import started
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of
from tests.support.gateway import ROOT, RunningGateway, running_gateway
from tests.support.postgres import real_postgres
from tests.support.redis import real_redis
from tests.support.waiting import until

BUDGET: Final = 0.01
"""USD: 50 tokens."""

PRICE: Final = 200.0
"""USD per million tokens."""

ANN: Final = "ann-4711"

LARGE: Final = "x" * 300 + "\u0000\r\n\u202e"
"""A user's name that neither the ledger nor a header can hold."""


@dataclass(frozen=True, slots=True)
class Row:
    """A scope with limits, and requests that no other scope limits: their key, their model and their user."""

    scope: str
    key: str = "key-of-others"
    model: str = "mock/echo"
    user: str = ""


ROWS: Final = (
    Row("key search/ci", key="key-of-ci"),
    Row("team pages", key="key-of-pages"),
    Row("team others model mock/named", model="mock/named"),
    Row(f"user people/{user_digest(ANN)}", key="key-of-people", user=ANN),
    Row(f"user people/{user_digest(LARGE)}", key="key-of-people", user=LARGE),
    Row(f"user crowd/{user_digest(ANN)}", key="key-of-crowd", user=ANN),
    Row("vendor limited", model="limited/echo"),
    Row("model mock/held", model="mock/held"),
    Row("deployment mock/placed/here", model="mock/placed"),
)
WORKERS: Final = [0, pytest.param(2, marks=pytest.mark.nightly)]

AT_ONCE: Final = 24
"""Concurrent connections."""

PATIENCE: Final = 30.0
"""Seconds."""

PATIENT: Final = "from proxy.shared_state import redis_leases\nredis_leases.EXCHANGE_TIMEOUT = 30.0\n"
"""Code that a gateway runs first. Redis is then lost if it is stopped, but not if a busy machine delays its
response."""

_NUMBERS: Final = itertools.count(1)


def config(limits: str, workers: int = 0, server: str = "", of_all: str = "") -> str:
    """Return a configuration with the mock vendor whose scopes have these limits, each by itself."""
    price = f"price: {{input: {PRICE}, output: {PRICE}}}"
    lines = ["port: ${PORT}", "admin:", "  port: ${ADMIN_PORT}", "drain_grace: 0s", "watch: false"]
    written = "\n".join(f"  {line}" for line in (*lines, f"workers: {workers or 1}", *server.splitlines()))
    named = f"limits: {{models: {{mock/named: {{{limits.partition('{')[2]}}}}}" if limits.startswith("limits") else ""
    return f"""\
version: 1
server:
{written}
{of_all}
defaults: {{{price}}}
vendors: {{mock: {{}}, limited: {{profile: mock, {limits}}}}}
models:
  mock/echo: {{}}
  mock/named: {{}}
  limited/echo: {{}}
  mock/held: {{{limits}}}
  mock/placed: {{deployments: {{here: {{{limits}}}}}}}
teams:
  search: {{keys: [{{hash: "{digest_of("key-of-ci")}", name: ci, {limits}}}], models: ["*"]}}
  pages: {{keys: ["{digest_of("key-of-pages")}"], models: ["*"], {limits}}}
  others: {{keys: ["{digest_of("key-of-others")}"], models: ["*"], {named}}}
  people: {{keys: ["{digest_of("key-of-people")}"], models: ["*"], each_user: {{{limits}}}}}
  crowd: {{keys: ["{digest_of("key-of-crowd")}"], models: ["*"], each_user: {{{limits}}}}}
"""


async def asked(gateway: RunningGateway, row: Row) -> Answer:
    """Return the response to one request of a row, on a connection of its own. Repeat the request while a busy machine
    makes the gateway refuse it."""
    body: JsonObject = {"model": row.model, "prompt": "hi", "max_tokens": 4}
    if row.user:
        body["user"] = row.user
    while True:
        headers = {"Authorization": f"Bearer {row.key}", "X-Request-Id": f"one-{next(_NUMBERS)}"}
        answer = await exchange(port_of(gateway.url), request("POST", "/v1/completions", body, headers))
        if answer.status != 503 or answer.code != "overloaded" or "cannot be read" in answer.message:
            return answer
        await asyncio.sleep(0.05)


async def passed(
    gateways: Iterable[RunningGateway], count: int, rows: Iterable[Row] = ROWS, clients: int = 3
) -> dict[str, int]:
    """Return how many of `count` requests to each gateway pass, for each row. The others are refused."""
    found: Counter[str] = Counter()

    async def one(gateway: RunningGateway, row: Row, number: int) -> None:
        for _ in range(number, count, clients):
            answer = await asked(gateway, row)
            assert answer.status in (200, 429), (row, answer.body)
            found[row.scope] += answer.status == 200

    work = [(gateway, row, number) for row in rows for gateway in gateways for number in range(clients)]
    for start in range(0, len(work), AT_ONCE):
        await asyncio.gather(*(one(*each) for each in work[start : start + AT_ONCE]))
    return dict(found)


async def used_up(
    gateways: Sequence[RunningGateway],
    count: int,
    most: int,
    rows: Iterable[Row] = ROWS,
    before: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    """Return how many requests of each row have passed, including `before`, when `count` requests were sent, and
    further ones until `most` passed. Several processes may refuse too early for a moment, when some have read more of
    the ledger than others, but never too late."""
    found = Counter(await passed(gateways, count, rows)) + Counter(before)
    async with asyncio.timeout(PATIENCE):
        while lacking := [row for row in rows if found[row.scope] < most]:
            found += Counter(await passed(gateways, 3, lacking))
    return dict(found)


def each(number: int, rows: Iterable[Row] = ROWS) -> dict[str, int]:
    return {row.scope: number for row in rows}


def loaded(folder: Path) -> int:
    file = folder / "ledger.db"
    if not file.exists():  # the loader, which creates it, runs at a low priority
        return 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as link:
        ((count,),) = link.execute("SELECT count(*) FROM request WHERE status = 200").fetchall()
    return int(count)


@pytest.mark.parametrize("workers", [0, 2])
async def test_quotas_pass_what_they_say_and_neither_a_reload_nor_a_kill_gives_any_again(
    tmp_path: Path, workers: int
) -> None:
    """The scope of all clients passes as many as all the others let through, and 30 more."""
    total = 30 * len(ROWS)
    of_all = f"limits: {{requests_per_day: {total + 30}}}"
    text = config("limits: {requests_per_day: 30}", workers, of_all=of_all)
    free, after = Row("all clients"), config("limits: {requests_per_day: 35}", workers)
    async with started(text, tmp_path) as gateway:
        assert await used_up([gateway], 60, 30) == each(30)
        assert await used_up([gateway], 60, 30, [free]) == {free.scope: 30}
        await gateway.reload(after)
        assert await used_up([gateway], 9, 5) == each(5)
        await gateway.reload(text)
        assert await passed([gateway], 3) == each(0)
        passing = total + 30 + 5 * len(ROWS)
        await until(lambda: loaded(tmp_path) == passing)
        gateway.process.kill()
    async with running_gateway(text, tmp_path) as gateway:
        assert await passed([gateway], 3, (*ROWS, free)) == each(0, (*ROWS, free))
        assert await gateway.stop() == 0
    assert loaded(tmp_path) == passing


@pytest.mark.parametrize("workers", [0, 2])
async def test_budgets_are_spent_to_what_a_request_holds_and_never_passed(tmp_path: Path, workers: int) -> None:
    rows = [row for row in ROWS if " model " not in row.scope]
    async with running_gateway(config(f"budget: {{usd: {BUDGET}, per: day}}", workers), tmp_path) as gateway:
        assert all(0 < count < 40 for count in (await passed([gateway], 40, rows)).values())
        assert await gateway.stop() == 0
    spent = "SELECT scope, sum(cost) FROM {} GROUP BY scope"
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as link:
        found = dict([*link.execute(spent.format("spend")), *link.execute(spent.format("spend_user"))])
    for row in rows:
        assert 0.8 * BUDGET <= found[row.scope] / 1e9 <= BUDGET, row


async def alone(gateways: Iterable[RunningGateway], value: float) -> None:
    for gateway in gateways:
        while (await gateway.metrics())["dragoman_limits_alone"] != value:
            pass


async def test_gateways_of_one_redis_hold_one_limit_over_reloads_and_without_it(tmp_path: Path) -> None:
    """Without Redis, each gateway has its own claim, and an equal part of the unclaimed rest."""
    patient = tmp_path / "patient"
    patient.mkdir()
    (patient / "sitecustomize.py").write_text(PATIENT, encoding="utf-8")
    environment = {"PYTHONPATH": f"{patient}:{ROOT}"}
    with real_redis(tmp_path) as redis, real_postgres() as server:
        shared = f"shared: {{redis: '{redis.url}'}}\nledger: '{server.fresh_database()}'"
        quotas = [config(f"limits: {{requests_per_month: {most}}}", 0, shared) for most in (40, 50, 90)]
        async with AsyncExitStack() as stack:
            made = []
            for name in ("one", "two"):
                (tmp_path / name).mkdir()
                made.append(await stack.enter_async_context(running_gateway(quotas[0], tmp_path / name, environment)))
            found = await used_up(made, 30, 40)
            assert found == each(40)
            for gateway in made:
                await gateway.reload(quotas[1])
            found = await used_up(made, 12, 50, before=found)
            assert found == each(50)
            for gateway in made:
                await gateway.reload(quotas[2])
            redis.stop()
            await alone(made, 1)
            found = dict(Counter(found) + Counter(await passed(made, 45)))
            assert all(70 <= count <= 90 for count in found.values())
            redis.start()
            await alone(made, 0)
            found = await used_up(made, 6, 90, before=found)
            for gateway in made:
                assert await gateway.stop() == 0
    assert found == each(90)


@pytest.mark.parametrize("workers", WORKERS)
async def test_the_log_the_operator_s_page_and_the_client_are_told_the_scope_that_refused(
    tmp_path: Path, workers: int
) -> None:
    async with running_gateway(config("limits: {tokens_per_day: 10}", workers), tmp_path) as gateway:
        told, asks = {}, 0
        for row in ROWS:
            answer = await asked(gateway, row)
            while answer.status == 200:
                answer, asks = await asked(gateway, row), asks + 1
            told[row.scope] = answer.message
        lines = [line for line in await gateway.logged(asks + len(ROWS)) if line["status"] == 429]
        async with aiohttp.ClientSession() as http:
            pages = [
                await (await http.get(f"{gateway.admin_url}{path}")).text() for path in ("/", "/status", "/limits")
            ]
            metrics = await (await http.get(f"{gateway.admin_url}/metrics")).text()
    named = {"kind": "quota", "unit": "tokens", "period": "day", "limit": "10 tokens"}
    found = {str(limit.pop("scope")): limit for line in lines if isinstance(limit := line["limit"], dict)}
    assert (len(lines), found) == (len(ROWS), {row.scope: named for row in ROWS})
    for row in ROWS:
        assert [row.scope in text for text in (told[row.scope], *pages)] == [True] * 4, row
    assert not any(text in metrics for text in (ANN, user_digest(ANN), user_digest(LARGE)))
    assert 'limit="each user: tokens per day"' in metrics


async def test_without_a_required_user_a_request_is_refused_on_each_api(tmp_path: Path) -> None:
    text = (
        config("limits: {requests_per_day: 2}")
        .replace("crowd: {", "crowd: {")
        .replace("each_user: {limits", "each_user: {required: true, limits")
    )
    chat: JsonObject = {"model": "mock/echo", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}
    asking: dict[str, tuple[JsonObject, JsonObject]] = {
        "/v1/chat/completions": (chat, {"user": ANN}),
        "/v1/responses": ({"model": "mock/echo", "input": "hi", "store": False}, {"safety_identifier": ANN}),
        "/v1/messages": (chat, {"metadata": {"user_id": ANN}}),
        "/v1/embeddings": ({"model": "mock/echo", "input": "hi"}, {"user": ANN}),
    }
    headers = {"Authorization": "Bearer key-of-people"}
    async with running_gateway(text, tmp_path) as gateway:
        statuses = []
        for path, (body, user) in asking.items():
            refused = await exchange(port_of(gateway.url), request("POST", path, body, headers))
            assert (refused.status, "'user' is missing" in refused.message) == (400, True), path
            answer = await exchange(port_of(gateway.url), request("POST", path, {**body, **user}, headers))
            statuses.append(answer.status)
    assert statuses == [200, 200, 429, 429]
