"""The listeners' protocol over real sockets: heads, silent clients, faults of the parser."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from proxy.listener import http_connection
from proxy.listener import http_connection as server
from proxy.listener.client_request import Incoming, PlainRequest
from proxy.listener.fast_head_parser import MAX_TARGET
from proxy.listener.http_connection import PublicServer
from proxy.request_record import request_id
from proxy.surfaces.registry import surface_envelope
from tests.proxy.kit.echo_listener import LIMIT, Echo, listening
from tests.proxy.kit.raw_client import RawClient, connected, exchange, request


@pytest.fixture
def handler() -> Echo:
    return Echo()


@pytest.fixture
async def port(handler: Echo) -> AsyncIterator[int]:
    async with listening(handler) as made:
        yield made


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(server, "HEAD_WAIT", 0.1)
    monkeypatch.setattr(server, "CLIENT_STALL", 0.2)


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("before", [b"", HEAD], ids=["first", "second"])
@pytest.mark.parametrize("part", [b"G", b"\r\n", HEAD[:-1]])
@pytest.mark.usefixtures("hurried")
async def test_a_head_that_stays_a_part_is_answered_and_its_connection_closed(before: bytes, part: bytes) -> None:
    async with listening(Echo()) as port, connected(port) as client:
        if before:
            await client.send(before)
            assert (await client.answer()).status == 200
        await client.send(part)
        answer = await client.answer()
        assert await client.closed() == b""
    assert (answer.status, answer.message) == (408, "The request's head did not arrive within 0.1 s.")


@pytest.mark.smoke
@pytest.mark.usefixtures("hurried")
async def test_a_head_that_drips_is_not_waited_for() -> None:
    async with listening(Echo()) as port, connected(port) as client:

        async def drip() -> None:
            for byte in HEAD[:16] + b"A: " + b"a" * 1000:
                await client.send(bytes([byte]))
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert (await client.answer()).status == 408
        dripping.cancel()


@pytest.mark.smoke
@pytest.mark.usefixtures("hurried")
async def test_who_sends_nothing_or_whole_heads_in_parts_is_left_alone() -> None:
    async with listening(Echo()) as port, connected(port) as idle, connected(port) as slow:
        for _ in range(5):
            await slow.send(HEAD[:5])
            await asyncio.sleep(0.05)
            await slow.send(HEAD[5:])
            assert (await slow.answer()).status == 200
        await idle.send(HEAD)
        assert (await idle.answer()).status == 200


@pytest.mark.usefixtures("hurried")
async def test_who_waits_for_a_slow_answer_is_left_alone() -> None:
    async def slow(http: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0.4)
        return web.Response(body=b"late")

    async with listening(slow) as port, connected(port) as client:
        await client.send(HEAD)
        assert (await client.answer()).body == b"late"


@pytest.mark.parametrize(("size", "status"), [(server.HEAD_LIMIT - 100, 200), (server.HEAD_LIMIT + 1, 431)])
async def test_a_head_in_pieces_is_taken_up_to_its_limit(port: int, size: int, status: int) -> None:
    fields = b"".join(b"A%03d: %b\r\n" % (number, b"a" * 393) for number in range(size // 401))
    async with connected(port) as client:
        await client.send(HEAD)
        await client.answer()
        await client.send(HEAD[:-2])
        await client.send(fields + b"B: %b" % (b"b" * (size - len(HEAD) + 2 - len(fields) - 3)))
        await asyncio.sleep(0.02)
        await client.send(b"\r\n\r\n")
        answer = await client.answer()
    assert answer.status == status
    assert status == 200 or answer.message == "The request's head is larger than 16384 bytes."


@pytest.mark.parametrize(("size", "status"), [(server.LINE_LIMIT, 200), (server.LINE_LIMIT + 1, 431), (27_000, 431)])
async def test_one_field_has_so_many_bytes_and_no_more(port: int, size: int, status: int) -> None:
    answer = await exchange(port, HEAD[:-2] + b"Authorization: %b\r\n\r\n" % (b"a" * size))
    assert answer.status == status
    assert status == 200 or answer.message == "A line of the request's head is larger than 8190 bytes."


@pytest.mark.parametrize(("fields", "status"), [(server.MAX_FIELDS, 200), (server.MAX_FIELDS + 1, 400)])
async def test_a_head_has_so_many_fields_and_no_more(port: int, fields: int, status: int) -> None:
    async with connected(port) as client:
        await client.send(HEAD[:-2] + b"".join(b"A%d: 1\r\n" % number for number in range(fields - 1)) + b"\r\n")
        assert (await client.answer()).status == status


@pytest.mark.parametrize(("length", "status"), [(MAX_TARGET, 200), (MAX_TARGET + 1, 400)])
async def test_a_target_is_so_long_and_no_longer(port: int, length: int, status: int) -> None:
    answer = await exchange(port, b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * (length - 1)))
    assert answer.status == status


async def test_the_rest_of_a_refused_body_is_listened_to_no_longer_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.LINGER <= 2.0
    monkeypatch.setattr(server, "LINGER", 0.05)
    async with listening(Echo()) as port, connected(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n")
        assert (await client.answer()).status == 413
        assert await client.closed() == b""


async def test_a_silent_connection_is_closed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "KEEP_ALIVE", 0.05)
    async with listening(Echo()) as port, connected(port) as client:
        assert await client.closed() == b""


@pytest.mark.usefixtures("hurried")
async def test_a_client_that_does_not_read_is_dropped_with_what_waits_for_it() -> None:
    gone = asyncio.Event()

    async def long(http: web.BaseRequest) -> web.StreamResponse:
        assert http.transport is not None
        http.transport.set_write_buffer_limits(2**26)
        return web.Response(body=b"x" * 2**24)

    public = PublicServer(long, LIMIT, surface_envelope)
    lost = public.connection_lost

    def left(handler: RequestHandler, exc: BaseException | None = None) -> None:
        gone.set()
        lost(handler, exc)

    public.connection_lost = left  # type: ignore[method-assign]  # to see the moment
    listener = await asyncio.get_running_loop().create_server(public, "127.0.0.1", 0)
    async with connected(listener.sockets[0].getsockname()[1]) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of sockets has it
        await client.send(HEAD)
        await gone.wait()
    listener.close()
    await public.shutdown(0.1)


@pytest.mark.usefixtures("hurried")
async def test_a_client_that_reads_slowly_gets_everything() -> None:
    async def long(http: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"x" * 2**24)

    async with listening(long) as port, connected(port) as client:
        await client.send(HEAD)
        await client.head()
        got = 0
        while got < 2**24:
            got += len(await client.reader.readexactly(2**19))
            await asyncio.sleep(0.02)


GARBAGE = {
    "no http": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "bad version": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "bad header": b"GET / HTTP/1.1\r\nHost: x\r\nbad header: 1\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "nul": b"GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
    "both framings": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "negative length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "long line": b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "long header": b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 10_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: 1\r\n" * 200 + b"\r\n",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
async def test_what_cannot_be_read_as_http_gets_the_envelope_and_no_echo(port: int, data: bytes) -> None:
    async with connected(port) as client:
        await client.send(data)
        answer = await client.answer()
        assert await client.closed() == b""
    long = data in (GARBAGE["long line"], GARBAGE["long header"])
    said = (
        "A line of the request's head is larger than 8190 bytes." if long else "The request could not be read as HTTP."
    )
    assert (answer.status, answer.message) == (431 if long else 400, said)
    assert (answer.headers["server"], answer.headers["content-type"]) == ("dragoman", "application/json")
    assert request_id({"x-request-id": answer.headers["x-request-id"]}) == answer.headers["x-request-id"]


async def test_a_fault_that_reached_the_protocol_is_an_envelope_and_is_logged(
    port: int, handler: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    handler.raised = LookupError("secret of ours")
    answer = await exchange(port, request("GET", "/v1/models"))
    assert (answer.status, answer.code) == (500, "internal_error")
    assert b"secret" not in answer.body
    assert "LookupError" in caplog.text


async def test_a_client_that_leaves_cancels_its_handler(port: int, handler: Echo) -> None:
    cancelled = asyncio.Event()

    async def wait(http: web.BaseRequest) -> web.StreamResponse:
        handler.reading.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError("unreachable")

    public = PublicServer(wait, LIMIT, surface_envelope)
    listener = await asyncio.get_running_loop().create_server(public, "127.0.0.1", 0)
    async with connected(listener.sockets[0].getsockname()[1]) as client:
        await client.send(request("GET", "/"))
        await handler.reading.wait()
        await client.leave()
        await cancelled.wait()
    listener.close()
    await public.shutdown(0.1)


@pytest.mark.parametrize(("fields", "reader"), [({}, PlainRequest), ({"proxy-connection": "keep-alive"}, Incoming)])
async def test_a_request_can_let_go_of_what_its_client_sent(fields: dict[str, str], reader: type[Incoming]) -> None:
    async def handle(http: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(http, Incoming)
        assert type(http) is reader
        body = await http.read()
        assert "x-large" in http.headers
        assert "POST /a" in repr(http)
        assert http.content.at_eof()
        http.let_head_and_body_go()
        assert http.content.at_eof()
        assert (dict(http.headers), await http.read(), http.method, http.path) == ({}, body, "POST", "/a")
        return web.Response(body=body)

    async with listening(handle) as port, connected(port) as client:
        for text in (b"one", b"two"):
            await client.send(request("POST", "/a", text, {"x-large": "x" * 1000, **fields}))
            answer = await client.answer()
            assert (answer.status, answer.body) == (200, text)


async def test_a_server_counts_the_connections_that_are_open() -> None:
    loop = asyncio.get_running_loop()
    public = PublicServer(Echo(), LIMIT, surface_envelope)
    listener = await loop.create_server(public, "127.0.0.1", 0)
    try:
        async with connected(listener.sockets[0].getsockname()[1]) as client:
            await client.send(HEAD)
            await client.answer()
            assert public.open_connections == 1
    finally:
        listener.close()
        await public.shutdown()
    assert public.open_connections == 0


async def asked(client: RawClient) -> None:
    await client.send(HEAD)
    assert (await client.answer()).status == 200


SHORT = 0.1


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "LEAST_IDLE", SHORT)


async def test_too_many_connections_close_the_longest_idle(short_grace: None, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        listening(Echo(), 3) as port,
        connected(port) as early,
        connected(port) as late,
        connected(port) as silent,
    ):
        await asked(late)
        await asked(early)
        async with connected(port) as part:
            await part.send(HEAD[:9])
            await asyncio.sleep(SHORT)
            assert await silent.closed() == b""
            async with connected(port) as fifth:
                await asked(fifth)
                assert await late.closed() == b""
                await part.send(HEAD[9:])
                assert (await part.answer()).status == 200
                for each in (early, fifth):
                    await asked(each)
    (line,) = caplog.messages
    assert line.startswith("1 idle connections of clients were closed: 4 are open")


async def test_a_request_may_be_on_its_way_on_a_connection_that_has_just_come() -> None:
    async with listening(Echo(), 2) as port, AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(connected(port)) for _ in range(9)]
        for each in (*crowd, *crowd):
            await asked(each)


async def test_a_connection_with_a_request_under_way_is_never_closed_for_another(short_grace: None) -> None:
    answer = asyncio.Event()

    async def held(http: web.BaseRequest) -> web.StreamResponse:
        await answer.wait()
        return web.Response(body=await http.read())

    body = request("POST", "/", b"0123456789")
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(listening(held, 4))
        busy = [await stack.enter_async_context(connected(port)) for _ in range(4)]
        for each, sent in zip(busy, (HEAD, body, body[:-5], body[:-1]), strict=True):
            await each.send(sent)
        others = []
        for _ in range(3):
            others.append(await stack.enter_async_context(connected(port)))
            await others[-1].send(HEAD)
        for each, rest in zip(busy, (b"", b"", body[-5:], body[-1:]), strict=True):
            await each.send(rest)
        answer.set()
        for each in (*busy, *others):
            assert (await each.answer()).status == 200
