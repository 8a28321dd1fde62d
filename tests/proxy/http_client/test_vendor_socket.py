"""What comes from a vendor's socket is handed on, and its ends and faults are those of asyncio's transport."""

import asyncio
import gc
import socket
import struct
import weakref
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from typing_extensions import override

from proxy.http_client import vendor_socket
from proxy.http_client.vendor_socket import VendorSocket, attach
from tests.support.waiting import until

pytestmark = pytest.mark.smoke


class Told(asyncio.Protocol):
    """Notes what it is told, and raises once for each error that it is given."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.raising: Exception | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.told.append("made")

    @override
    def data_received(self, data: bytes) -> None:
        self.told.append(data)
        if self.raising is not None:
            raise self.raising

    @override
    def eof_received(self) -> None:
        self.told.append("end")

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self.told.append(type(exc))


@dataclass
class Pair:
    """Both ends of a connection: the vendor's socket, and the transport and its protocol."""

    vendor: socket.socket
    transport: asyncio.Transport
    told: Told


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        sock = socket.create_connection(listening.getsockname())
        vendor = stack.enter_context(listening.accept()[0])
        sock.setblocking(False)
        told = Told()
        transport = await attach(sock, told, 1000)
        stack.callback(transport.abort)
        yield Pair(vendor, transport, told)


async def test_a_protocol_knows_of_its_transport_before_anything_comes(pair: Pair) -> None:
    assert isinstance(pair.transport, VendorSocket)
    assert pair.told.told == ["made"]
    pair.vendor.sendall(b"one")
    await until(lambda: len(pair.told.told) > 1)
    assert pair.told.told == ["made", b"one"]


async def test_no_more_than_asked_for_is_read_at_once(pair: Pair) -> None:
    pair.vendor.sendall(b"x" * 2500)
    await until(lambda: sum(len(told) for told in pair.told.told if isinstance(told, bytes)) == 2500)
    assert max(len(told) for told in pair.told.told if isinstance(told, bytes)) == 1000


async def test_the_end_comes_after_the_last_bytes(pair: Pair) -> None:
    pair.vendor.sendall(b"last")
    pair.vendor.shutdown(socket.SHUT_WR)
    await until(lambda: pair.told.told[-1] is type(None))
    assert pair.told.told == ["made", b"last", "end", type(None)]


async def test_a_reset_is_told_as_one(pair: Pair) -> None:
    pair.vendor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    pair.vendor.close()
    await until(lambda: len(pair.told.told) > 1)
    assert pair.told.told == ["made", ConnectionResetError]


@pytest.mark.parametrize("error", [ValueError("a fault"), BlockingIOError("not the socket's")])
async def test_a_protocol_that_raises_loses_its_connection_and_no_other(pair: Pair, error: Exception) -> None:
    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    pair.told.raising = error
    pair.vendor.sendall(b"one")
    await until(lambda: len(pair.told.told) > 2)
    assert pair.told.told == ["made", b"one", type(error)]
    assert [context["exception"] for context in reported] == ([] if isinstance(error, OSError) else [error])


async def test_nothing_is_handed_on_while_reading_is_paused_or_after_the_close(pair: Pair) -> None:
    pair.transport.pause_reading()
    pair.vendor.sendall(b"one")
    for _ in range(3):
        await asyncio.sleep(0)
    assert pair.told.told == ["made"]
    pair.transport.resume_reading()
    await until(lambda: len(pair.told.told) > 1)
    pair.transport.abort()
    pair.vendor.sendall(b"two")
    await until(lambda: len(pair.told.told) > 2)
    assert pair.told.told == ["made", b"one", type(None)]


async def test_what_is_written_arrives(pair: Pair) -> None:
    pair.transport.write(b"a request")
    loop = asyncio.get_running_loop()
    assert await loop.run_in_executor(None, pair.vendor.recv, 100) == b"a request"


async def test_a_closed_transport_needs_no_collector() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as sock:
        sock.setblocking(False)
        told: list[object] = []

        async def lose() -> "weakref.ref[Told]":
            protocol = Told()
            protocol.told = told
            (await attach(sock, protocol)).abort()
            return weakref.ref(protocol)

        gc.disable()
        try:
            gone = await lose()
            await until(lambda: told[-1] is type(None))
            await asyncio.sleep(0)
            assert gone() is None
        finally:
            gc.enable()


async def test_a_python_that_was_not_looked_at_makes_its_own_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_socket, "UNSEEN", (3, 11))
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as sock:
        sock.setblocking(False)
        told = Told()
        transport = await attach(sock, told)
        assert told.told == ["made"]
        assert not isinstance(transport, VendorSocket)
        transport.abort()
        await until(lambda: len(told.told) > 1)
