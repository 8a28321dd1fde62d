"""A turn of the lean loop does what a turn of asyncio's own does."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from proxy.lean_event_loop import FEW_TIMERS, LeanEventLoop, new_event_loop, run
from proxy.loop_clock import loop_clock

pytestmark = pytest.mark.smoke


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop, "lean": LeanEventLoop}
"""What holds for one has to hold for the other."""


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    made = LOOPS[request.param]()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    yield ends
    for end in ends:
        end.close()


def test_a_process_that_serves_runs_on_it() -> None:
    async def kind() -> tuple[type, bool]:
        return type(asyncio.get_running_loop()), loop_clock() is time.monotonic

    assert run(kind()) == (LeanEventLoop, True)
    made = new_event_loop()
    made.close()
    assert type(made) is LeanEventLoop


def test_timers_fire_in_their_order_and_never_early(loop: asyncio.AbstractEventLoop) -> None:
    fired: list[tuple[int, float]] = []
    begun = loop.time()

    def fire(number: int) -> None:
        fired.append((number, loop.time() - begun))

    for number, delay in enumerate((0.02, 0.0, 0.01, -1.0)):
        loop.call_later(delay, fire, number)
    loop.call_later(0.03, loop.stop)
    loop.run_forever()
    assert [number for number, _ in fired] == [3, 1, 2, 0]
    resolution = time.get_clock_info("monotonic").resolution
    assert all(at + resolution >= delay for (_, at), delay in zip(fired, (-1.0, 0.0, 0.01, 0.02), strict=True))


def test_a_timer_fires_on_a_clock_whose_steps_are_finer_than_its_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 2.0**40
    monkeypatch.setattr(time, "monotonic", lambda: now)
    loop = LeanEventLoop()
    fired: list[str] = []
    loop.call_at(now, fired.append, "due")
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert fired == ["due"]


@pytest.mark.parametrize("number", [1, FEW_TIMERS, 3 * FEW_TIMERS])
def test_cancelled_timers_do_not_fire_and_are_let_go(loop: asyncio.AbstractEventLoop, number: int) -> None:
    fired: list[str] = []
    timers = [loop.call_later(0.001, fired.append, "cancelled") for _ in range(number)]
    for timer in timers:
        timer.cancel()
    loop.call_later(0.005, loop.stop)
    loop.run_forever()
    assert not fired
    assert not loop._scheduled  # type: ignore[attr-defined]  # what is kept there is memory


def test_cancelled_timers_of_later_are_let_go_once_they_are_many(loop: asyncio.AbstractEventLoop) -> None:
    for timer in [loop.call_later(1000, lambda: None) for _ in range(2 * FEW_TIMERS)]:
        timer.cancel()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert not loop._scheduled  # type: ignore[attr-defined]  # what is kept there is memory


def test_a_callback_that_is_added_in_a_turn_runs_in_the_next(loop: asyncio.AbstractEventLoop) -> None:
    order: list[str] = []

    def first() -> None:
        order.append("first")
        loop.call_soon(order.append, "added")
        loop.call_soon(loop.stop)

    loop.call_soon(first)
    loop.call_soon(order.append, "second")
    loop.run_forever()
    assert order == ["first", "second", "added"]


def test_a_cancelled_callback_does_not_run(loop: asyncio.AbstractEventLoop) -> None:
    ran: list[str] = []
    doomed = loop.call_soon(ran.append, "doomed")
    doomed.cancel()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert not ran


def test_a_failing_callback_reaches_the_handler_and_no_other_callback(loop: asyncio.AbstractEventLoop) -> None:
    told: list[object] = []
    ran: list[str] = []
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    failure = RuntimeError("on purpose")

    def fail() -> None:
        raise failure

    loop.call_soon(fail)
    loop.call_soon(ran.append, "after")
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert (told, ran) == ([failure], ["after"])


def test_a_thread_wakes_a_loop_that_waits(loop: asyncio.AbstractEventLoop) -> None:
    threading.Timer(0.01, lambda: loop.call_soon_threadsafe(loop.stop)).start()
    loop.run_forever()


def test_a_socket_tells_its_reader_and_its_writer(
    loop: asyncio.AbstractEventLoop, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    came: list[bytes] = []
    theirs.send(b"both")

    def write() -> None:
        ours.send(b"answer")
        loop.remove_writer(ours)
        loop.call_soon(loop.stop)

    loop.add_reader(ours, lambda: came.append(ours.recv(10)))
    loop.add_writer(ours, write)
    loop.run_forever()
    loop.remove_reader(ours)
    assert (came, theirs.recv(10)) == ([b"both"], b"answer")


def test_a_socket_that_is_left_in_a_turn_is_not_told_in_it(
    loop: asyncio.AbstractEventLoop, pair: tuple[socket.socket, socket.socket]
) -> None:
    told: list[str] = []

    def tell(name: str, other: socket.socket) -> None:
        told.append(name)
        loop.remove_reader(other)
        loop.call_soon(loop.stop)

    for end in pair:
        end.send(b"x")
    loop.add_reader(pair[0], tell, "one", pair[1])
    loop.add_reader(pair[1], tell, "two", pair[0])
    loop.run_forever()
    assert len(set(told)) == 1


def test_a_hang_up_tells_both(loop: asyncio.AbstractEventLoop) -> None:
    reading, writing = os.pipe()
    told: list[str] = []

    def tell(name: str, descriptor: int) -> None:
        told.append(name)
        loop.remove_reader(descriptor)
        loop.remove_writer(descriptor)
        loop.call_soon(loop.stop)

    os.set_blocking(writing, False)
    os.close(reading)
    loop.add_reader(writing, tell, "reader", writing)  # an error is all that there is to read
    loop.run_forever()
    os.close(writing)
    assert told == ["reader"]


def test_debug_mode_tells_of_slow_callbacks(loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture) -> None:
    loop.set_debug(True)
    loop.slow_callback_duration = 0.0
    with caplog.at_level(logging.WARNING, "asyncio"):
        loop.call_soon(loop.stop)
        loop.run_forever()
    assert "took" in caplog.text


def test_tasks_subprocesses_and_servers_work_on_it() -> None:
    async def whole() -> tuple[bytes, bytes | None]:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(300_000))
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"x" * 300_000)
            answer = await reader.read(-1)
            writer.close()
            child = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
            said, _ = await child.communicate()
            return answer, said

    assert run(whole()) == (b"x" * 300_000, b"hello\n")
