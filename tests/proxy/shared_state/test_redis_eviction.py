"""Whether Redis may throw away what is counted there, and who hears of it."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from config.sections.server_section import SharedSection
from proxy.shared_state import redis_eviction as module
from proxy.shared_state.redis_eviction import evicting_policy, watch_eviction
from proxy.shared_state.redis_sync import SharedState
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.support.redis import real_redis
from tests.support.waiting import until


def info(most: object, policy: object) -> object:
    return {"used_memory": 1, "maxmemory": most, "maxmemory_policy": policy}


@pytest.mark.parametrize(
    ("reply", "policy"),
    [
        (info(1_000_000, "allkeys-lru"), "allkeys-lru"),
        (info(1_000_000, "volatile-ttl"), "volatile-ttl"),
        (info(1_000_000, "noeviction"), None),
        (info(0, "allkeys-lru"), None),
        ({"maxmemory": 5}, None),
        (info("x", "allkeys-lru"), None),
        (info(1, "a" * 100), None),
        (None, None),
        ([1], None),
    ],
)
def test_only_a_bounded_memory_with_another_policy_throws_keys_away(reply: object, policy: str | None) -> None:
    assert evicting_policy(reply) == policy


@in_virtual_time
async def test_each_change_for_the_worse_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    replies: list[object] = [
        *(None, info(9, "allkeys-lru"), info(9, "allkeys-lru"), info(9, "noeviction")),
        *(info(9, "volatile-lru"), None),
    ]

    async def command(parts: Sequence[str | bytes | int]) -> object:
        if not replies:
            await asyncio.Event().wait()
        if (reply := replies.pop(0)) is None:
            raise ConnectionError
        return reply

    async with asyncio.timeout(10 * module.LOOK_EVERY):
        watching = asyncio.ensure_future(watch_eviction(command, logging.getLogger("test")))
        await asyncio.sleep(5 * module.LOOK_EVERY)
        watching.cancel()
    assert ["allkeys-lru" in caplog.messages[0], "volatile-lru" in caplog.messages[1]] == [True, True]
    assert len(caplog.messages) == 2


async def test_a_real_redis_is_understood(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with real_redis(tmp_path) as redis:
        state = SharedState(SharedSection.model_validate({"redis": redis.url}), lambda cooldowns, now: None)
        for parts in (("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")):
            await state.command(("CONFIG", "SET", *parts))
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(each) for each in (state.run(), watch_eviction(state.command, LOG))]
            await until(lambda: bool(caplog.messages))
            for each in running:
                each.cancel()
    assert "maxmemory-policy allkeys-lru" in caplog.text


LOG = logging.getLogger("test")
