"""Records of TLS are handed on as they come, and their ends and faults are those of asyncio's TLS."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typing_extensions import override

from proxy.http_client.vendor_tls import VendorTls, secure
from tests.support.authority import LOCAL, Authority
from tests.support.waiting import until

pytestmark = pytest.mark.smoke


class App(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    @override
    def data_received(self, data: bytes) -> None:
        self.told.append(data)

    @override
    def eof_received(self) -> None:
        self.told.append("end")

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self.told.append(type(exc))


class Wire(asyncio.Transport):
    """Keeps what is written to the vendor."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.protocol: asyncio.BaseProtocol | None = None

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    @override
    def is_closing(self) -> bool:
        return False

    @override
    def close(self) -> None:
        self._force_close(None)

    @override
    def abort(self) -> None:
        self._force_close(None)

    def _force_close(self, exc: Exception | None) -> None:
        if self.protocol is not None:
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, exc)
            self.protocol = None


@dataclass
class Line:
    """A connection to a vendor after its handshake, both sides of it in memory."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    buffered: bool
    app: App = field(default_factory=App)
    wire: Wire = field(default_factory=Wire)

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.tls = VendorTls(loop, self.app, self.client, loop.create_future(), "localhost")
        self._to, self._from = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.vendor = self.server.wrap_bio(self._to, self._from, server_side=True)
        self.wire.protocol = self.tls
        self.tls.connection_made(self.wire)
        for _ in range(3):
            self.hear()
            with suppress(ssl.SSLWantReadError):
                self.vendor.do_handshake()
            self.come(self._from.read())

    def hear(self) -> bytes:
        """Let the vendor read what was sent to it."""
        self._to.write(self.wire.sent)
        sent, self.wire.sent = self.wire.sent, b""
        return sent

    def record(self, data: bytes) -> bytes:
        """The bytes of a record."""
        self.vendor.write(data)
        return self._from.read()

    def farewell(self) -> bytes:
        """The bytes with which a vendor ends a connection."""
        with pytest.raises(ssl.SSLWantReadError):
            self.vendor.unwrap()
        return self._from.read()

    def come(self, data: bytes) -> None:
        """Let bytes come, in one read, of a transport that reads into the protocol's buffer or one that does not."""
        if data and not self.buffered:
            self.tls.data_received(data)
        elif data:
            self.tls.get_buffer(len(data))[: len(data)] = data
            self.tls.buffer_updated(len(data))


@pytest.fixture(params=["buffered", "unbuffered"])
async def line(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    authority = Authority()
    trusting = ssl.create_default_context(cadata=authority.pem().decode())
    line = Line(authority.server(tmp_path, *LOCAL), trusting, request.param == "buffered")
    yield line
    line.app.transport.abort()
    await asyncio.sleep(0)


async def test_a_record_is_handed_on_within_the_call_that_brings_it(line: Line) -> None:
    line.come(line.record(b"one"))
    line.come(line.record(b"two"))
    assert line.app.told == [b"one", b"two"]
    assert line.wire.sent == b""


async def test_records_that_come_together_are_handed_on_together(line: Line) -> None:
    line.come(b"".join([line.record(b"%d" % number) for number in range(5)]))
    assert line.app.told == [b"01234"]


@pytest.mark.parametrize("places", [(1,), (5, 6), (20, 21)])
async def test_a_record_in_parts_is_handed_on_once_it_is_whole(line: Line, places: Iterable[int]) -> None:
    data, begin = line.record(b"one") + line.record(b"two"), 0
    for place in places:
        line.come(data[begin:place])
        begin = place
    assert line.app.told == []
    line.come(data[begin:])
    assert line.app.told == [b"onetwo"]


async def test_a_whole_record_and_a_part_of_the_next(line: Line) -> None:
    one, two = line.record(b"one"), line.record(b"two")
    line.come(one + two[:9])
    line.come(two[9:])
    assert line.app.told == [b"one", b"two"]


async def test_the_largest_record_is_handed_on_whole(line: Line) -> None:
    line.come(line.record(b"x" * 16384))
    assert line.app.told == [b"x" * 16384]


async def test_a_farewell_in_the_same_read_ends_what_came_before(line: Line) -> None:
    line.come(line.record(b"last") + line.farewell())
    assert line.app.told == [b"last", "end"]
    assert line.wire.sent


async def test_bytes_that_are_no_record_break_the_connection(line: Line) -> None:
    line.come(b"HTTP/1.1 200 OK\r\n")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [told for told in line.app.told if told != "end"] == [ssl.SSLError]


async def test_nothing_is_handed_on_while_reading_is_paused(line: Line) -> None:
    line.app.transport.pause_reading()
    line.come(line.record(b"one"))
    assert line.app.told == []
    line.app.transport.resume_reading()
    await asyncio.sleep(0)
    assert line.app.told == [b"one"]


async def test_a_handshake_that_fails_leaves_no_connection(tmp_path: Path) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=Authority().server(tmp_path, *LOCAL))
    app, sock = App(), socket.create_connection(server.sockets[0].getsockname())
    sock.setblocking(False)
    async with server:
        with pytest.raises(ssl.SSLCertVerificationError):
            await secure(sock, app, ssl.create_default_context(), "localhost")
        await until(lambda: sock.fileno() < 0)
    assert app.told == []
