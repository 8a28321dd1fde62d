"""F66: Redis, through which processes share cooldowns, is refused, frozen, slow or restarted; and healthy."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from io import BytesIO
from typing import Final
from unittest.mock import patch

from providers.json_types import JsonObject
from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from tests.faults.check_answers import good, refusal
from tests.faults.fault_rig import AUTH, COUNTED, OPERATOR_KEY, PATIENT, Rig
from tests.faults.lifecycle import listening
from tests.faults.process import process
from tests.faults.registry import fault, single_fault
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.support.http_scripts import json_answer
from tests.support.redis import NOTHING, FakeRedis, answering, fake_redis, frozen, real_redis
from tests.support.vendor_script import Script
from tests.support.waiting import until

LIMITED: Final[Script] = json_answer(429, {"error": {"message": "slow down"}}, [("retry-after", "60")])
SHARED: Final = PATIENT.replace("server: {", 'server: {shared: {redis: "${REDIS}"}, ')
ASKED: Final = 25
"""Requests before and after the loss is detected."""


def said(told: list[str]) -> list[str]:
    """Return the gateway's messages, without the stack traces of a loop that a busy machine blocked."""
    return [line for line in told if not line.startswith("the event loop has stood still")]


@contextmanager
def hurried() -> Iterator[None]:
    """Shorten the built-in waits between two commands, which would make each case take ten seconds."""
    with patch.multiple("proxy.shared_state.link_state", EXCHANGE_EVERY=0.1, FIRST_WAIT=0.3, LONGEST_WAIT=0.3):
        yield


@asynccontextmanager
async def sharing(rig: Rig, redis: str) -> AsyncIterator[WholeGateway]:
    """Run another gateway before the vendors of a rig, which shares their cooldowns through this Redis."""
    path = rig.path.parent / "sharing.yaml"
    path.write_text(SHARED, encoding="utf-8")
    environment = {"KEY": OPERATOR_KEY, "ONE": str(rig.one.port), "TWO": str(rig.two.port), "REDIS": redis}
    source = Source(path, environment)
    with hurried():
        async with running(source, source.load(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), BytesIO(), COUNTED) as app:
            yield app


async def ask(url: str, model: str, stream: bool = False) -> Answer:
    """Return the response of a gateway at this address."""
    body: JsonObject = {"model": model, "prompt": "hi", "stream": stream}
    return await exchange(int(url.rpartition(":")[2]), request("POST", "/v1/completions", body, AUTH))


async def served_alone(rig: Rig, redis: str) -> None:
    """Assert that requests are served before and after the loss of Redis is detected, which is logged once."""
    with listening() as told:
        async with sharing(rig, f"redis://:{OPERATOR_KEY}@{redis}") as app:
            shared = app.front.dispatcher.deployments.breakers
            for _ in range(ASKED):
                assert good(await ask(app.url, "both", rig.stream), rig.stream) == "one"
            await until(lambda: bool(said(told)))
            for _ in range(ASKED):
                assert good(await ask(app.url, "both", rig.stream), rig.stream) == "one"
            assert shared.shared == "alone"
            rig.one.answer(LIMITED)
            assert good(await ask(app.url, "both", rig.stream), rig.stream) == "two"
            assert [name for name, _ in shared.waits(app.front.dispatcher.now())] == ["one/m/default"]
    assert said(told) == [f"Redis at {redis} does not answer; continuing without it"]


@fault(66)
async def redis_that_accepts_and_never_answers(rig: Rig) -> None:
    async with fake_redis(frozen) as fake:
        await served_alone(rig, f"127.0.0.1:{fake.port}")
        assert fake.connections


@fault(66)
async def redis_that_refuses(rig: Rig) -> None:
    async with fake_redis(frozen) as fake:
        port = fake.port
    await served_alone(rig, f"127.0.0.1:{port}")


@single_fault(66)
async def redis_that_is_slower_than_its_limit(rig: Rig) -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            await asyncio.sleep(0.2)
            writer.write(b"+OK\r\n+OK\r\n" + NOTHING)

    async with fake_redis(slow) as fake:
        await served_alone(rig, f"127.0.0.1:{fake.port}")


@single_fault(66)
async def redis_that_comes_and_goes(rig: Rig) -> None:
    """Each response is followed by five invalid ones, so that Redis is lost and found again and again."""
    replies = [*[b"+OK\r\n"] * 5, NOTHING] * 20

    def reply() -> bytes:
        return replies.pop() if replies else NOTHING

    with listening() as told:
        async with fake_redis(answering(reply)) as fake, sharing(rig, fake.url) as app:
            await until(lambda: len(replies) <= 120 - 4 * 6)
            assert good(await ask(app.url, "both"), False) == "one"
            assert isinstance(fake, FakeRedis)
    lost, found = "does not answer; continuing without it", "answers again"
    assert said(told) == [f"Redis at 127.0.0.1:{fake.port} {word}" for word in (lost, found, lost, found)]


@single_fault(66)
async def redis_that_is_started_anew(rig: Rig) -> None:
    with listening() as told, real_redis(rig.path.parent) as redis:
        async with sharing(rig, redis.url) as mine, sharing(rig, redis.url) as yours:
            breakers = [app.front.dispatcher.deployments.breakers for app in (mine, yours)]
            await until(lambda: all(each.shared == "up" for each in breakers))
            redis.stop()
            assert good(await ask(mine.url, "both"), False) == "one"
            await until(lambda: all(each.shared == "alone" for each in breakers))
            rig.one.answer(LIMITED)
            assert good(await ask(mine.url, "both"), False) == "two"
            redis.start()
            await until(lambda: all(each.shared == "up" for each in breakers))
            # Messages that were suppressed meanwhile are logged now.
            await until(lambda: has_heard(yours))
            before = len(rig.one.requests)
            assert good(await ask(yours.url, "both"), False) == "two"
            assert len(rig.one.requests) == before
    assert len(said(told)) == 4


def has_heard(app: WholeGateway) -> bool:
    """Return whether a gateway that has not called the vendor knows by now that the vendor is cooling down."""
    hearsay = app.front.dispatcher.deployments.breakers._shared_cooldowns
    return hearsay is not None and bool(hearsay._known)


@single_fault(66)
async def vendor_that_tells_one_of_two_processes_to_wait(rig: Rig) -> None:
    """Redis is healthy: the other process does not call the vendor either, for as long as its own rules require."""
    with real_redis(rig.path.parent) as redis:
        lines = [f'shared: {{redis: "{redis.url}"}}']
        async with process(rig, lines) as mine, sharing(rig, redis.url) as yours:
            rig.one.answer(LIMITED)
            assert refusal(await ask(mine.url, "one/m")) == (429, "rate_limit_exceeded")
            await until(lambda: has_heard(yours))
            assert good(await ask(yours.url, "both"), False) == "two"
            alone = await ask(yours.url, "one/m")
            assert refusal(alone) == (429, "rate_limit_exceeded")
            assert int(alone.headers["retry-after"]) <= COUNTED.health.requested_most
            assert len(rig.one.requests) == 1
            assert (await mine.metrics())["dragoman_shared_state_up"] == 1.0
        assert OPERATOR_KEY not in "".join(redis.command("ZRANGE", "dragoman:told:1", "0", "-1"))
