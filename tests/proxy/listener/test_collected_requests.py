"""aiohttp parses only plain requests whose bodies are long or late."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from proxy.listener.inline_requests import MAX_COLLECTED
from tests.proxy.kit.desk import Desk, answered, at_a_desk, get, settle
from tests.proxy.kit.raw_client import RawClient, connected, request


@at_a_desk
async def test_a_plain_request_needs_nothing_of_aiohttp_s(made: Desk, client: RawClient) -> None:
    for number in range(3):
        await client.send(request("POST", f"/{number}", b"body"))
        assert await answered(client) == (200, b"/%d:body" % number)
    assert (made.connection._parser, made.connection._task_handler) == (None, None)
    assert made.connection.at_boundary


@at_a_desk
async def test_a_head_and_its_body_may_come_apart(made: Desk, client: RawClient) -> None:
    data = request("POST", "/x", b"a" * 5000)
    head = len(data) - 5000
    for cuts in ([head], [head, head + 1], [head, head + 4999], [head + 7], list(range(head, len(data), 700))):
        for start, end in pairwise([0, *cuts, len(data)]):
            assert not made.eager
            await client.send(data[start:end])
            await settle(4)
        assert (await answered(client))[1] == b"/x:" + b"a" * 5000
        assert made.eager == [True]
        made.eager.clear()
    assert made.connection._parser is None


@pytest.mark.parametrize("length", [100, MAX_COLLECTED, 1 << 20])
@at_a_desk
async def test_a_body_that_is_long_or_late_is_aiohttp_s_and_the_next_request_is_read_here(
    made: Desk, client: RawClient, length: int
) -> None:
    data = request("POST", "/x", b"a" * length)
    for _ in range(2):
        await client.send(data[: len(data) - 50])
        await made.until(lambda: made.begun == ["/x"])
        before = made.connection.at_boundary
        await client.send(data[-50:])
        assert (await answered(client))[1] == b"/x:" + b"a" * length
        await settle()
        assert (before, made.connection.at_boundary) == (False, True)
        await client.send(get("/plain"))
        assert await answered(client) == (200, b"/plain:")
        assert made.eager == [False, True]
        made.begun.clear()
        made.eager.clear()


@at_a_desk
async def test_bytes_behind_a_body_leave_the_connection_to_aiohttp(made: Desk, client: RawClient) -> None:
    data = request("POST", "/x", b"a" * (MAX_COLLECTED + 1))
    await client.send(data[:500])
    await made.until(lambda: bool(made.begun))
    await client.send(data[500:] + b"GET /half HTTP/1.1\r\nA: ")
    assert (await answered(client))[0] == 200
    # After the first part, these bytes are the rest of a head.
    await client.send(get("/whole"))
    assert await answered(client) == (200, b"/half:")
    assert not made.connection.at_boundary
    await client.send(get("/next"))
    assert await answered(client) == (200, b"/next:")


@at_a_desk
async def test_a_request_whose_body_is_missing_when_the_server_stops_is_answered(made: Desk, client: RawClient) -> None:
    data = request("POST", "/x", b"body")
    await client.send(data[:-4])
    await until(lambda: made.connection._collected is not None)
    made.server.pre_shutdown()
    stopping = asyncio.get_running_loop().create_task(made.server.shutdown(10))
    await made.until(lambda: bool(made.begun))
    stopping.cancel()
    await settle()


@pytest.mark.parametrize("leave", ["close one half", "reset"])
@at_a_desk
async def test_a_client_that_leaves_before_its_body_came_leaves_nothing(made: Desk, leave: str) -> None:
    async with connected(made.port) as client:
        await client.send(request("POST", "/x", b"body")[:-1])
        await until(lambda: made.connection._collected is not None)
        connection = made.connection
        if leave == "reset":
            client.writer.transport.abort()
        else:
            client.writer.write_eof()
            assert await client.closed() == b""
        await until(lambda: not made.server.connections)
    assert (connection._collected, connection._collecting) == (None, None)
    assert made.ended == []


@at_a_desk
async def test_a_first_head_that_is_too_long_is_refused_at_once(made: Desk, client: RawClient) -> None:
    await client.send(b"GET /long HTTP/1.1\r\n" + b"A: 1234567\r\n" * 99 + b"B: " + b"x" * 8000 + b"\r\n")
    await client.send(b"C: " + b"x" * 8000)
    assert (await answered(client))[0] == 431
    assert await client.closed() == b""
    assert made.begun == []


@at_a_desk
async def test_an_idle_connection_ends_that_has_never_had_a_request(made: Desk) -> None:
    made.server._kwargs["keepalive_timeout"] = 0.05
    async with connected(made.port) as client:
        assert await client.closed() == b""
    assert made.begun == []


@at_a_desk
async def test_an_exception_of_aiohttp_s_is_an_answer(made: Desk, client: RawClient) -> None:
    # The handler reads the body with aiohttp's method, which raises this.
    await client.send(request("POST", "/x", b"a" * ((1 << 20) + 1)))
    assert (await client.head())[0] == 413
    assert made.begun == ["/x"]


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.001)
