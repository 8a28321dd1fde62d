"""Entries that processes share at one Redis, and the effect on requests when it is lost, slow or sends wrong data."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from config.sections.server_section import SharedSection
from proxy.shared_state.redis_sync import SharedState
from proxy.shared_state.shared_entries import OVERHEAD, EntryRules, SharedEntries
from tests.support.looped import looped
from tests.support.redis import RealRedis, fake_redis, frozen
from tests.support.waiting import until

OWNER = "team canary-of-a-team"
RULES = EntryRules("thinking", 3600.0, 16 << 20, 4 << 20, 8 << 20, 0.05)
PATIENT = replace(RULES, patience=10.0)
"""A time limit for a server that responds, however slow the machine is."""


@asynccontextmanager
async def process(url: str, prefix: str = "dragoman", rules: EntryRules = PATIENT) -> AsyncIterator[SharedEntries]:
    """Yield one process's entries for the duration of the block."""
    state = SharedState(SharedSection.model_validate({"redis": url, "prefix": prefix}), lambda cooldowns, now: None)
    turns = SharedEntries(state.command, lambda: True, state.prefix, rules)
    tasks = [asyncio.create_task(state.run()), asyncio.create_task(turns.run())]
    try:
        yield turns
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def taken(entries: SharedEntries, keys: Sequence[str]) -> dict[str, bytes]:
    found = await entries.take(OWNER, keys)
    assert found is not None
    return found


async def written(turns: SharedEntries, owner: str, key: str) -> None:
    async def there() -> bool:
        return key in (await turns.take(owner, [key]) or {})

    while not await there():  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.005)


@pytest.mark.smoke
async def test_a_turn_that_one_process_keeps_another_finds(redis: RealRedis) -> None:
    async with process(redis.url) as one, process(redis.url) as two, process(redis.url, "staging") as other:
        one.put(OWNER, {"k1": b"first"})
        one.put(OWNER, {"k2": b"\xff\x00"})
        await written(two, OWNER, "k2")
        assert await two.take(OWNER, ["k2", "absent", "k1"]) == {"k1": b"first", "k2": b"\xff\x00"}
        assert await two.take("team b", ["k1"]) == {}
        assert await other.take(OWNER, ["k1"]) == {}


@pytest.mark.smoke
async def test_keys_name_no_team_and_end_by_themselves(redis: RealRedis) -> None:
    async with process(redis.url) as one:
        one.put(OWNER, {"k1": b"first"})
        await written(one, OWNER, "k1")
        keys = [line for line in redis.command("KEYS", "*thinking*") if line.startswith("dragoman")]
        assert len(keys) == 3
        assert "canary" not in "".join(keys)
        for key in keys:
            assert 3_500_000 < int(redis.command("PTTL", key)[0][1:]) <= 3_600_000


async def test_an_owner_s_oldest_go_where_it_has_too_much_and_others_stay(redis: RealRedis) -> None:
    async with process(redis.url, rules=replace(PATIENT, owner_bytes=3000)) as one:
        one.put("team light", {"k": b"mine"})
        for number in range(9):
            one.put(OWNER, {str(number): b"x" * (1000 - OVERHEAD)})
        await written(one, OWNER, "8")
        assert list(await taken(one, [str(number) for number in range(9)])) == ["6", "7", "8"]
        assert await one.take("team light", ["k"]) == {"k": b"mine"}
        one.put(OWNER, {"8": b"y"})
        one.put(OWNER, {"9": b"z"})
        await written(one, OWNER, "9")
        (size,) = [key for key in redis.command("KEYS", "*:size") if key.startswith("dragoman")][:1]
        assert int(redis.command("GET", size)[1]) <= 3000


async def test_what_is_too_old_goes(redis: RealRedis) -> None:
    async with process(redis.url, rules=replace(PATIENT, seconds=1.0)) as one:
        one.put(OWNER, {"old": b"x"})
        await written(one, OWNER, "old")
        await asyncio.sleep(1.05)
        one.put(OWNER, {"new": b"x"})
        await written(one, OWNER, "new")
        assert list(await taken(one, ["old", "new"])) == ["new"]


async def test_a_lookup_returns_no_more_than_so_much(redis: RealRedis) -> None:
    async with process(redis.url, rules=replace(PATIENT, reply_bytes=2500)) as one:
        for number in range(5):
            one.put(OWNER, {str(number): b"x" * 1000})
        await written(one, OWNER, "4")
        assert list(await taken(one, ["4", "3", "2", "1"])) == ["4", "3"]


async def test_a_request_waits_for_a_frozen_redis_once_and_briefly() -> None:
    async with fake_redis(frozen) as lost, process(lost.url, rules=RULES) as one:
        began = time.monotonic()
        assert await one.take(OWNER, ["k"]) is None
        assert time.monotonic() - began < RULES.patience + 10
        began = time.monotonic()
        turns = 1000
        for _ in range(turns):
            assert await one.take(OWNER, ["k"]) is None
            one.put(OWNER, {"k": b"x"})
        assert time.monotonic() - began < turns * RULES.patience / 10
        assert not one._waiting


async def test_without_redis_nothing_is_there_and_nothing_waits() -> None:
    async with process("redis://127.0.0.1:1") as one:
        assert await one.take(OWNER, ["k"]) is None
        assert one.put(OWNER, {"k": b"x"}) is None
        assert not one._waiting


@looped("reply", [None, b"x", 7, [7, None, ["x"]], {}, []])
async def test_what_is_no_turn_is_not_taken_for_one(reply: object) -> None:
    async def command(parts: Sequence[str | bytes | int]) -> object:
        return reply

    assert await SharedEntries(command, lambda: True, "d", RULES).take(OWNER, ["a", "b", "c"]) == {}


