"""A vendor on a raw socket that sends given bytes in given chunks, and is quick enough for thousands of responses."""

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from typing_extensions import override

Ending = Literal["stays", "fin", "rst"]

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
"""The response to every request without a prepared one."""

TURNS = 4
"""Event loop iterations after each chunk: the bytes are read in one, and the code that they wake runs in the next."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes in chunks, and the fate of the connection after them."""

    pieces: tuple[bytes, ...]
    ending: Ending


class ByteVendor:
    """Sends the prepared response to the next request. `sent` is set when all of it has been sent."""

    def __init__(self) -> None:
        self.prepared: Answer | None = None
        self.sent = asyncio.Event()
        self.connections: list[_VendorSide] = []
        self.served = 0
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _VendorSide(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def prepare(self, pieces: Sequence[bytes], ending: Ending) -> None:
        """Prepare the response to the next request, and restart the count of connections."""
        self.prepared = Answer(tuple(pieces), ending)
        self.sent.clear()
        self.served = 0

    async def drop_connections(self) -> None:
        """Close the open connections, so that nothing is left for the next case."""
        for connection in self.connections:
            connection.transport.abort()
        self.connections.clear()
        await settle()

    async def stop(self) -> None:
        """Close the server and its connections."""
        await self.drop_connections()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


class _VendorSide(asyncio.Protocol):
    def __init__(self, vendor: ByteVendor) -> None:
        self._vendor = vendor
        self._received = b""
        self._counted = False
        self._sending: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._vendor.connections.append(self)

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        # Bodies are `{}` or empty.
        if not self._received.endswith((b"\r\n\r\n", b"{}")):
            return
        self._received = b""
        if not self._counted:
            self._counted = True
            self._vendor.served += 1
        answer, self._vendor.prepared = self._vendor.prepared, None
        if answer is None:
            self.transport.write(OK)
        else:
            self._sending = asyncio.get_running_loop().create_task(self._send(answer))

    async def _send(self, answer: Answer) -> None:
        try:
            for number, piece in enumerate(answer.pieces):
                if number:
                    await settle()
                if self.transport.is_closing():
                    return
                self.transport.write(piece)
            await self._leave(answer.ending)
            await settle()
        finally:
            self._vendor.sent.set()

    async def _leave(self, ending: Ending) -> None:
        await settle()
        if ending == "fin":
            self.transport.close()
        elif ending == "rst" and not self.transport.is_closing():
            made = self.transport.get_extra_info("socket")
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()


async def settle(turns: int = TURNS) -> None:
    """Let the sent bytes arrive."""
    for _ in range(turns):
        await asyncio.sleep(0)
