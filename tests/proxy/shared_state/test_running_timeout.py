"""A time limit ends a call that does not respond, and no call that responded while this process did not run."""

import asyncio
import socket
import time

import pytest

from proxy.shared_state.running_timeout import reply_within

pytestmark = pytest.mark.smoke


async def test_an_answer_that_came_while_the_process_did_not_run_is_read() -> None:
    here, there = socket.socketpair()
    here.setblocking(False)
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()

    async def read() -> bytes:
        begun.set()
        received = await loop.sock_recv(here, 100)
        await asyncio.sleep(0)  # like a reply that is read in several steps
        return received

    async def held_up() -> None:
        await begun.wait()
        time.sleep(0.5)  # noqa: ASYNC251 - blocks the loop on purpose
        there.send(b"here")

    with here, there:
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(reply_within(0.4, read()))
            group.create_task(held_up())
        assert answer.result() == b"here"


async def test_what_does_not_answer_is_cancelled() -> None:
    ended = asyncio.Event()

    async def silent() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        await reply_within(0.02, silent())
    assert ended.is_set()


async def test_who_no_longer_waits_cancels_it_too() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def silent() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(reply_within(60, silent()))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def test_what_it_raises_is_raised() -> None:
    async def broken() -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await reply_within(60, broken())


async def test_a_future_is_waited_for_as_well() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, 7)
    assert await reply_within(60, future) == 7
