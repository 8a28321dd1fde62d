"""The socket of a connection to a vendor: asyncio's own transport, with a short way for what comes.

In a stream nearly every read is one chunk. asyncio (CPython 3.11 to 3.14) takes two functions between its event loop
and a protocol, and three for a protocol that has a buffer of its own, as its TLS has. Here it is one, for both: where
hundreds of streams take turns, caches are cold and each function costs a chunk 0.3 to 0.5 us. What is read comes out of
the same memory for all connections, where asyncio's TLS keeps a buffer for each.

Writing, pausing, closing and failures are asyncio's. The private members that are used here have been the same since
CPython 3.7; a loop that is not asyncio's, or of a CPython that was not looked at, makes its own transport.
"""

import asyncio
import socket
import sys
from asyncio import selector_events
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

UNSEEN: Final = (3, 16)
"""The first CPython whose transports were not compared with this one."""

READ_AT_ONCE: Final = 256 * 1024
"""Bytes of one read, as asyncio's: a thousand chunks of a fast stream."""


class Receiver(Protocol):
    """A protocol that takes what comes, with TLS below it or not."""

    def data_received(self, data: bytes) -> None:
        """Take bytes that have come."""


_Transport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]  # typeshed does not have it


class VendorSocket(_Transport):  # type: ignore[misc]  # see above
    """See the module. Made for a connected socket that does not block, on a loop of asyncio's."""

    max_size: int
    _sock: socket.socket
    _conn_lost: int
    _protocol: Receiver
    _read_ready__on_eof: Callable[[], None]
    _fatal_error: Callable[[BaseException, str], None]

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        super().set_protocol(protocol)
        self._read_ready_cb = None  # a bound method of this object: a cycle that only the collector would free

    def _read_ready(self) -> None:
        """Read what has come, and hand it on."""
        if self._conn_lost:
            return
        try:
            data = self._sock.recv(self.max_size)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fatal_error(error, "Fatal read error on socket transport")
            return
        if not data:
            self._read_ready__on_eof()
            return
        try:
            self._protocol.data_received(data)
        except Exception as error:  # as asyncio's: a fault of ours ends this connection and no other
            self._fatal_error(error, "Fatal error: protocol.data_received() call failed.")


async def attach(sock: socket.socket, protocol: asyncio.BaseProtocol, at_once: int = READ_AT_ONCE) -> asyncio.Transport:
    """Return the transport of a protocol on a connected socket that does not block, once the protocol knows of it. It
    is a Receiver, and gets so many bytes at once, or as many as the loop's own transport reads."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, selector_events.BaseSelectorEventLoop) or sys.version_info >= UNSEEN:
        transport, _ = await loop.create_connection(lambda: protocol, sock=sock)
        return transport
    begun: asyncio.Future[None] = loop.create_future()
    own = VendorSocket(loop, sock, protocol, begun)
    own.max_size = at_once
    try:
        await begun
    except BaseException:
        own.close()
        raise
    return cast(asyncio.Transport, own)
