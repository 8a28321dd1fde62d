"""The threads of one guard."""

import asyncio
import logging
import threading

import pytest

from proxy.plugins import plugin_threads
from proxy.plugins.call_plugin import Raised, Returned
from proxy.plugins.plugin_threads import MAX_HUNG, THREADS, PluginThreads

LOG = logging.getLogger("tests.plugin_threads")


async def test_results_and_exceptions_come_back() -> None:
    threads = PluginThreads("p", LOG)
    assert await threads.run(lambda: 1, 1.0) == Returned(1)
    found = await threads.run(lambda: 1 // 0, 1.0)
    assert isinstance(found, Raised)
    assert isinstance(found.error, ZeroDivisionError)
    threads.close()


async def test_a_thread_outlives_whatever_is_raised_in_it() -> None:
    threads = PluginThreads("p", LOG)

    def fails() -> None:
        raise asyncio.CancelledError

    for _ in range(THREADS + 1):
        assert isinstance(await threads.run(fails, 1.0), Raised)
    assert await threads.run(lambda: 1, 1.0) == Returned(1)
    threads.close()


async def test_a_call_that_hangs_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    threads, release = PluginThreads("hangs", LOG), threading.Event()
    running = [asyncio.create_task(threads.run(release.wait, 0.05)) for _ in range(THREADS)]
    assert all(isinstance(each, TimeoutError) for each in await asyncio.gather(*running, return_exceptions=True))
    for _ in range(3):
        assert await threads.run(lambda: 2, 5.0) == Returned(2)
    assert [record.args for record in caplog.records] == [("hangs", 1, 1, MAX_HUNG)]
    assert len(own_threads("hangs")) > THREADS
    release.set()
    while len(own_threads("hangs")) > THREADS:
        assert await threads.run(lambda: 2, 5.0) == Returned(2)
    threads.close()


async def test_so_many_calls_hang_and_nothing_is_queued_beyond_them(caplog: pytest.LogCaptureFixture) -> None:
    threads, release, begun = PluginThreads("many", LOG), threading.Event(), []

    def hang() -> None:
        begun.append(1)
        release.wait()

    for _ in range(MAX_HUNG):
        running = [asyncio.create_task(threads.run(hang, 0.03)) for _ in range(THREADS)]
        assert all(isinstance(each, TimeoutError) for each in await asyncio.gather(*running, return_exceptions=True))
    assert len(begun) == len(own_threads("many")) == MAX_HUNG + THREADS
    with pytest.raises(TimeoutError):
        await threads.run(lambda: 1, 0.01)
    assert len(caplog.records) == 1
    release.set()
    assert await threads.run(lambda: 2, 5.0) == Returned(2)
    while len(own_threads("many")) > THREADS:
        assert await threads.run(lambda: 2, 5.0) == Returned(2)
    assert len(begun) == MAX_HUNG + THREADS
    threads.close()


async def test_calls_that_hang_are_told_once_a_minute_with_their_number(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, release = PluginThreads("slow", LOG), threading.Event()
    for silence in (60.0, 60.0, 60.0, 0.0):
        monkeypatch.setattr(plugin_threads, "LOG_INTERVAL", silence)
        with pytest.raises(TimeoutError):
            await threads.run(release.wait, 0.01)
    assert [record.args for record in caplog.records] == [("slow", 1, 1, MAX_HUNG), ("slow", 3, 4, MAX_HUNG)]
    release.set()
    threads.close()


def own_threads(name: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == f"plugin {name}"]


async def test_a_cancelled_caller_leaves_its_thread_to_the_next() -> None:
    threads, release = PluginThreads("p", LOG), threading.Event()
    tasks = [asyncio.create_task(threads.run(release.wait, 5.0)) for _ in range(THREADS)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with pytest.raises(TimeoutError):
        await threads.run(lambda: 1, 0.01)
    release.set()
    assert await threads.run(lambda: 1, 5.0) == Returned(1)
    threads.close()


async def test_or_at_its_deadline_a_new_one() -> None:
    threads, release = PluginThreads("p", LOG), threading.Event()
    tasks = [asyncio.create_task(threads.run(release.wait, 0.05)) for _ in range(THREADS)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    assert await threads.run(lambda: 1, 5.0) == Returned(1)
    release.set()
    threads.close()
