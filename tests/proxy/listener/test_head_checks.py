"""A request that another server might read differently is refused, and no bytes after it are read as a request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from proxy.errors import GatewayError
from proxy.listener.http_connection import PublicServer
from proxy.listener.request_body import read_body
from proxy.surfaces.registry import surface_envelope
from tests.proxy.kit.raw_client import RawClient, connected
from tests.proxy.kit.smuggled_requests import CHUNKS, END, OFFERS, READ, REFUSED
from tests.support.looped import looped

NEXT = b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass(slots=True)
class Reader:
    """A handler that stores its requests."""

    port: int = 0
    started: bool = False
    asked: list[tuple[str, bytes]] = field(default_factory=list)

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        self.started = True
        try:
            self.asked.append((http.path, await read_body(http, lambda size: None)))
        except GatewayError as error:
            return web.Response(status=error.facts.status)
        return web.Response(body=b"{}")


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    made = Reader()
    public = PublicServer(made, 100_000, surface_envelope)
    listener = await asyncio.get_running_loop().create_server(public, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    yield made
    listener.close()
    await public.shutdown(0.1)


async def send_in_parts(client: RawClient, data: bytes, step: int) -> None:
    """Send bytes in parts of `step` bytes."""
    for start in range(0, len(data), step):
        await client.send(data[start : start + step])
        await asyncio.sleep(0)


@pytest.mark.smoke
def test_the_corpus_has_more_than_forty_vectors_that_must_be_refused() -> None:
    assert len(REFUSED) > 40
    assert len(set(REFUSED.values()) | {data for data, _, _ in READ.values()}) == len(REFUSED) + len(READ)


@pytest.mark.smoke
@looped("data", REFUSED.values(), ids=REFUSED.keys())
async def test_an_ambiguous_request_is_refused_and_nothing_behind_it_is_read(reader: Reader, data: bytes) -> None:
    async with connected(reader.port) as client:
        await client.send(data + NEXT + NEXT)
        answer = await client.answer()
        assert await client.closed() == b""
    assert (answer.status, answer.code) == (400, "bad_request")
    assert answer.headers["server"] == "dragoman"
    assert not [path for path, _ in reader.asked if path == "/next"]


@looped("data", REFUSED.values(), ids=REFUSED.keys())
async def test_an_ambiguous_request_in_pieces_ends_its_connection_just_so(reader: Reader, data: bytes) -> None:
    async with connected(reader.port) as client:
        # If a client continues to send after the response, the connection may be reset before the client has read the
        # response.
        with suppress(ConnectionError):
            await send_in_parts(client, data + NEXT + NEXT, 7)
            await client.closed()
    assert not [path for path, _ in reader.asked if path == "/next"]


@pytest.mark.parametrize("step", [100_000, 7], ids=["at once", "in pieces"])
@pytest.mark.parametrize(("data", "path", "body"), READ.values(), ids=READ.keys())
async def test_what_is_read_is_read_in_one_way_and_the_next_request_is_its_own(
    reader: Reader, data: bytes, path: str, body: bytes, step: int
) -> None:
    async with connected(reader.port) as client:
        await send_in_parts(client, data + NEXT, step)
        for _ in range(2):
            assert (await client.answer()).status == 200
    assert reader.asked == [(path, body), ("/next", b"")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("another host in the target", "The request's target must be a path."),
        ("tunnel", "The request's target must be a path."),
        ("fragment", "The request's target must not hold '#'."),
        ("gzip in chunks", "The only Transfer-Encoding taken is 'chunked'."),
    ],
)
async def test_what_the_parser_would_take_is_refused_with_the_reason(reader: Reader, name: str, message: str) -> None:
    async with connected(reader.port) as client:
        await client.send(REFUSED[name])
        answer = await client.answer()
    assert answer.message == message
    assert answer.headers.keys() >= {"x-request-id", "cache-control", "x-content-type-options"}
    assert reader.asked == []


@pytest.mark.parametrize("step", [100_000, 7], ids=["at once", "in pieces"])
@pytest.mark.parametrize("body", [b"Content-Length: 3\r\n\r\nabc", CHUNKS + b"3\r\nabc\r\n" + END])
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS.keys())
async def test_an_offer_to_upgrade_is_answered_and_nothing_behind_it_is_read(
    reader: Reader, offer: bytes, body: bytes, step: int
) -> None:
    async with connected(reader.port) as client:
        with suppress(ConnectionError):
            await send_in_parts(client, offer + body + NEXT, step)
            answer = await client.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await client.closed() == b""
    assert reader.asked == [("/x", b"abc")]


@pytest.mark.parametrize("name", ["framing in a trailer", "chunk beyond 64 bits"])
async def test_a_body_that_turns_out_to_be_no_http_is_not_waited_for(reader: Reader, name: str) -> None:
    async with connected(reader.port) as client:
        head, _, body = REFUSED[name].partition(b"\r\n\r\n")
        await client.send(head + b"\r\n\r\n")
        while not reader.started:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)
        await client.send(body)
        assert (await client.answer()).status == 400
        assert await client.closed() == b""
    assert reader.asked == []
