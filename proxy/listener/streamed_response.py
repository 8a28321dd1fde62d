"""Answers sent piece by piece: the head leaves with the first piece, and each piece in one write.

aiohttp's own stream response costs a mapping of headers for each answer and two coroutines for each piece; its protocol
reads no other attributes of a response than those here.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import cast

from aiohttp import HttpVersion11, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.client_exceptions import ClientConnectionResetError

from proxy.listener.buffered_response import AT_ONCE, Progressing, header_lines, streamed_head
from proxy.listener.client_request import Incoming

GONE = "the client has closed the connection"


class StreamedResponse(web.StreamResponse):
    """A good answer whose body comes in pieces: as long as a `Content-Length` among its headers says, else in chunks,
    and to clients of HTTP/1.0 until the connection closes. `lines` are further headers, as lines. With `whole_events`
    each piece holds whole events, so that a comment may stand between two."""

    # Does not call the parent's, which makes a mapping of headers.
    def __init__(self, headers: Mapping[str, str], lines: str = "", *, whole_events: bool = False) -> None:
        self._status = 200
        self._fields = headers
        self._lines = lines
        self._whole_events = whole_events
        self._keep_alive: bool | None = None
        self._client: BaseProtocol | None = None
        self._head = b""
        self._chunked = self._ended = self._within_piece = False

    async def prepare(self, request: web.BaseRequest) -> None:
        """See `begin`. Called by aiohttp."""
        self.begin(request)

    def begin(self, request: web.BaseRequest) -> None:
        """Make the head, once. It is sent with the first piece."""
        if self._client is not None:
            return
        incoming: Incoming = request  # type: ignore[assignment]  # the listeners make no others
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
        """Send a piece, and what is to follow it. Returns True, or what to wait for while the client does not read.
        Either raises ConnectionError when it is gone.

        The whole of it stands here: in a function of its own, each step would cost as much again.
        """
        if len(data) > AT_ONCE:
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
                self._incoming.count_sent(len(data))  # which is asked only whether there was any
            transport.write(data)
        return client._drain_helper() if client._paused else True

    def precede(self, data: bytes) -> None:
        """Send these bytes with the next piece, before it, and after the head if that has not been sent."""
        if data:
            self._head += self._framed(data)

    @property
    def is_open(self) -> bool:
        """Whether more can be sent: the client is there, and does not have the end."""
        client = self._client
        transport = None if client is None else client.transport
        return not self._ended and transport is not None and not transport.is_closing()

    def interject(self, data: bytes) -> bool:
        """Send bytes that belong to no piece, and return whether they were sent: not within a piece, and not to a
        client that does not read, so that its unread bytes do not grow. To be called while `is_open`."""
        client = self._client
        transport = None if client is None else client.transport
        if client is None or transport is None or client._paused or self._within_piece:
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
        last = (len(data) - 1) // AT_ONCE * AT_ONCE
        view = memoryview(data)
        takes_comments, self._incoming.takes_comments = self._incoming.takes_comments, False
        self._within_piece = True
        for at in range(0, last, AT_ONCE):
            await self.write(view[at : at + AT_ONCE])
            if self._client is not None:
                cast(Progressing, self._client).note_progress()
            await asyncio.sleep(0)
        sent = self.send(view[last:], end)
        self._within_piece = False
        self._incoming.takes_comments = takes_comments
        if sent is not True:
            await cast(Awaitable[None], sent)

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a piece, and wait while the client does not read. Raises ConnectionError when it is gone."""
        sent = self.send(data)
        if sent is not True:
            await cast(Awaitable[None], sent)

    async def write_eof(self, data: bytes = b"") -> None:
        """Send the last piece and the end, once. Raises ConnectionError when the client is gone."""
        if self._ended:
            return
        self._ended = True
        sent = self.send(data, b"0\r\n\r\n" if self._chunked else b"")
        if sent is not True:
            await cast(Awaitable[None], sent)
