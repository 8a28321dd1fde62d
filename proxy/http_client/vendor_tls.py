"""TLS to vendors: asyncio's, with a short way for the records of an answer that is under way.

asyncio asks OpenSSL for more until it raises that there is none, and then looks whether anything is to be sent, whether
writing may go on and whether reading has to pause: an exception and eight calls for each record (CPython 3.11 to 3.14),
and in a stream nearly every record is one chunk. Here OpenSSL is asked again only while encrypted bytes are left.
Handshakes, requests, ends and failures are asyncio's, and so are the connections of uvloop, whose own TLS costs a small
record more than this.
"""

import asyncio
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from proxy.http_client.vendor_socket import attach

RECORD: Final = 16 * 1024
"""Bytes of the largest record (RFC 8446, 5.1): of one that is read with this size nothing is left in OpenSSL."""

_WRAPPED = sslproto.SSLProtocolState.WRAPPED
_AGAIN = (ssl.SSLWantReadError, ssl.SSLSyscallError)


class VendorTls(sslproto.SSLProtocol):
    """TLS below one protocol. What comes is given to `data_received` by a VendorSocket, and by other transports to
    `buffer_updated`."""

    # asyncio's own, of which the type stubs know little.
    _app_protocol: asyncio.Protocol
    _app_reading_paused: bool
    _incoming: ssl.MemoryBIO
    _outgoing: ssl.MemoryBIO
    _sslobj: Any
    _ssl_buffer: bytearray
    _ssl_buffer_view: memoryview
    _ssl_reading_paused: bool
    _state: sslproto.SSLProtocolState
    _do_read: Callable[[], None]

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        shaken: "asyncio.Future[None]",
        host: str,
    ) -> None:
        super().__init__(loop, protocol, context, shaken, server_side=False, server_hostname=host)
        # `get_buffer` makes it again for the transports that ask for it: tens of KB for each connection.
        self._ssl_buffer = bytearray()
        self._ssl_buffer_view = memoryview(self._ssl_buffer)

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt what stands in the buffer."""
        self.data_received(self._ssl_buffer_view[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Decrypt what has come, and hand it on at once."""
        incoming = self._incoming
        incoming.write(data)
        if self._state is not _WRAPPED or self._app_reading_paused or self._ssl_reading_paused or self._write_backlog:
            super().buffer_updated(0)
            return
        plain, several = b"", False
        try:
            # Without the function that `ssl` has around OpenSSL's, which a chunk pays for as for any other.
            plain = self._sslobj._sslobj.read(RECORD)
            several = incoming.pending > 0
            if several:
                plain += self._rest()
        except _AGAIN:
            pass  # a part of a record, or one without content
        except ssl.SSLError as error:
            self._fatal_error(error, "Fatal error on SSL protocol")
            return
        if plain:
            self._app_protocol.data_received(plain)
        if several or not plain or self._outgoing.pending:
            self._do_read()  # asyncio's way finds what else there is: an end, something to be sent

    def _rest(self) -> bytes:
        """Decrypt what else has come: several chunks are handed on together."""
        pieces: list[bytes] = []
        with suppress(*_AGAIN):
            while self._incoming.pending and (piece := self._sslobj.read(RECORD)):
                pieces.append(piece)
        return b"".join(pieces)


async def secure(sock: socket.socket, protocol: asyncio.Protocol, context: ssl.SSLContext, host: str) -> None:
    """Connect a protocol to a connected socket by TLS. Raises OSError, of which TLS's exceptions are kinds, and
    CertificateError."""
    loop = asyncio.get_running_loop()
    shaken: asyncio.Future[None] = loop.create_future()
    tls = VendorTls(loop, protocol, context, shaken, host)
    transport = await attach(sock, tls, 2 * RECORD)
    try:
        await shaken
    except BaseException:
        transport.abort()
        raise
