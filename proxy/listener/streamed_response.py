"""Responses that are sent in chunks. The head is sent with the first chunk, and each chunk in one write.

aiohttp's own stream response costs a mapping of headers for each response and two coroutines for each chunk. Its
protocol reads only the attributes that are set here.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import cast

from aiohttp import HttpVersion11, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.client_exceptions import ClientConnectionResetError

from proxy.listener.buffered_response import MAX_WRITE_BYTES, Progressing, header_lines, streamed_head
from proxy.listener.client_request import Incoming

GONE = "the client has closed the connection"


class StreamedResponse(web.StreamResponse):
    """A response with status 200 whose body is sent in chunks. Its length is given by a `Content-Length` among its
    headers, otherwise by chunked encoding, or for clients of HTTP/1.0 by the end of the connection. `lines` are further
    header lines. With `whole_events` each chunk holds complete events, so that a comment may be sent between two
    chunks."""

    # `super().__init__` is not called, because it makes a mapping of headers.
    def __init__(self, headers: Mapping[str, str], lines: str = "", *, whole_events: bool = False) -> None:
        self._status = 200
        self._fields = headers
        self._lines = lines
        self._whole_events = whole_events
        self._keep_alive: bool | None = None
        self._client: BaseProtocol | None = None
        self._head = b""
        self._chunked = self._ended = self._within_chunk = False

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do as `begin` does. Called by aiohttp."""
        self.begin(request)

    def begin(self, request: web.BaseRequest) -> None:
        """Make the head, once. It is sent with the first chunk."""
        if self._client is not None:
            return
        incoming: Incoming = request  # type: ignore[assignment]  # listeners create only Incoming
        fields, cors, lines = self._fields, incoming.cors, self._lines
        if fields or cors:
            lines = header_lines({**fields, **cors}) + lines
        self._incoming = incoming
        self._client = incoming._protocol
        version, sized = incoming.version, "Content-Length" in fields
        self._chunked = version >= HttpVersion11 and not sized
        incoming.takes_comments = self._chunked and self._whole_events
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive and (self._chunked or sized)
        self._head = streamed_head(version, lines, self._chunked, self._keep_alive)

    def send(self, data: bytes | bytearray | memoryview, end: bytes = b"") -> bool | Awaitable[None]:
        """Send a chunk, followed by `end`. Return True, or an awaitable that waits while the client does not read. Both
        raise ConnectionError if the client is gone.

        All steps are in this function, since a call for each step would double the cost.
        """
        if len(data) > MAX_WRITE_BYTES:
            return self._send_parts(data, end)
        head = self._head
        if self._chunked and data:
            data = b"".join((head, b"%x\r\n" % len(data), data, b"\r\n", end))
        elif head or end:
            data = b"".join((head, data, end))
        client = self._client
        transport = None if client is None else client.transport
        if client is None or transport is None or transport.is_closing():
            raise ClientConnectionResetError(GONE)
        if data:
            if head:
                self._head = b""
                self._incoming.count_sent(len(data))  # only whether there was any output matters
            transport.write(data)
        return client._drain_helper() if client._paused else True

    def precede(self, data: bytes) -> None:
        """Send these bytes before the next chunk and in the same write, after the head if it has not been sent."""
        if data:
            self._head += self._framed(data)

    @property
    def is_open(self) -> bool:
        """Whether more can be sent: the client is connected, and the response has not ended."""
        client = self._client
        transport = None if client is None else client.transport
        return not self._ended and transport is not None and not transport.is_closing()

    def interject(self, data: bytes) -> bool:
        """Send bytes between two chunks, and return whether they were sent. They are not sent within a chunk, nor to a
        client that does not read, so that its unread bytes do not grow. It must be called only while `is_open` is
        true."""
        client = self._client
        transport = None if client is None else client.transport
        if client is None or transport is None or client._paused or self._within_chunk:
            return False
        head, self._head = self._head, b""
        data = head + self._framed(data)
        self._incoming.count_sent(len(data))
        transport.write(data)
        return True

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    async def _send_parts(self, data: bytes | bytearray | memoryview, end: bytes) -> None:
        """Send a long chunk in parts, each once the client has read most of the previous ones."""
        last = (len(data) - 1) // MAX_WRITE_BYTES * MAX_WRITE_BYTES
        view = memoryview(data)
        takes_comments, self._incoming.takes_comments = self._incoming.takes_comments, False
        self._within_chunk = True
        for at in range(0, last, MAX_WRITE_BYTES):
            await self.write(view[at : at + MAX_WRITE_BYTES])
            if self._client is not None:
                cast(Progressing, self._client).note_progress()
            await asyncio.sleep(0)
        sent = self.send(view[last:], end)
        self._within_chunk = False
        self._incoming.takes_comments = takes_comments
        if sent is not True:
            await cast(Awaitable[None], sent)

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a chunk, and wait while the client does not read. Raises ConnectionError if the client is gone."""
        sent = self.send(data)
        if sent is not True:
            await cast(Awaitable[None], sent)

    async def write_eof(self, data: bytes = b"") -> None:
        """Send the last chunk and the end, once. Raises ConnectionError if the client is gone."""
        if self._ended:
            return
        self._ended = True
        sent = self.send(data, b"0\r\n\r\n" if self._chunked else b"")
        if sent is not True:
            await cast(Awaitable[None], sent)
