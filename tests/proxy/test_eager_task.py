"""An EagerTask is a task to the coroutine that runs in it, and continues within the call that wakes it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import pytest

from proxy.eager_task import EagerTask, Signal, running_task
from tests.proxy.kit.eager_tasks import Started, in_callback, turn


def test_a_coroutine_that_waits_for_nothing_has_ended_when_begin_returns(loop: asyncio.AbstractEventLoop) -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("ran")

    def begin() -> None:
        task = EagerTask(work(), loop, lambda error: seen.append(f"ended {error}"))
        task.begin()
        seen.append(f"done {task.done()}")

    in_callback(loop, begin)
    assert seen == ["ran", "ended None", "done True"]


def test_it_goes_on_within_the_call_that_sets_its_signal(loop: asyncio.AbstractEventLoop) -> None:
    signal, seen = Signal(), []

    async def work() -> None:
        for number in range(3):
            await signal
            seen.append(number)

    started = Started(loop, work())

    def set_thrice() -> None:
        for number in range(3):
            assert len(seen) == number
            signal.set()

    in_callback(loop, set_thrice)
    assert seen == [0, 1, 2]
    assert started.ends == [None]


def test_a_signal_set_by_a_running_task_wakes_through_the_loop(loop: asyncio.AbstractEventLoop) -> None:
    signal, seen = Signal(), []

    async def work() -> None:
        await signal
        seen.append("woken")

    async def other() -> None:
        signal.set()
        seen.append("set")
        await asyncio.sleep(0)
        seen.append("went on")

    Started(loop, work())
    loop.run_until_complete(other())
    assert seen[0] == "set"
    assert sorted(seen[1:]) == ["went on", "woken"]


def test_two_tasks_that_wake_each_other_do_not_nest(loop: asyncio.AbstractEventLoop) -> None:
    first, second = Signal(), Signal()
    depths: list[int] = []

    def depth() -> int:
        frame, found = sys._getframe(), 0
        while frame := frame.f_back:  # type: ignore[assignment]  # None ends it
            found += 1
        return found

    async def work(mine: Signal, other: Signal) -> None:
        for _ in range(2_000):
            await mine
            depths.append(depth())
            other.set()

    tasks = [Started(loop, work(first, second)), Started(loop, work(second, first))]
    in_callback(loop, first.set)
    turn(loop, 5_000)
    assert [task.ends for task in tasks] == [[None], [None]]
    assert len(depths) == 4_000
    assert max(depths) - min(depths) <= 10


def test_a_signal_that_nobody_waits_for_is_forgotten(loop: asyncio.AbstractEventLoop) -> None:
    signal = Signal()

    async def work() -> None:
        await signal

    in_callback(loop, signal.set)
    started = Started(loop, work())
    turn(loop)
    assert started.ends == []
    in_callback(loop, signal.set)
    assert started.ends == [None]


def test_what_comes_is_taken_by_a_call_while_the_task_sleeps(loop: asyncio.AbstractEventLoop) -> None:
    signal, taken = Signal(), list[bytes]()
    seen: list[object] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return len(taken) < 2

    async def work() -> None:
        seen.append(await signal.taking(take))
        await signal

    started = Started(loop, work())

    def come() -> None:
        for piece in (b"a", b"b"):
            assert (signal.take, seen) == (take, [])
            if not take(piece):
                signal.refuse(None)
        assert (signal.take, seen, asyncio.current_task()) == (None, [False], None)
        signal.set()

    in_callback(loop, come)
    assert (taken, started.ends) == ([b"a", b"b"], [None])


def test_a_signal_ends_the_taking(loop: asyncio.AbstractEventLoop) -> None:
    signal, seen = Signal(), list[bool]()

    async def work() -> None:
        seen.append(await signal.taking(bool))

    started = Started(loop, work())
    in_callback(loop, signal.set)
    assert (seen, started.ends, signal.take) == ([True], [None], None)


def test_what_the_taking_raises_is_raised_where_it_is_waited_for(loop: asyncio.AbstractEventLoop) -> None:
    signal, failure = Signal(), ConnectionResetError()

    async def work() -> None:
        await signal.taking(bool)

    started = Started(loop, work())
    in_callback(loop, lambda: signal.refuse(failure))
    assert (started.ends, signal.take) == ([failure], None)


def test_of_a_cancelled_wait_nothing_is_taken(loop: asyncio.AbstractEventLoop) -> None:
    signal, seen = Signal(), list[object]()

    async def work() -> None:
        await signal.taking(bool)

    started = Started(loop, work())

    def cancel() -> None:
        started.task.cancel()
        seen.append(signal.take)
        signal.set()

    in_callback(loop, cancel)
    turn(loop)
    assert seen == [None]
    assert [type(error) for error in started.ends] == [asyncio.CancelledError]


def test_a_task_of_asyncio_waits_for_the_signal_alone(loop: asyncio.AbstractEventLoop) -> None:
    async def work() -> tuple[bool, list[object]]:
        signal, seen = Signal(), list[object]()

        def come() -> None:
            seen.append(signal.take)
            signal.set()

        loop.call_soon(come)
        return await signal.taking(bool), seen

    assert loop.run_until_complete(asyncio.wait_for(work(), 5)) == (True, [None])


def test_a_task_of_asyncio_waits_for_a_signal_too(loop: asyncio.AbstractEventLoop) -> None:
    async def work() -> str:
        signal = Signal()
        asyncio.get_running_loop().call_soon(signal.set)
        await signal
        return "woken"

    assert loop.run_until_complete(asyncio.wait_for(work(), 5)) == "woken"


async def _sleeps() -> object:
    await asyncio.sleep(0)
    return await asyncio.sleep(0.001, "slept")


async def _timeout() -> object:
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        return "timed out"
    return None


async def _group() -> object:
    async with asyncio.TaskGroup() as group:
        parts = [group.create_task(asyncio.sleep(0, number)) for number in range(3)]
    return [part.result() for part in parts]


async def _broken_group() -> object:
    async def breaks() -> None:
        raise ValueError("broken")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())
            group.create_task(breaks())
            await asyncio.Event().wait()
    except ExceptionGroup as errors:
        return [str(error) for error in errors.exceptions]
    return None


async def _gather() -> object:
    return await asyncio.gather(
        asyncio.sleep(0, 1), asyncio.shield(asyncio.sleep(0, 2)), asyncio.wait_for(asyncio.sleep(0, 3), 5)
    )


async def _wait_for() -> object:
    try:
        return await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    except TimeoutError:
        return "timed out"


async def _event_lock_queue() -> object:
    event, lock, queue = asyncio.Event(), asyncio.Lock(), asyncio.Queue[int]()

    async def other() -> None:
        async with lock:
            event.set()
            await asyncio.sleep(0)
        queue.put_nowait(7)

    asyncio.current_task()
    task = asyncio.get_running_loop().create_task(other())
    await event.wait()
    async with lock:
        found = await queue.get() if not queue.empty() else None
    found = found or await queue.get()
    await task
    return found


async def _thread() -> object:
    return await asyncio.to_thread(lambda: "from a thread")


@pytest.mark.parametrize(
    ("work", "gives"),
    [
        (_sleeps, "slept"),
        (_timeout, "timed out"),
        (_group, [0, 1, 2]),
        (_broken_group, ["broken"]),
        (_gather, [1, 2, 3]),
        (_wait_for, "timed out"),
        (_event_lock_queue, 7),
        (_thread, "from a thread"),
    ],
)
def test_what_asyncio_offers_to_tasks_works_inside(
    loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[object]], gives: object
) -> None:
    seen: list[object] = []

    async def noted() -> None:
        seen.append(await work())

    async def until_ended() -> None:
        ended = loop.create_future()
        loop.call_soon(EagerTask(noted(), loop, ended.set_result).begin)
        assert await ended is None

    loop.run_until_complete(asyncio.wait_for(until_ended(), 20))
    assert seen == [gives]


def test_current_task_is_the_one_that_runs_and_none_while_it_waits(loop: asyncio.AbstractEventLoop) -> None:
    signal = Signal()
    seen: list[object] = []

    async def work() -> None:
        seen.extend((asyncio.current_task(), running_task()))
        await signal
        seen.extend((asyncio.current_task(), running_task()))

    async def of_asyncio() -> None:
        assert running_task() is asyncio.current_task() is not None

    started = Started(loop, work())
    for current in (asyncio.current_task, running_task):
        assert in_callback(loop, current) is None
    in_callback(loop, signal.set)
    for current in (asyncio.current_task, running_task):
        assert in_callback(loop, current) is None
    assert seen == [started.task] * 4
    loop.run_until_complete(of_asyncio())
