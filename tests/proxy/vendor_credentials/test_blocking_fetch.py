"""Blocking fetches off the event loop: one thread each, however many calls wait or give up."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from proxy.vendor_credentials.blocking_fetch import InThread
from proxy.vendor_credentials.token_cache import Fetched, Unobtainable
from tests.proxy.vendor_credentials.kit import Numbered


class Blocking:
    """A fetch that blocks until it is released, fails the first `fails` times, and notes where it ran."""

    def __init__(self, fails: int = 0, blocks: bool = True) -> None:
        self.fails = fails
        self.go = threading.Event()
        self.begun: list[str] = []
        if not blocks:
            self.go.set()

    def __call__(self) -> Fetched:
        self.begun.append(threading.current_thread().name)
        number = len(self.begun)
        assert self.go.wait(30)
        if number <= self.fails:
            raise Unobtainable("no")
        return Fetched(Numbered(number), 60.0)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Yield an executor whose threads are ended afterwards."""
    with ThreadPoolExecutor(2, "credentials") as made:
        yield made


def number(fetched: Fetched) -> int:
    """Return the number of the fetch."""
    assert isinstance(fetched.token, Numbered)
    return fetched.token.number


async def test_the_loop_goes_on_while_a_library_blocks(threads: ThreadPoolExecutor) -> None:
    blocking = Blocking()
    waiting = asyncio.create_task(InThread(blocking, threads)())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not waiting.done()
    blocking.go.set()
    assert number(await waiting) == 1
    assert blocking.begun[0].startswith("credentials")


async def given_up(fetch: InThread) -> None:
    """Make a call that times out before the fetch ends."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await fetch()


async def test_a_fetch_that_was_given_up_is_joined_and_not_doubled(threads: ThreadPoolExecutor) -> None:
    blocking = Blocking()
    fetch = InThread(blocking, threads)
    for _ in range(5):
        await given_up(fetch)
    assert len(blocking.begun) == 1
    blocking.go.set()
    assert [number(await fetch()) for _ in range(2)] == [1, 2]


async def test_what_comes_is_as_old_as_it_is_when_it_is_taken(threads: ThreadPoolExecutor) -> None:
    clock = iter([100.0, 130.0])
    fetch = InThread(Blocking(blocks=False), threads, lambda: next(clock))
    assert (await fetch()).lifetime == 60.0 - 30.0


async def test_what_a_library_raises_arrives_unless_it_was_given_up(threads: ThreadPoolExecutor) -> None:
    blocking = Blocking(fails=1)
    fetch = InThread(blocking, threads)
    await given_up(fetch)
    blocking.go.set()
    assert fetch._running is not None
    await asyncio.to_thread(wait, [fetch._running])
    assert number(await fetch()) == 2
    with pytest.raises(Unobtainable, match="no"):
        await InThread(Blocking(fails=1, blocks=False), threads)()


async def test_a_fetch_that_found_no_thread_and_was_given_up_is_not_the_next_one_s(
    threads: ThreadPoolExecutor,
) -> None:
    busy, blocking = Blocking(), Blocking(blocks=False)
    for _ in range(2):
        threads.submit(busy)
    fetch = InThread(blocking, threads)
    await given_up(fetch)
    busy.go.set()
    assert number(await fetch()) == 1