async def test_of_one_owner_no_more_lookups_run_at_a_time_than_a_few() -> None:
    running, release = 0, asyncio.Event()

    async def command(parts: Sequence[str | bytes | int]) -> object:
        nonlocal running
        running += 1
        await release.wait()
        return [b"x"]

    turns = SharedEntries(command, lambda: True, "d", replace(RULES, patience=5.0))
    waiting = [asyncio.create_task(turns.take(OWNER, ["a"])) for _ in range(8)]
    await until(lambda: running == 8)
    assert await turns.take(OWNER, ["a"]) is None
    another = asyncio.create_task(turns.take("team light", ["a"]))
    left = asyncio.create_task(turns.take(OWNER, ["a"]))
    await until(lambda: running == 9)
    left.cancel()
    release.set()
    assert await asyncio.gather(*waiting, another) == [{"a": b"x"}] * 9
    await asyncio.gather(left, return_exceptions=True)
    assert (turns._slots, turns._lookups) == ({}, {})


async def test_one_whose_commands_are_slow_holds_nobody_else_up() -> None:
    async def command(parts: Sequence[str | bytes | int]) -> object:
        if parts[-1] == "slow":
            await asyncio.sleep(3600)
        return [b"x"]

    entries = SharedEntries(command, lambda: True, "d", RULES)
    assert await entries.take("heavy", ["slow"]) is None
    assert await entries.take("heavy", ["a"]) is None
    assert entries.put("heavy", {"a": b"x"}) is None
    assert await entries.take("light", ["a"]) == {"a": b"x"}
    assert entries.put("light", {"a": b"x"}) is not None


async def test_after_a_failed_link_nobody_asks_for_a_while() -> None:
    asked = 0

    async def command(parts: Sequence[str | bytes | int]) -> object:
        nonlocal asked
        asked += 1
        raise ConnectionError

    entries = SharedEntries(command, lambda: True, "d", RULES)
    assert await entries.take("a", ["k"]) is None
    assert await entries.take("b", ["k"]) is None
    assert asked == 1


async def test_one_owner_s_writes_leave_room_for_others() -> None:
    async def command(parts: Sequence[str | bytes | int]) -> object:
        return 1

    entries = SharedEntries(command, lambda: True, "d", RULES)
    for number in range(100):
        entries.put("flood", {str(number): b"x" * 500_000})
    assert entries._waiting_bytes <= RULES.waiting_bytes // 2
    assert entries.put("light", {"k": b"x" * 500_000}) is not None


async def test_a_write_that_was_cut_off_is_not_taken_for_done() -> None:
    async def command(parts: Sequence[str | bytes | int]) -> object:
        await asyncio.sleep(3600)
        return 1

    entries = SharedEntries(command, lambda: True, "d", RULES)
    written = entries.put(OWNER, {"k": b"x"})
    assert written is not None
    running = asyncio.create_task(entries.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert written.result() is False


async def test_what_waits_to_be_written_is_bounded() -> None:
    async def command(parts: Sequence[str | bytes | int]) -> object:
        return 1

    turns = SharedEntries(command, lambda: True, "d", RULES)
    for number in range(100):
        turns.put(OWNER, {str(number): b"x" * 500_000})
    assert 0 < turns._waiting_bytes <= 8 * 1024 * 1024


async def test_the_writes_of_one_owner_go_together_and_each_is_told_of_its_end() -> None:
    sent: list[Sequence[str | bytes | int]] = []

    async def command(parts: Sequence[str | bytes | int]) -> object:
        sent.append(parts[9:])
        if len(sent) > 1:
            raise ConnectionError
        return 1

    entries = SharedEntries(command, lambda: True, "d", RULES)
    done = [entries.put(owner, {key: b"x"}) for owner, key in ((OWNER, "a"), (OWNER, "b"), ("c", "d"), (OWNER, "e"))]
    running = asyncio.create_task(entries.run())
    assert [await each for each in done if each is not None] == [True, True, False, False]
    assert sent == [("a", b"x", "b", b"x"), ("d", b"x")]
    assert entries.put(OWNER, {"a": b"x"}) is None
    assert entries._waiting_bytes == 0
    running.cancel()


async def test_what_one_process_deleted_another_that_holds_it_learns(redis: RealRedis) -> None:
    async with process(redis.url) as one, process(redis.url) as two:
        one.put(OWNER, {"k1": b"first", "k2": b"second", "k3": b"third"})
        await written(two, OWNER, "k3")
        assert await two.take(OWNER, ["k2", "absent"], ["k1", "k3"]) == {"k2": b"second"}
        assert await (one.put(OWNER, {"k1": b""}) or asyncio.sleep(0))
        assert await two.take(OWNER, ["k2", "k1"]) == {"k2": b"second", "k1": b""}
        assert await two.take(OWNER, ["k2"], ["k1", "k3"]) == {"k1": b"", "k2": b"second"}


async def test_what_is_used_is_kept_on(redis: RealRedis) -> None:
    async with process(redis.url, rules=replace(PATIENT, seconds=1.0)) as one:
        one.put(OWNER, {"used": b"x", "held": b"x", "left": b"x"})
        await written(one, OWNER, "used")
        for _ in range(4):
            await asyncio.sleep(0.4)
            assert list(await taken(one, ["used"])) == ["used"]
            await one.take(OWNER, [], ["held"])
        assert sorted(await taken(one, ["used", "held", "left"])) == ["held", "used"]
