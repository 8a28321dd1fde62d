"""Processes that share a Redis: the data that they exchange, and their state when Redis is lost or sends wrong data."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import pytest
from pydantic import SecretStr

from config.sections.server_section import SharedSection
from providers.failure import Failure, FailureKind
from providers.target import Target
from providers.vendor_credential import Credential
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.shared_state.redis_sync import LEAST_PAUSE, SharedState
from tests.providers.dialects.openai.kit import target
from tests.proxy.kit.breakers import fail, middle
from tests.security.test_tls import authority  # noqa: F401 - a fixture
from tests.support.authority import LOCAL, Authority
from tests.support.gateway import free_ports
from tests.support.redis import NOTHING, FakeRedis, RealRedis, answering, bulk, fake_redis, frozen, real_redis
from tests.support.waiting import until

A = replace(target("vllm"), credential=Credential("bearer", key=SecretStr("sk-canary-of-the-operator")))
B = replace(A, deployment="b")
LIMITED = Failure(FailureKind.RATE_LIMITED, "slow down", 429, retry_after=20.0)


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    with (
        patch("proxy.shared_state.link_state.EXCHANGE_EVERY", 0.02),
        patch("proxy.shared_state.link_state.FIRST_WAIT", 0.2),
        patch("proxy.shared_state.link_state.LONGEST_WAIT", 0.2),
    ):
        yield


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Return the data that the process reports."""
    caplog.set_level(logging.INFO, "dragoman")
    return caplog


@dataclass(slots=True)
class Process:
    """The knowledge of one process."""

    breakers: Breakers
    state: SharedState

    def told(self, each: Target, failure: Failure) -> None:
        fail(self.breakers.of(each), now(), failure)

    def wait(self, each: Target) -> float:
        return self.breakers.of(each).wait(now())


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def process(url: str, **settings: object) -> AsyncIterator[Process]:
    """Run one process that shares, for the duration of the block."""
    breakers = Breakers(HealthRules(), middle)
    state = SharedState(SharedSection.model_validate({"redis": url, **settings}), breakers.apply_cooldowns)
    breakers.share(state.cooldowns)
    running = asyncio.create_task(state.run())
    try:
        yield Process(breakers, state)
    finally:
        running.cancel()
        assert isinstance((await asyncio.gather(running, return_exceptions=True))[0], asyncio.CancelledError)


# A real server -------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
async def test_what_a_vendor_tells_one_process_the_others_leave_alone(redis: RealRedis) -> None:
    async with process(redis.url) as one, process(redis.url) as two:
        two.breakers.of(A)
        one.told(A, LIMITED)
        await until(lambda: two.wait(A) > 0)
        assert 10.0 < two.wait(A) <= 20.0
        assert two.breakers.of(A).why is FailureKind.RATE_LIMITED
        assert two.wait(B) == 0
        one.told(B, Failure(FailureKind.AUTH, "no", 401))
        await until(lambda: two.wait(B) > 0)
        assert 30.0 < two.wait(B) <= 60.0
        async with process(redis.url) as late:
            await until(lambda: late.state.up)
            assert late.wait(A) > 0
            assert late.wait(B) > 0


@pytest.mark.smoke
async def test_a_failure_that_one_process_sees_is_its_own_affair(redis: RealRedis) -> None:
    async with process(redis.url) as one, process(redis.url) as two:
        for _ in range(5):
            one.told(A, Failure(FailureKind.CONNECT, "refused"))
        one.told(B, LIMITED)
        await until(lambda: two.wait(B) > 0)
        assert one.wait(A) > 0
        assert two.wait(A) == 0


async def test_processes_with_another_prefix_hear_nothing(redis: RealRedis) -> None:
    async with process(redis.url) as one, process(redis.url, prefix="staging") as two, process(redis.url) as three:
        one.told(A, LIMITED)
        await until(lambda: three.wait(A) > 0)
        await asyncio.sleep(0.2)
        assert two.wait(A) == 0


async def test_what_is_kept_names_no_key_and_nothing_of_the_table_and_ends_by_itself(redis: RealRedis) -> None:
    async with process(redis.url) as one:
        one.told(A, LIMITED)
        one.told(replace(A, model_key="vllm/*", model="canary-of-the-client"), LIMITED)
        await until(lambda: redis.command("ZCARD", "dragoman:told:1") == [":2"])
    kept = redis.command("ZRANGE", "dragoman:told:1", "0", "-1")
    assert kept[0] == "*2"
    assert not any(word in "".join(kept) for word in ("canary", "vllm", "http"))
    assert redis.command("KEYS", "*") == ["*1", "$15", "dragoman:told:1"]
    assert 3_500_000 < int(redis.command("PTTL", "dragoman:told:1")[0][1:]) <= 3_600_000


