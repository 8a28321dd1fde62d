"""Leases from a real Redis: the script's arithmetic equals the model's, and foreign data there does no harm."""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from config.sections.server_section import SharedSection
from proxy.limits.lease_counter import LeaseCounter
from proxy.shared_state.lease import (
    LeaseGrant,
    LeaseRequest,
    RateRequest,
    SlotsRequest,
    SpendingRequest,
    decode_reply,
    encode_requests,
)
from proxy.shared_state.redis_leases import SCRIPT, SHA, RedisLeases
from proxy.shared_state.redis_sync import SharedState
from tests.support.redis import RealRedis, fake_redis, frozen

TIMED = SCRIPT.replace("local time = redis.call('TIME')", "local time = {ARGV[#ARGV - 1], ARGV[#ARGV]}")
"""The script with a clock that the test sets."""

EPOCH = 1_767_225_600


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """Raise the exchange timeout: delays of a busy machine say nothing about the script."""
    with patch("proxy.shared_state.redis_leases.EXCHANGE_TIMEOUT", 5.0):
        yield


@asynccontextmanager
async def shared(url: str) -> AsyncIterator[SharedState]:
    state = SharedState(SharedSection.model_validate({"redis": url}), lambda cooldowns, now: None)
    running = asyncio.create_task(state.run())
    try:
        yield state
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def random_request(random_: random.Random) -> LeaseRequest:
    """Generate any exchange: few keys, so that they meet, and demands whose sums are exact in any order."""
    key = random_.choice(("a", "b", "c"))
    match random_.randrange(4):
        case 0:
            return SlotsRequest(f"{key} places", 10, *[random_.randrange(6) for _ in range(3)])
        case 1:
            want = random_.choice((0, 1, 40, 10**12))
            amounts = random_.choice((0, 5, 10**12)), random_.choice((0, 30, 60)), random_.choice((100, 2 * 10**12))
            claims = random_.choice((0, 3)), want, random_.choice((0, min(want, 30)))
            return SpendingRequest(f"{key} spent", *amounts, *claims, random_.choice((0, amounts[0] // 2, amounts[0])))
        case _:
            want = random_.choice((0, 1, 5, 60, 900))
            least = random_.randrange(min(want, 20) + 1)
            back = random_.choice((0, 0, 0, 3, 50, -2, -700))
            rate = {"a": (1.0, 60), "b": (1000 / 60, 1000), "c": (1e6 / 60, 10**6)}[key]
            demand, holds = float(random_.choice((0, 1, 7, 64, 1000))), random_.choice((3.0, 12.5, 60.0))
            counts = (
                random_.randrange(3),
                random_.choice((0, 3, -40, 700)),
                random_.choice((0, 5)),
                random_.choice((0, 60)),
                random_.choice((0, 30)),
            )
            alone = random_.choice((0.0, 0.25)), random_.choice((0.0, 0.5)), 0.25 / random_.choice((2, 4))
            return RateRequest(f"{key} rate", *rate, want, least, back, demand, holds, *counts, *alone)


def shares_rounded(grants: Sequence[LeaseGrant | None]) -> list[LeaseGrant | None]:
    return [grant and replace(grant, share=round(grant.share, 12)) for grant in grants]


@pytest.mark.smoke
@pytest.mark.parametrize("seed", range(4))
async def test_the_script_and_the_model_say_the_same(redis: RealRedis, seed: int) -> None:
    random_ = random.Random(seed)
    counter = LeaseCounter()
    now = 28_000_000_000_000
    async with shared(redis.url) as state:
        for _ in range(250):
            steps = (0, 300, 20_000, 400_000, 2_900_000, 11_000_000, 90_000_000, -5_000_000)
            now += random_.choices(steps, (5, 20, 20, 10, 3, 1, 0.5, 0.5))[0]
            process = random_.choice(("one", "two", "three"))
            asks = [random_request(random_) for _ in range(random_.randrange(1, 5))]
            asks = list({ask.key: ask for ask in asks}.values())
            for key in [key for key, kept in counter._keys.items() if now > kept.over]:
                await state.command(("DEL", key))  # it ends by the clock of Redis
            time = divmod(now, 1_000_000)
            words = [process, *encode_requests(asks), str(time[0] + EPOCH), str(time[1])]
            reply = await state.command(("EVAL", TIMED, len(asks) + 1, *(ask.key for ask in asks), "ended", *words))
            grants = counter.exchange(process, asks, now)
            # Redis keeps the fields of a key in any order, and shares are not round numbers.
            assert shares_rounded(decode_reply(reply, asks)) == shares_rounded(grants)


@pytest.mark.smoke
async def test_a_script_that_redis_does_not_know_is_sent_whole_once(redis: RealRedis) -> None:
    async with shared(redis.url) as state:
        leases = RedisLeases(state.run_script, "dragoman", "one")
        epochs = set()
        for want, left in ((3, 597), (4, 593)):
            (grant,) = await leases.exchange([RateRequest("team a", 10.0, 600, want, 1, 0, 0.0)])
            assert grant is not None
            assert replace(grant, level=math.floor(grant.level)) == LeaseGrant(want, left, 0.75, 1, grant.epoch)
            epochs.add(grant.epoch)
        calls = redis.command("INFO", "commandstats")
    assert len(epochs) == 1
    assert any(line.startswith("cmdstat_evalsha:calls=2,") for line in calls), calls


async def test_nothing_asked_is_a_question_whether_it_answers(redis: RealRedis) -> None:
    async with shared(redis.url) as state:
        assert await RedisLeases(state.run_script, "dragoman", "one").exchange([]) == []


async def test_keys_name_nobody_and_end_by_themselves(redis: RealRedis) -> None:
    async with shared(redis.url) as state:
        leases = RedisLeases(state.run_script, "staging", "one")
        asks: Sequence[LeaseRequest] = [
            RateRequest("team canary", 1.0, 60, 1, 1, 0, 1.0),
            SlotsRequest("team canary places", 4, 0, 1),
            SpendingRequest("canary", 5),
        ]
        await leases.exchange(asks)
    names = [line for line in redis.command("KEYS", "*") if "lim" in line]
    assert len(names) == 3
    for name in names:
        assert name.startswith("{staging}:lim:3:")
        assert "canary" not in name
        assert 0 < int(redis.command("PTTL", name)[0][1:]) <= 120_000


def key_of(redis: RealRedis) -> str:
    (name,) = [line for line in redis.command("KEYS", "*") if "lim" in line]
    return name


async def test_what_a_process_held_that_was_seen_to_end_is_free_at_once(redis: RealRedis) -> None:
    async with shared(redis.url) as state:
        one, two = (RedisLeases(state.run_script, "dragoman", name) for name in ("one", "two"))
        (granted,) = await one.exchange([SlotsRequest("a", 2, 0, 2, 2)])
        assert granted is not None
        assert granted == LeaseGrant(2, 2.0, 1.0, 1, granted.epoch)
        (refused,) = await two.exchange([SlotsRequest("a", 2, 0, 1)])
        assert refused is not None
        assert refused.granted == 0
        await two.release_ended("one")
        await two.release_ended("nobody")
        assert (await two.exchange([SlotsRequest("a", 2, 0, 2, 2)]))[0] == granted
        assert 0 < int(redis.command("PTTL", "{dragoman}:lim:3:ended")[0][1:]) <= 20_000
        redis.command("SET", "{dragoman}:lim:3:ended", "somebody's")
        assert (await two.exchange([SlotsRequest("a", 2, 2, 0, 2)]))[0] == replace(granted, granted=0)
    with pytest.raises(ConnectionError):
        async with shared("redis://127.0.0.1:1") as state:
            await RedisLeases(state.run_script, "dragoman", "two").release_ended("one")


@pytest.mark.parametrize("command", [("SET", "x"), ("RPUSH", "x"), ("SADD", "x"), ("ZADD", "1", "x")])
@pytest.mark.parametrize(
    "ask", [RateRequest("a", 1.0, 60, 5, 1, 0, 1.0), SlotsRequest("a", 60, 0, 5), SpendingRequest("a", 0, 0, 60, 0, 5)]
)
async def test_a_key_that_holds_something_else_is_told_and_replaced(
    redis: RealRedis, ask: LeaseRequest, command: tuple[str, ...]
) -> None:
    async with shared(redis.url) as state:
        leases = RedisLeases(state.run_script, "dragoman", "one")
        (before,) = await leases.exchange([ask])
        name = key_of(redis)
        redis.command("DEL", name)
        redis.command(command[0], name, *command[1:])
        assert await leases.exchange([ask]) == [None]
        (grant,) = await leases.exchange([ask])
        assert grant is not None
        assert before is not None
        assert (grant.granted, grant.processes) == (5, 1)
        assert grant.epoch > before.epoch
        assert redis.command("TYPE", name) == ["+hash"]


async def test_a_hash_that_is_larger_than_any_of_ours_is_replaced(redis: RealRedis) -> None:
    asks: Sequence[LeaseRequest] = [SlotsRequest("a", 60, 0, 5)]
    async with shared(redis.url) as state:
        leases = RedisLeases(state.run_script, "dragoman", "one")
        await leases.exchange(asks)
        name = key_of(redis)
        for first in range(0, 5000, 1000):
            redis.command(
                "HSET", name, *[word for number in range(first, first + 1000) for word in (f"f{number}", "x")]
            )
        assert await leases.exchange(asks) == [None]
        (grant,) = await leases.exchange(asks)
    assert grant is not None
    assert grant.granted == 5


@pytest.mark.parametrize("value", ["", "x", "nan", "inf", "-inf", "1e300", "-1e300", "0x10", "9" * 400])
async def test_values_that_nobody_can_mean_grant_no_more_than_a_burst_and_silence_nobody_for_long(
    redis: RealRedis, value: str
) -> None:
    asks: Sequence[LeaseRequest] = [RateRequest("a", 10.0, 600, 10_000, 1, 0, 1.0)]
    async with shared(redis.url) as state:
        leases = RedisLeases(state.run_script, "dragoman", "one")
        await leases.exchange(asks)
        name = key_of(redis)
        for field in ("t", "n", "e"):
            redis.command("HSET", name, field, value)
        redis.command("HSET", name, "p:two", value)
        redis.command("HSET", name, "p:three", f"{value},{value}")
        redis.command("HSET", name, "p:four", ",".join([value] * 5))
        redis.command("HSET", name, "else", value)
        (grant,) = await leases.exchange(asks)
        assert grant is not None
        assert 0 <= grant.granted <= 600
        assert grant.processes == 1
        assert grant.level >= -6_600
    assert "else" not in redis.command("HKEYS", name)


async def test_a_debt_of_a_thousand_years_is_cut_to_ten_bursts(redis: RealRedis) -> None:
    asks: Sequence[LeaseRequest] = [RateRequest("a", 10.0, 600, 1, 1, 0, 1.0)]
    async with shared(redis.url) as state:
        leases = RedisLeases(state.run_script, "dragoman", "one")
        await leases.exchange(asks)
        redis.command("HSET", key_of(redis), "t", "9e14")
        (grant,) = await leases.exchange(asks)
    assert grant is not None
    assert grant.granted == 0
    assert -6_000 <= grant.level <= -5_990


async def test_a_server_that_is_away_or_frozen_is_a_connection_error() -> None:
    async with fake_redis(frozen) as fake, shared(fake.url) as state:
        with patch("proxy.shared_state.redis_leases.EXCHANGE_TIMEOUT", 0.05), pytest.raises(ConnectionError):
            await RedisLeases(state.run_script, "dragoman", "one").exchange([SpendingRequest("a", 1)])


async def test_a_script_that_is_refused_is_a_connection_error(redis: RealRedis) -> None:
    async with shared(redis.url) as state:
        with pytest.raises(ConnectionError):
            await state.run_script(SHA, "return redis.call('NOT A COMMAND')", ["a"], [])
