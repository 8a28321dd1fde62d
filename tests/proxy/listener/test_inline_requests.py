"""Requests that arrived completely are answered within the callback that delivered them, all others in aiohttp's way,
and a client cannot see the difference."""

import asyncio
import gc

import pytest
from aiohttp import web
from typing_extensions import override

from proxy.eager_task import EagerTask
from proxy.listener.inline_requests import MAX_AHEAD
from tests.proxy.kit import desk as kit
from tests.proxy.kit.desk import Desk, answered, at_a_desk, get, settle
from tests.proxy.kit.raw_client import RawClient, connected, request

SMALL = 10_000


@pytest.mark.smoke
@at_a_desk
async def test_a_request_that_came_whole_is_answered_eagerly(made: Desk, client: RawClient) -> None:
    for number in range(3):
        await client.send(request("POST", f"/{number}", b"body"))
        assert await answered(client) == (200, b"/%d:body" % number)
    assert made.eager == [True] * 3


UNUSUAL = {
    "incomplete body": [request("POST", "/x", b"body")[:-1], b"y"],
    "chunked body in pieces": [
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbod",
        b"\r\n1\r\ny\r\n0\r\n\r\n",
    ],
    "several at once": [request("POST", "/x", b"body") + get("/y")],
    "expectation": [request("POST", "/x", b"body", {"Expect": "100-continue"})],
    "in two pieces": [request("POST", "/x", b"body")[:30], request("POST", "/x", b"body")[30:]],
    "byte by byte": [bytes([byte]) for byte in request("POST", "/x", b"body")],
}


@pytest.mark.smoke
@pytest.mark.parametrize("kind", UNUSUAL)
@at_a_desk
async def test_whatever_is_not_plain_is_answered_too_and_the_next_plain_one_eagerly(
    made: Desk, client: RawClient, kind: str
) -> None:
    for _ in range(2):
        for piece in UNUSUAL[kind]:
            await client.send(piece)
            await settle(4)
        assert await answered(client) == (200, b"/x:body")
        if kind == "several at once":
            assert await answered(client) == (200, b"/y:")
        await client.send(get("/plain"))
        assert await answered(client) == (200, b"/plain:")
        assert made.eager[-1]


@at_a_desk
async def test_an_offer_to_upgrade_is_answered_and_ends_the_connection(made: Desk, client: RawClient) -> None:
    await client.send(get("/plain"))
    await answered(client)
    await client.send(get("/x", Connection="Upgrade", Upgrade="websocket"))
    assert await answered(client) == (200, b"/x:")
    assert await client.closed() == b""