async def test_words_that_are_over_and_words_beyond_the_most_are_taken_away(redis: RealRedis) -> None:
    redis.command("ZADD", "dragoman:told:1", "5", "old", "inf", "endless")
    with patch("proxy.shared_state.redis_sync.MAX_COOLDOWNS", 3):
        async with process(redis.url) as one:
            for number in range(9):
                one.told(replace(A, deployment=str(number)), replace(LIMITED, retry_after=10.0 + number))
            await until(lambda: redis.command("ZCARD", "dragoman:told:1") == [":3"])
    ends = [float(line) for line in redis.command("ZRANGE", "dragoman:told:1", "0", "-1", "WITHSCORES")[4::4]]
    assert max(ends) - min(ends) == pytest.approx(2000, abs=100)


async def test_a_password_goes_to_the_server_and_to_no_log(tmp_path: Path, told: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "r.sock"
    with real_redis(tmp_path, "--requirepass", "canary", "--unixsocket", str(path)) as server:
        async with (
            process(f"redis://:canary@127.0.0.1:{server.port}/3") as one,
            process(f"unix://:canary@{path}") as two,
            process(f"redis://:canary-of-mine@127.0.0.1:{server.port}") as wrong,
        ):
            await until(lambda: one.state.up and two.state.up)
            await until(lambda: "continuing without it" in told.text)
            assert not wrong.state.up
    assert told.messages == [f"Redis at 127.0.0.1:{server.port} does not answer; continuing without it"]


@pytest.mark.parametrize("known", [True, False])
async def test_over_tls_the_server_has_to_prove_who_it_is(
    known: bool,
    authority: Authority,  # noqa: F811 - a fixture
    tmp_path: Path,
    told: pytest.LogCaptureFixture,
) -> None:
    (port,) = free_ports(1)
    (authority if known else Authority()).server(tmp_path, *LOCAL)
    pem = str(tmp_path / "server.pem")
    files = ("--tls-cert-file", pem, "--tls-key-file", pem, "--tls-ca-cert-file", str(tmp_path / "trusted.pem"))
    with real_redis(tmp_path, "--tls-port", str(port), *files, "--tls-auth-clients", "no"):
        async with process(f"rediss://localhost:{port}") as one:
            await until(lambda: one.state.up or bool(told.messages))
            assert one.state.up is known
    assert bool(told.messages) is not known


async def test_one_that_freezes_and_one_that_is_started_anew_are_found_again(
    redis: RealRedis, told: pytest.LogCaptureFixture
) -> None:
    async with process(redis.url) as one, process(redis.url) as two:
        await until(lambda: one.state.up and two.state.up)
        for each, lose, find in ((A, redis.freeze, redis.thaw), (B, redis.stop, redis.start)):
            lose()
            await until(lambda: not (one.state.up or two.state.up))
            one.told(each, LIMITED)
            find()
            await until(lambda: one.state.up and two.state.up)
            while not two.wait(each):  # noqa: ASYNC110 - see `until`
                await asyncio.sleep(0.005)
    place = f"Redis at 127.0.0.1:{redis.port}"
    lost, found = f"{place} does not answer; continuing without it", f"{place} answers again"
    assert Counter(told.messages) == {lost: 4, found: 4}
    assert {record.levelname for record in told.records if record.message == found} == {"INFO"}


async def test_a_key_of_another_program_is_a_lost_server(redis: RealRedis, told: pytest.LogCaptureFixture) -> None:
    redis.command("SET", "dragoman:told:1", "x")
    async with process(redis.url):
        await until(lambda: bool(told.messages))
    assert told.messages == [f"Redis at 127.0.0.1:{redis.port} does not answer; continuing without it"]


async def test_foreign_words_are_told_once_and_others_heard(redis: RealRedis, told: pytest.LogCaptureFixture) -> None:
    async with process(redis.url) as one, process(redis.url) as two:
        await until(lambda: one.state.up and two.state.up)
        time = int(redis.command("TIME")[2])
        redis.command("ZADD", "dragoman:told:1", str(1000 * (time + 60)), "canary of another program")
        one.told(A, LIMITED)
        await until(lambda: two.wait(A) > 0)
        await asyncio.sleep(0.3)
        assert one.state.up
    assert told.messages == [f"Redis at 127.0.0.1:{redis.port} holds data that no gateway wrote, which is ignored"] * 2


# A server that is lost, or sends wrong data ---------------------------------------------------------------------------


def refused(told: pytest.LogCaptureFixture) -> None:
    (message,) = told.messages
    assert message.endswith("does not answer; continuing without it")


async def test_where_nobody_listens_a_process_is_alone(told: pytest.LogCaptureFixture) -> None:
    (port,) = free_ports(1)
    async with process(f"redis://127.0.0.1:{port}") as one:
        one.told(A, LIMITED)
        await until(lambda: bool(told.messages))
        assert (one.breakers.shared, one.state.up) == ("alone", False)
        assert one.wait(A) > 0
    refused(told)


async def test_one_that_never_answers_is_left_after_its_limit(told: pytest.LogCaptureFixture) -> None:
    async with fake_redis(frozen) as fake, process(fake.url):
        await until(lambda: bool(told.messages))
        assert fake.connections
        # No connection stays open that the client gave up.
        await until(lambda: len(fake.tasks) <= 1)
    refused(told)


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send one byte at a time, for ever."""
    while True:
        writer.write(b"*")
        await writer.drain()
        await asyncio.sleep(0.001)


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a long text without an end."""
    writer.write(b"+OK\r\n+OK\r\n$100000000\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close the connection at once."""


LIES = [
    b"",
    b"\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"-ERR canary\r\n",
    b"-NOAUTH canary\r\n",
    b"-LOADING canary\r\n",
    b"-MOVED 1 127.0.0.1:1\r\n",
    b"+OK\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b":" + b"9" * 10_000 + b"\r\n",
    b"*1\r\n" * 100_000,
    b"*x\r\n",
    b"*99999999999\r\n",
    b"$99999999999\r\nx",
    b"*2\r\n:1\r\n*-1\r\n",
    b"*2\r\n:1\r\n:1\r\n",
    b"*2\r\n$1\r\n1\r\n*0\r\n",
    b"\xff" * 200_000,
]


@pytest.mark.parametrize("serve", [drip, flood, hang_up, *(answering(iter([lie] * 99).__next__) for lie in LIES)])
async def test_one_that_lies_is_a_lost_one(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], told: pytest.LogCaptureFixture
) -> None:
    async with fake_redis(serve) as fake, process(fake.url) as one:
        await until(lambda: bool(told.messages))
        assert not one.state.up
    refused(told)
    assert "canary" not in told.text


async def test_one_that_lies_now_and_then_fills_no_log(told: pytest.LogCaptureFixture) -> None:
    replies = [*[NOTHING] * 2, *[b"+OK\r\n"] * 5] * 100

    async with fake_redis(answering(replies.pop)) as fake, process(fake.url):
        await until(lambda: len(replies) <= 700 - 4 * 7)
    assert len(told.messages) == 4


async def test_a_process_that_is_told_to_end_ends_whatever_it_is_doing() -> None:
    with (
        patch("proxy.shared_state.link_state.EXCHANGE_EVERY", 0.0),
        patch("proxy.shared_state.redis_sync.LEAST_PAUSE", 0.0),
    ):
        async with fake_redis(answering(lambda: NOTHING)) as fake:
            for turns in range(80):
                state = SharedState(SharedSection.model_validate({"redis": fake.url}), lambda words, now: None)
                running = asyncio.create_task(state.run())
                for _ in range(turns):
                    await asyncio.sleep(0)
                running.cancel()
                await asyncio.wait([running], timeout=30.0)
                assert running.done(), turns


async def test_words_from_anybody_darken_nothing_for_longer_than_the_vendor_could() -> None:
    name = b""

    def reply() -> bytes:
        return bulk(name + b":quota", b"999999999999", name + b":auth", b"999999999999")

    async with fake_redis(answering(reply)) as fake, process(fake.url) as one:
        name = one.breakers.of(A).name.encode()
        await until(lambda: one.wait(A) > 0)
        assert 270.0 < one.wait(A) <= 300.0


async def test_a_lookup_that_hangs_is_waited_for_and_not_begun_again(told: pytest.LogCaptureFixture) -> None:
    begun: list[object] = []
    loop = asyncio.get_running_loop()

    async def hang(*arguments: object, **more: object) -> object:
        begun.append(arguments[0])
        return await loop.create_future()

    with patch.object(loop, "getaddrinfo", hang):
        async with process("redis://cache.example"):
            await until(lambda: bool(told.messages))
    assert begun == ["cache.example"]
    assert told.messages == ["Redis at cache.example does not answer; continuing without it"]


async def test_a_crowd_that_is_told_to_wait_is_a_few_commands() -> None:
    commands = 0

    def reply() -> bytes:
        nonlocal commands
        commands += 1
        return NOTHING

    with patch("proxy.shared_state.link_state.EXCHANGE_EVERY", 10.0):
        async with fake_redis(answering(reply)) as fake, process(fake.url) as one:
            await until(lambda: one.state.up)
            loop = asyncio.get_running_loop()
            began = loop.time()
            for number in range(200):
                one.told(replace(A, deployment=str(number)), LIMITED)
                await asyncio.sleep(0.001)
            # The very first command came before the crowd, and the first of the crowd does not wait.
            assert 2 <= commands <= 2 + (loop.time() - began) / LEAST_PAUSE
            assert isinstance(fake, FakeRedis)
