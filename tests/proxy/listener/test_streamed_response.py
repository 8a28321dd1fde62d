"""Responses in chunks: their bytes for each version of HTTP, a client that does not read, and a client that has
disconnected."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
from aiohttp import web

from proxy.listener.streamed_response import StreamedResponse
from tests.proxy.kit.echo_listener import listening
from tests.proxy.kit.raw_client import RawClient, connected, request

KIND = {"Content-Type": "text/event-stream"}
LONG = bytes(range(256)) * 8192
Work = Callable[[StreamedResponse], Awaitable[None]]


def streaming(
    work: Work, headers: Mapping[str, str] = KIND
) -> Callable[[web.BaseRequest], Awaitable[StreamedResponse]]:
    """Return a handler whose response is written by `work`."""

    async def handle(http: web.BaseRequest) -> StreamedResponse:
        response = StreamedResponse(headers)
        await response.prepare(http)
        await work(response)
        return response

    return handle


async def two_pieces(response: StreamedResponse) -> None:
    await response.write(b"one")
    await response.write(b"")
    await response.write(bytearray(b"two"))
    await response.write_eof(b"last")


def get(version: str = "1.1", **headers: str) -> bytes:
    return request("GET", "/", None, headers).replace(b"HTTP/1.1", f"HTTP/{version}".encode())


async def head_and_body(client: RawClient, length: int) -> tuple[bytes, bytes]:
    head = await client.reader.readuntil(b"\r\n\r\n")
    return head, await client.reader.readexactly(length)


@pytest.mark.smoke
async def test_pieces_leave_in_chunks_and_the_connection_stays() -> None:
    chunks = b"3\r\none\r\n3\r\ntwo\r\n4\r\nlast\r\n0\r\n\r\n"
    async with listening(streaming(two_pieces)) as port, connected(port) as client:
        for _ in range(2):
            await client.send(get())
            head, body = await head_and_body(client, len(chunks))
            assert body == chunks
            assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nDate: ")
            assert head.endswith(b"\r\nTransfer-Encoding: chunked\r\n\r\n")


@pytest.mark.smoke
async def test_an_answer_of_known_length_is_not_chunked() -> None:
    async with listening(streaming(two_pieces, {**KIND, "Content-Length": "10"})) as port, connected(port) as client:
        for _ in range(2):
            await client.send(get())
            head, body = await head_and_body(client, 10)
            assert (body, b"chunked" in head) == (b"onetwolast", False)


@pytest.mark.parametrize("asked", ["close", "keep-alive"])
async def test_a_client_of_http_1_0_gets_the_body_up_to_the_end_of_its_connection(asked: str) -> None:
    async with listening(streaming(two_pieces)) as port, connected(port) as client:
        await client.send(get("1.0", Connection=asked))
        head, body = (await client.closed()).split(b"\r\n\r\n")
        assert body == b"onetwolast"
        assert (head[:15], b"chunked" in head, b"Connection: close" in head) == (b"HTTP/1.0 200 OK", False, True)


async def test_the_head_leaves_with_the_first_piece() -> None:
    gate = asyncio.Event()

    async def late(response: StreamedResponse) -> None:
        await gate.wait()
        await response.write_eof()

    async with listening(streaming(late)) as port, connected(port) as client:
        await client.send(get())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.05)
        gate.set()
        head = await client.reader.readuntil(b"\r\n\r\n0\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_header_that_would_end_its_line_is_refused() -> None:
    raised: list[type[Exception]] = []

    async def handle(http: web.BaseRequest) -> web.StreamResponse:
        try:
            await StreamedResponse({"x": "a\r\nb: c"}).prepare(http)
        except ValueError as error:
            raised.append(type(error))
        return web.Response(text="refused")

    async with listening(handle) as port, connected(port) as client:
        await client.send(get())
        assert (await client.answer()).status == 200
    assert raised == [ValueError]


async def test_writing_waits_for_a_client_that_does_not_read() -> None:
    written = 0

    async def much(response: StreamedResponse) -> None:
        nonlocal written
        for _ in range(1000):
            await response.write(b"x" * 65536)
            written += 1
        await response.write_eof()

    async with listening(streaming(much)) as port, connected(port) as client:
        await client.send(get())
        stalled = 0
        while written != stalled or not written:
            stalled = written
            await asyncio.sleep(0.3)
        assert stalled < 500
        body = b""
        while not body.endswith(b"\r\n0\r\n\r\n"):
            body = (body + await client.reader.read(2**20))[-16:]
        assert written == 1000


async def test_writing_to_a_client_that_has_left_raises() -> None:
    raised: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def endless(response: StreamedResponse) -> None:
        try:
            while True:
                await response.write(b"x")
                await asyncio.sleep(0.01)
        except (ConnectionError, asyncio.CancelledError) as error:
            raised.set_result(error)
            raise

    async with listening(streaming(endless)) as port:
        async with connected(port) as client:
            await client.send(get())
            await client.reader.readuntil(b"x")
        assert isinstance(await asyncio.wait_for(raised, 30), ConnectionError | asyncio.CancelledError)


async def test_what_was_broken_off_gets_no_end() -> None:
    async def handle(http: web.BaseRequest) -> StreamedResponse:
        response = StreamedResponse(KIND)
        await response.prepare(http)
        await response.write(b"part")
        assert http.transport is not None
        http.transport.close()
        return response

    async with listening(handle) as port, connected(port) as client:
        await client.send(get())
        assert (await client.closed()).endswith(b"4\r\npart\r\n")


@pytest.mark.smoke
@pytest.mark.parametrize("headers", [KIND, {**KIND, "Content-Length": "2097160"}])
async def test_a_long_piece_comes_whole(headers: Mapping[str, str]) -> None:
    async def long(response: StreamedResponse) -> None:
        await response.write(b"head")
        await response.write(LONG)
        await response.write_eof(b"last")

    async with listening(streaming(long, headers)) as port, connected(port) as client:
        for _ in range(2):
            await client.send(get())
            answer = await client.answer()
            assert (answer.whole, answer.body == b"head" + LONG + b"last") == (True, True)


@pytest.mark.parametrize("whole_events", [True, False])
async def test_a_probe_of_a_half_closed_client_stands_between_whole_events_alone(
    whole_events: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.listener.http_connection.LOOK_EVERY", 0.02)

    async def handle(http: web.BaseRequest) -> StreamedResponse:
        response = StreamedResponse(KIND, whole_events=whole_events)
        response.begin(http)
        await response.write(b"data: 1\n\n")
        await asyncio.sleep(0.2)
        await response.write_eof(b"data: 2\n\n")
        return response

    async with listening(handle) as port, connected(port) as client:
        await client.send(get())
        client.writer.write_eof()
        answer = await client.answer()
    assert (b": keep-alive\n\n" in answer.body, answer.whole) == (whole_events, True)
    assert answer.body.replace(b": keep-alive\n\n", b"") == b"data: 1\n\ndata: 2\n\n"


async def test_what_precedes_a_piece_leaves_with_it_and_what_is_interjected_at_once() -> None:
    gate = asyncio.Event()

    async def handle(http: web.BaseRequest) -> StreamedResponse:
        response = StreamedResponse(KIND, whole_events=True)
        assert not response.is_open
        response.begin(http)
        assert response.interject(b": 1\n\n")
        response.precede(b": 2\n\n")
        response.precede(b"")
        await gate.wait()
        await response.write_eof(b"data: 3\n\n")
        assert not response.is_open
        return response

    async with listening(handle) as port, connected(port) as client:
        await client.send(get())
        status, headers = await client.head()
        assert (status, headers["transfer-encoding"], await client.chunk()) == (200, "chunked", b": 1\n\n")
        gate.set()
        assert await client.chunks() == (b": 2\n\ndata: 3\n\n", True)
