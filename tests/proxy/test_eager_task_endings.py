"""The cancellation of an EagerTask, the exceptions that it does not pass on, and the objects that it leaves behind."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import pytest

from proxy.eager_task import EagerTask, Signal
from tests.proxy.kit.eager_tasks import Started, in_callback, turn, uncollected

WAITS: dict[str, Callable[[], Awaitable[object]]] = {
    "signal": Signal,
    "future": lambda: asyncio.get_running_loop().create_future(),
    "event": lambda: asyncio.Event().wait(),
    "sleep": lambda: asyncio.sleep(3600),
    "shield": lambda: asyncio.shield(asyncio.get_running_loop().create_future()),
    "gather": lambda: asyncio.gather(asyncio.Event().wait()),
}


@pytest.mark.parametrize("kind", WAITS)
def test_cancel_raises_in_the_next_turn_whatever_is_waited_for(loop: asyncio.AbstractEventLoop, kind: str) -> None:
    seen: list[object] = []

    async def work() -> None:
        try:
            await WAITS[kind]()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    started = Started(loop, work())

    def cancel_twice() -> None:
        assert started.task.cancel()
        assert started.task.cancel()
        seen.append("asked")

    in_callback(loop, cancel_twice)
    turn(loop)
    assert seen == ["asked", "cancelled"]
    assert [type(end) for end in started.ends] == [asyncio.CancelledError]
    assert started.task.done()
    assert not started.cancel()


def test_a_signal_set_after_a_cancel_does_not_wake_twice(loop: asyncio.AbstractEventLoop) -> None:
    signal, after = Signal(), Signal()
    seen: list[str] = []

    async def work() -> None:
        try:
            await signal
        except asyncio.CancelledError:
            seen.append("cancelled")
        await after
        seen.append("after")

    started = Started(loop, work())

    def cancel_and_set() -> None:
        started.task.cancel()
        signal.set()

    in_callback(loop, cancel_and_set)
    turn(loop)
    assert seen == ["cancelled"]
    in_callback(loop, after.set)
    assert seen == ["cancelled", "after"]
    assert started.ends == [None]


def test_a_task_that_cancels_itself_is_cancelled_at_its_next_wait_or_its_end(loop: asyncio.AbstractEventLoop) -> None:
    async def waits(signal: Signal) -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await signal

    async def returns() -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr]

    for work in (waits(Signal()), returns()):
        started = Started(loop, work)
        turn(loop)
        assert [type(end) for end in started.ends] == [asyncio.CancelledError]


def test_context_variables_are_the_tasks_own_and_kept_over_waits(loop: asyncio.AbstractEventLoop) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="none")
    signals = Signal(), Signal()
    seen: list[str] = []

    async def work(name: str, signal: Signal) -> None:
        seen.append(variable.get())
        variable.set(name)
        await signal
        seen.append(variable.get())
        await asyncio.sleep(0)
        seen.append(variable.get())

    Started(loop, work("a", signals[0]))
    Started(loop, work("b", signals[1]))
    for signal in signals:
        in_callback(loop, signal.set)
    turn(loop)
    assert sorted(seen) == ["a", "a", "b", "b", "none", "none"]
    assert in_callback(loop, variable.get) == "none"


def test_an_exception_goes_to_ended(loop: asyncio.AbstractEventLoop) -> None:
    async def fails(signal: Signal) -> None:
        await signal
        raise ValueError("failed")

    signal = Signal()
    started = Started(loop, fails(signal))
    in_callback(loop, signal.set)
    assert repr(started.ends) == "[ValueError('failed')]"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_process_goes_to_ended_and_on(kind: type[BaseException]) -> None:
    loop = asyncio.new_event_loop()
    signal, ends = Signal(), list[BaseException | None]()

    async def work() -> None:
        await signal
        raise kind

    task = EagerTask(work(), loop, ends.append)
    loop.call_soon(task.begin)
    loop.call_soon(signal.set)
    with pytest.raises(kind):
        loop.run_forever()
    loop.close()
    assert [type(end) for end in ends] == [kind]


@pytest.mark.parametrize("end", ["returns", "fails", "cancelled", "cancelled at a future", "cancelled while it runs"])
def test_a_task_that_ended_leaves_no_cycle(loop: asyncio.AbstractEventLoop, end: str) -> None:
    class Held:
        pass

    died: list[str] = []

    async def work(signal: Signal) -> None:
        held = Held()
        weakref.finalize(held, died.append, end)
        if end == "cancelled at a future":
            await asyncio.sleep(3600)
        if end == "cancelled while it runs":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
        await signal
        if end == "fails":
            raise ValueError

    def ended(error: BaseException | None) -> None:
        pass

    signal = Signal()
    with uncollected():
        task = EagerTask(work(signal), loop, ended)
        in_callback(loop, task.begin)
        in_callback(loop, task.cancel if end.startswith("cancelled") else signal.set)
        turn(loop)
        assert task.done()
        reference = weakref.ref(task)
        del task
        assert reference() is None
        assert died == [end]