@at_a_desk
async def test_requests_that_come_during_an_answer_are_answered_in_order(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    for number in range(5):
        await client.send(request("POST", f"/{number}", b"%d" % number))
        await settle()
    assert made.begun == ["/wait"]
    await made.opens(client)
    for number in range(5):
        assert await answered(client) == (200, b"/%d:%d" % (number, number))


@at_a_desk
async def test_a_request_that_an_answer_cuts_is_read_as_one(made: Desk) -> None:
    """Its first bytes arrive with the request before, the next during that request's response, the rest after it."""
    following = request("POST", "/next", b"body")
    end = len(following)
    for first in range(0, end, 9):
        for second in range(first, end, 13):
            made.opened.clear()
            made.begun.clear()
            async with connected(made.port) as client:
                await client.send(get("/wait") + following[:first])
                await made.until(lambda: made.begun == ["/wait"])
                await client.send(following[first:second])
                await settle()
                await made.opens(client)
                await client.send(following[second:])
                assert await answered(client) == (200, b"/next:body")


@at_a_desk
async def test_what_is_kept_of_a_client_that_sends_on_is_bounded_and_answered(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    count = 80
    many = b"".join(request("POST", f"/{number}", b"a" * 100_000) for number in range(count))
    client.writer.write(many)
    for _ in range(50):
        await asyncio.sleep(0.005)
        # One read of the event loop may be added.
        assert len(made.connection._ahead) <= MAX_AHEAD + 262_144
    assert made.connection._buffer_paused
    assert made.begun == ["/wait"]
    await made.opens(client)
    for number in range(count):
        status, body = await answered(client)
        assert (status, len(body)) == (200, 100_000 + len(f"/{number}:"))
    assert not made.connection._buffer_paused


@at_a_desk
async def test_a_long_row_of_small_requests_does_not_grow_the_stack(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    client.writer.write(b"".join(get(f"/{number}") for number in range(SMALL)))
    await asyncio.sleep(0.05)
    await made.opens(client)
    for number in range(SMALL):
        assert await answered(client) == (200, b"/%d:" % number)
    assert max(made.depths) - min(made.depths) < 60


@at_a_desk
async def test_requests_do_not_see_each_other_s_context_variables(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    await client.send(get("/a"))
    await settle()
    made.opened.set()
    await answered(client)
    await answered(client)
    await client.send(get("/b"))
    await answered(client)
    assert made.carried == ["nothing"] * 3


@at_a_desk
async def test_the_keep_alive_limit_does_not_cut_an_answer_but_an_idle_connection(made: Desk) -> None:
    made.server._kwargs["keepalive_timeout"] = 0.1
    async with connected(made.port) as client:
        await client.send(get("/plain"))
        assert await answered(client) == (200, b"/plain:")
        await client.send(get("/wait"))
        await made.until(lambda: len(made.begun) == 2)
        await asyncio.sleep(0.4)
        await made.opens(client)
        assert await client.closed() == b""


@at_a_desk
async def test_a_lost_connection_cancels_the_handler(made: Desk) -> None:
    async with connected(made.port) as client:
        await made.waits(client)
        await client.send(get("/next"))
        await settle()
        client.writer.transport.abort()
        await made.until(lambda: bool(made.cancelled))
    await settle()
    assert made.begun == ["/wait"]


@at_a_desk
async def test_half_closed_clients_get_their_answer(made: Desk, client: RawClient) -> None:
    await client.send(get("/wait"))
    client.writer.write_eof()
    await made.until(lambda: bool(made.begun))
    await asyncio.sleep(0.05)
    made.opened.set()
    while (head := await client.head())[0] == 100:
        pass
    assert await client.reader.readexactly(int(head[1]["content-length"])) == b"/wait:"
    assert await client.closed() == b""


@at_a_desk
async def test_a_shutdown_waits_for_an_answer(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    made.server.pre_shutdown()
    stopping = asyncio.get_running_loop().create_task(made.server.shutdown(10))
    await settle()
    assert not stopping.done()
    await made.opens(client)
    await stopping
    assert await client.closed() == b""
    assert made.cancelled == []


@at_a_desk
async def test_a_shutdown_cancels_what_takes_too_long(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    made.server.pre_shutdown()
    await made.server.shutdown(0.05)
    assert await client.closed() == b""
    await made.until(lambda: bool(made.cancelled))


@at_a_desk
async def test_malformed_bytes_behind_a_request_are_refused_after_its_answer(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    await client.send(b"\0\0\0\r\n\r\n")
    await settle()
    await made.opens(client)
    assert (await answered(client))[0] == 400
    assert await client.closed() == b""


@at_a_desk
async def test_a_head_too_long_behind_a_request_is_refused_after_its_answer(made: Desk, client: RawClient) -> None:
    await made.waits(client)
    await client.send(b"GET /long HTTP/1.1\r\n" + b"A: 1\r\n" * 20_000)
    await settle()
    await made.opens(client)
    assert (await answered(client))[0] in (400, 431)


@at_a_desk
async def test_a_failing_handler_is_answered(made: Desk, client: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    await client.send(get("/raise"))
    assert (await answered(client))[0] == 500
    assert await client.closed() == b""
    assert made.eager == [True]
    assert "a request failed outside its handler" in caplog.text


@at_a_desk
async def test_a_base_exception_costs_its_connection_only(made: Desk, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(made.port) as client:
        await client.send(get("/abandon"))
        assert await client.closed() == b""
    async with connected(made.port) as client:
        await client.send(get("/plain"))
        assert await answered(client) == (200, b"/plain:")
    assert "a request failed outside its handler" in caplog.text


class UncancellableHandler(Desk):
    """A handler that responds although it was cancelled."""

    @override
    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        try:
            return await super().__call__(http)
        except asyncio.CancelledError:
            return web.Response(text="late")


@at_a_desk
async def test_an_answer_after_the_client_left_harms_nobody(made: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "Desk", UncancellableHandler)
    async with connected(made.port) as client:
        await made.waits(client)
        client.writer.transport.abort()
        await made.until(lambda: bool(made.cancelled))
    await settle()
    async with connected(made.port) as client:
        await client.send(get("/plain"))
        assert await answered(client) == (200, b"/plain:")


@at_a_desk
async def test_connection_close_is_kept_and_what_follows_is_not_read(made: Desk, client: RawClient) -> None:
    await client.send(get("/wait", Connection="close"))
    await made.until(lambda: bool(made.begun))
    await client.send(get("/next"))
    await settle()
    await made.opens(client)
    assert await client.closed() == b""
    assert made.begun == ["/wait"]


def live_objects() -> list[object]:
    """Return the existing requests, and the existing tasks that answer them."""
    return [each for each in gc.get_objects() if type(each) is EagerTask or isinstance(each, web.BaseRequest)]


@at_a_desk
async def test_an_answered_request_leaves_nothing_that_only_the_collector_frees(made: Desk, client: RawClient) -> None:
    for _ in range(3):
        await client.send(get("/plain"))
        await answered(client)
    gc.collect()
    gc.disable()
    others = live_objects()  # by earlier code of this process
    try:
        for _ in range(20):
            await client.send(get("/plain"))
            await answered(client)
        assert [each for each in live_objects() if not any(each is other for other in others)] == []
    finally:
        gc.enable()
