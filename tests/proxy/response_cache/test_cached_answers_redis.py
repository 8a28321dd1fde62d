"""The response cache of several gateways at one real Redis: shared, sealed, and never waited for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from providers.json_types import JsonObject
from proxy.process.assemble_app import WholeGateway
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.whole_gateway import port_of, up
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import chat, chat_frames
from tests.support.redis import RealRedis
from tests.support.vendor import FakeVendor
from tests.support.waiting import until

PATH = "/v1/chat/completions"
SECRET = "a-secret-of-sixteen"


@dataclass
class GatewayPair:
    """Two gateways at one Redis, and their vendor."""

    mine: WholeGateway
    yours: WholeGateway
    vendor: FakeVendor


@asynccontextmanager
async def gateways(redis: RealRedis, folder: Path, secret: str = SECRET) -> AsyncIterator[GatewayPair]:
    """Run two gateways for the duration of the block; `secret` is the second one's."""
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(FakeVendor(json_answer(200, chat("kept"))))
        made: list[WholeGateway] = []
        for number, own in enumerate((SECRET, secret)):
            place = folder / str(number)
            place.mkdir()
            made.append(await stack.enter_async_context(up(table(vendor, redis, own), place)))
        await until(lambda: all(each.front.dispatcher.deployments.breakers.shared == "up" for each in made))
        yield GatewayPair(made[0], made[1], vendor)


def table(vendor: FakeVendor, redis: RealRedis, secret: str) -> str:
    address = f"profile: openai_compatible, base_url: '{vendor.base_url}/v1', allow_private: true"
    cache = f"cache: {{where: redis, secret: {secret}}}"
    shared = f"server: {{watch: false, shared: {{redis: '{redis.url}'}}}}"
    return f"version: 1\nvendors: {{v: {{{address}}}}}\nmodels: {{v/m: {{{cache}}}}}\n{shared}\n"


async def ask(app: WholeGateway, *, stream: bool = False, say: str = "hi") -> Answer:
    asked: JsonObject = {
        "model": "v/m",
        "temperature": 0,
        "stream": stream,
        "messages": [{"role": "user", "content": say}],
    }
    return await exchange(port_of(app.url), request("POST", PATH, asked))


def entries(redis: RealRedis) -> list[str]:
    """Return the hashes of the responses stored in Redis."""
    return [name for name in redis.command("KEYS", "dragoman:answers:*") if name.endswith(":turns")]


def keys_in(redis: RealRedis, place: str) -> list[str]:
    return [word for word in redis.command("HKEYS", place) if len(word) == 48]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_one_gateway_asked_another_answers(redis: RealRedis, tmp_path: Path, stream: bool) -> None:
    async with gateways(redis, tmp_path) as pair:
        if stream:
            pair.vendor.default = sse_answer(chat_frames(["one", "two"]))
        first = await ask(pair.mine, stream=stream)
        await until(lambda: bool(entries(redis)))
        again = await ask(pair.yours, stream=stream)
        assert (first.status, again.status) == (200, 200)
        assert (first.headers["x-dragoman-cache"], again.headers["x-dragoman-cache"]) == ("miss", "hit")
        assert len(pair.vendor.requests) == 1


async def test_a_gateway_with_another_secret_finds_nothing(redis: RealRedis, tmp_path: Path) -> None:
    async with gateways(redis, tmp_path, "another-secret-of-it") as pair:
        await ask(pair.mine)
        await until(lambda: bool(entries(redis)))
        assert (await ask(pair.yours)).headers["x-dragoman-cache"] == "miss"
        assert len(pair.vendor.requests) == 2


@pytest.mark.parametrize("poison", ["", "x", "x" * 3_000_000, "another's"])
async def test_what_somebody_else_wrote_there_is_no_answer(redis: RealRedis, tmp_path: Path, poison: str) -> None:
    async with gateways(redis, tmp_path) as pair:
        await ask(pair.mine)
        await ask(pair.mine, say="other")
        await until(lambda: bool(entries(redis)))
        (place,) = entries(redis)
        await until(lambda: len(keys_in(redis, place)) == 2)
        one, other = keys_in(redis, place)
        if poison == "another's":
            script = "redis.call('HSET',KEYS[1],ARGV[1],redis.call('HGET',KEYS[1],ARGV[2]));return 'ok'"
            redis.command("EVAL", script, "1", place, one, other)
        else:
            for key in (one, other):
                redis.command("HSET", place, key, poison)
        told = [(await ask(pair.yours, say=say)).headers["x-dragoman-cache"] for say in ("hi", "other")]
        assert told.count("miss") == (1 if poison == "another's" else 2)


async def test_a_redis_that_hangs_or_is_gone_is_a_miss_and_no_wait(redis: RealRedis, tmp_path: Path) -> None:
    async with gateways(redis, tmp_path) as pair:
        await ask(pair.mine)
        redis.freeze()
        async with asyncio.timeout(30):
            assert (await ask(pair.yours)).headers["x-dragoman-cache"] == "miss"
            assert (await ask(pair.yours)).headers["x-dragoman-cache"] == "hit"
        records = pair.yours.front.gateway
        assert records.in_flight == 0
        redis.thaw()
        redis.stop()
        async with asyncio.timeout(30):
            assert (await ask(pair.mine, say="new")).headers["x-dragoman-cache"] == "miss"
            assert (await ask(pair.mine, say="new")).headers["x-dragoman-cache"] == "hit"


async def test_an_answer_that_another_gateway_renewed_is_found_by_one_whose_own_is_old(
    redis: RealRedis, tmp_path: Path
) -> None:
    async with gateways(redis, tmp_path) as pair:
        await ask(pair.mine)
        await until(lambda: bool(entries(redis)))
        (place,) = entries(redis)
        (key,) = keys_in(redis, place)
        digest = "return redis.sha1hex(redis.call('HGET',KEYS[1],ARGV[1]))"
        first = redis.command("EVAL", digest, "1", place, key)
        for each in (pair.mine, pair.yours):
            monotonic = each.front.features.cache.wall
            each.front.features.cache.wall = lambda now=monotonic: now() + 700  # type: ignore[misc]
        assert (await ask(pair.yours)).headers["x-dragoman-cache"] == "miss"
        await until(lambda: redis.command("EVAL", digest, "1", place, key) != first)
        assert (await ask(pair.mine)).headers["x-dragoman-cache"] == "hit"
        assert len(pair.vendor.requests) == 2
