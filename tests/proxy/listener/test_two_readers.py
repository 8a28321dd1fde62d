"""However requests and their bytes are split, a client gets the same responses whether plain heads are read here or
all heads by aiohttp, and the handler gets the same requests."""

import asyncio
import re
from collections.abc import Iterator
from itertools import pairwise
from unittest import mock

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import GatewayError
from proxy.listener import inline_requests
from proxy.listener.buffered_response import BufferedResponse
from proxy.listener.http_connection import PublicServer, path_of
from proxy.listener.request_body import read_body
from proxy.listener.streamed_response import StreamedResponse
from proxy.surfaces.registry import surface_envelope
from tests.proxy.kit.eager_tasks import LOOPS
from tests.proxy.kit.raw_client import request
from tests.proxy.kit.smuggled_requests import READ, REFUSED
from tests.support.examples import examples

CHANGING = re.compile(rb"(?<=request-id: )[0-9a-f]{24}|(?<=Date: )[^\r]*")
PATHS = ("/buffered", "/streamed", "/aiohttp", "/unread", "/raise", "/later", "/%2Fx%41?a=b&a=c%20")
LAST = request("GET", "/last", headers={"Connection": "close"})


class Noting:
    """A handler that notes its requests, and responds in each way that handlers have."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        path = path_of(http)
        fields = [(name.lower(), value) for name, value in http.headers.items() if name.lower() != "content-length"]
        asked = (http.method, path, list(http.query.items()), fields, tuple(http.version), http.keep_alive)
        self.asked.append((asked, http.remote, http.content_length or 0))
        if path == "/unread":
            return BufferedResponse(401, b"{}", "")
        try:
            body = await read_body(http, lambda size: None)
        except GatewayError as error:
            return web.Response(status=error.facts.status)
        self.asked.append(body)
        if path == "/raise":
            raise ValueError
        if path == "/later":
            await asyncio.sleep(0)
        if path == "/streamed":
            response = StreamedResponse({"x-request-id": "a" * 24})
            await response.prepare(http)
            for piece in (b"a", body, b"c"):
                await response.write(piece)
            return response
        return web.Response(body=body) if path == "/aiohttp" else BufferedResponse(200, body, "x-odd: 1\r\n")


BODIES = (b"", b"{}", b"x" * 5000, request("POST", "/inner", b"x"), b"x" * 70_000)
FIELDS: tuple[dict[str, str], ...] = (
    *({}, {}, {"Connection": "keep-alive"}, {"Connection": "close"}, {"Content-Type": "text/plain"}),
    *({"X": "\xe9"}, {"Expect": "100-continue"}, {"A": "1", "a": "2"}, {"x-long": "y" * 3000}),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[bytes]:
    """Yield sequences of requests, of which the last one ends its connection."""
    data, ends = b"", [0]
    for _ in range(draw(st.integers(1, 4))):
        form = draw(st.sampled_from(["plain", "plain", "plain", "chunked", "1.0", "corpus", "head"]))
        path, body = draw(st.sampled_from(PATHS)), draw(st.sampled_from(BODIES))
        method = draw(st.sampled_from(["POST", "POST", "GET", "DELETE"]))
        if form == "corpus":
            data += draw(st.sampled_from([*REFUSED.values(), *(found for found, _, _ in READ.values())]))
        elif form == "chunked":
            chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
            data += f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + chunks
        elif form == "head":
            data += request("HEAD", path)
        else:
            sent = request(method, path, body, draw(st.sampled_from(FIELDS)))
            data += sent.replace(b"HTTP/1.1", b"HTTP/1.0", 1) if form == "1.0" else sent
            ends.append(len(data) - len(body))
        ends.append(len(data))
    data += LAST
    kept = draw(st.lists(st.sampled_from(ends), max_size=8))
    marks = sorted({0, len(data), *kept, *draw(st.lists(st.integers(0, len(data)), max_size=4))})
    return [data[start:end] for start, end in pairwise(marks)]


class Wire(asyncio.Transport):
    """A connection to a client without a socket: the test decides which bytes are read together."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": ("127.0.0.1", 5)})
        self.got = bytearray()
        self._protocol = protocol
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.got += data

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        """Do nothing: the test delivers the data."""

    def resume_reading(self) -> None:
        """Do nothing: the test delivers the data."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: every write is complete at once."""

    def get_write_buffer_size(self) -> int:
        return 0


async def converse(pieces: list[bytes]) -> tuple[bytes, list[object], bool]:
    """Return the client's bytes, the handler's requests, and whether the connection was closed."""
    noting = Noting()
    server = PublicServer(noting, 100_000, surface_envelope)
    protocol = server()
    wire = Wire(protocol)
    protocol.connection_made(wire)
    for piece in [*pieces, b""]:
        if piece and not wire.is_closing():
            asyncio.get_running_loop().call_soon(protocol.data_received, piece)
        for _ in range(20):
            await asyncio.sleep(0)
    found = CHANGING.sub(b"*", bytes(wire.got)), noting.asked, wire.is_closing()
    await server.shutdown(0)
    return found


@pytest.fixture(scope="module", params=LOOPS)
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as made:
        yield made


@given(pieces=conversations())
@examples(150)
def test_both_readers_give_the_same_answers_and_the_same_requests(runner: asyncio.Runner, pieces: list[bytes]) -> None:
    found = runner.run(converse(pieces))
    with mock.patch.object(inline_requests, "read_plain_head", return_value=None):
        assert found == runner.run(converse(pieces))
