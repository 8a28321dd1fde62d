"""Requests are read in threads: the event loop continues, and owners take turns."""

import asyncio
import os
import threading

import pytest

from proxy.off_loop.request_threads import THREADS, RequestThreads
from tests.support.waiting import until


@pytest.fixture
def threads() -> RequestThreads:
    return RequestThreads()


async def test_the_result_or_the_error_comes_back(threads: RequestThreads) -> None:
    assert await threads.run("a", lambda: threading.current_thread().name.startswith("request")) is True
    with pytest.raises(LookupError):
        await threads.run("a", lambda: os.environ["NO_SUCH_NAME"])
    threads.close()


async def test_one_owner_leaves_a_thread_to_the_others(threads: RequestThreads) -> None:
    release = threading.Event()
    slow = [asyncio.ensure_future(threads.run("greedy", release.wait)) for _ in range(10)]
    await asyncio.sleep(0)
    assert await threads.run("light", lambda: 1) == 1
    release.set()
    assert await asyncio.gather(*slow) == [True] * 10
    threads.close()


async def test_a_cancelled_request_holds_its_slot_until_its_thread_is_done(threads: RequestThreads) -> None:
    release = threading.Event()
    owners = [str(number) for number in range(THREADS)]
    gone = [asyncio.ensure_future(threads.run(owner, release.wait)) for owner in owners]
    await asyncio.sleep(0.05)
    for task in gone:
        task.cancel()
    late = asyncio.ensure_future(threads.run("late", lambda: 1))
    await asyncio.sleep(0.05)
    assert not late.done()
    release.set()
    assert await late == 1
    await asyncio.wait(gone)
    assert [task.cancelled() for task in gone] == [True] * THREADS
    threads.close()


async def test_what_is_let_go_is_freed_by_a_thread_once_the_callback_has_ended(threads: RequestThreads) -> None:
    class Large:
        def __del__(self) -> None:
            freed.append(threading.get_ident())

    freed: list[int] = []
    things: list[object] = [Large()]
    others: list[object] = [Large()]
    threads.free(things)
    threads.free(others)
    assert [len(things), len(others)] == [1, 1]
    await until(lambda: len(freed) == 2)
    assert threading.get_ident() not in freed
    assert (things, others) == ([], [])
    threads.close()
    things.append(1)
    threads.free(things)
    await until(lambda: not things)
