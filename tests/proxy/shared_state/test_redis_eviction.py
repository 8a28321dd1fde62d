"""Whether Redis may evict the counters stored there, and which log reports it."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from config.sections.server_section import SharedSection
from proxy.shared_state import redis_eviction as module
from proxy.shared_state.redis_eviction import EvictionWatch, evicting_policy, eviction_warning, policy_now
from proxy.shared_state.redis_sync import SharedState
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.support.looped import looped
from tests.support.redis import real_redis
from tests.support.waiting import until

pytestmark = pytest.mark.smoke


def info(most: object, policy: object) -> object:
    return {"used_memory": 1, "maxmemory": most, "maxmemory_policy": policy}


@looped(
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

    async with asyncio.timeout(10 * module.CHECK_EVERY):
        watch = EvictionWatch(command)
        watching = asyncio.ensure_future(watch.run(LOG))
        await asyncio.sleep(5 * module.CHECK_EVERY)
        watching.cancel()
    assert ["allkeys-lru" in caplog.messages[0], "volatile-lru" in caplog.messages[1]] == [True, True]
    assert len(caplog.messages) == 2
    assert watch.policy == "volatile-lru"


async def test_a_real_redis_is_understood(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.shared_state.redis_eviction.OPERATOR_TIMEOUT", 60.0)  # a busy machine
    with real_redis(tmp_path) as redis:
        section = SharedSection.model_validate({"redis": redis.url})
        assert policy_now(section) is None
        state = SharedState(SharedSection.model_validate({"redis": redis.url}), lambda cooldowns, now: None)
        for parts in (("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")):
            await state.command(("CONFIG", "SET", *parts))
        assert policy_now(section) == "allkeys-lru"
        watch = EvictionWatch(state.command)
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(each) for each in (state.run(), watch.run(LOG))]
            await until(lambda: bool(caplog.messages))
            for each in running:
                each.cancel()
    assert "maxmemory-policy allkeys-lru" in caplog.text
    assert watch.policy == "allkeys-lru"


def test_a_redis_that_does_not_answer_says_nothing_and_the_words_say_what_to_do() -> None:
    assert policy_now(SharedSection.model_validate({"redis": "redis://127.0.0.1:1"})) is None
    assert eviction_warning("allkeys-lru").endswith("set it to noeviction")


LOG = logging.getLogger("test")
