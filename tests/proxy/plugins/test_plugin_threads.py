"""Threads of one guard."""

import asyncio
import threading

import pytest

from proxy.plugins.foreign_code import Raised, Returned
from proxy.plugins.plugin_threads import THREADS, PluginThreads


async def test_results_and_exceptions_come_back() -> None:
    threads = PluginThreads("p")
    assert await threads.run(lambda: 1, 1.0) == Returned(1)
    found = await threads.run(lambda: 1 // 0, 1.0)
    assert isinstance(found, Raised)
    assert isinstance(found.error, ZeroDivisionError)
    threads.close()


async def test_a_thread_outlives_whatever_is_raised_in_it() -> None:
    threads = PluginThreads("p")

    def fails() -> None:
        raise asyncio.CancelledError

    for _ in range(THREADS + 1):
        assert isinstance(await threads.run(fails, 1.0), Raised)
    assert await threads.run(lambda: 1, 1.0) == Returned(1)
    threads.close()


async def test_nothing_is_queued_beyond_the_threads() -> None:
    threads, release, begun = PluginThreads("p"), threading.Event(), []

    def hang() -> None:
        begun.append(1)
        release.wait()

    running = [asyncio.create_task(threads.run(hang, 0.05)) for _ in range(20)]
    assert all(isinstance(each, TimeoutError) for each in await asyncio.gather(*running, return_exceptions=True))
    assert len(begun) == THREADS
    release.set()
    assert await threads.run(lambda: 2, 5.0) == Returned(2)
    assert len(begun) == THREADS
    threads.close()


async def test_a_cancelled_caller_leaves_its_thread_to_the_next() -> None:
    threads, release = PluginThreads("p"), threading.Event()
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
