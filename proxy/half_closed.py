"""Clients that have closed their half of the connection: those that wait for their answer told from those that left.

Never anything under TLS, where the end of one half is the end of both, or for HTTP/1.0, which knows no interim answers.

To the gateway both look the same until it sends something: the system of a client that is gone refuses it (RFC 9293,
3.10.7.1), one that waits takes it. So something is sent that means nothing: an interim answer, which every client of
HTTP/1.1 must take before the final one (RFC 9110, 15.2), or in a stream a comment.
"""

import asyncio
import select
from typing import cast

from aiohttp import HttpVersion11, web
from aiohttp.http_writer import StreamWriter
from aiohttp.web_protocol import RequestHandler

REFUSED_WITHIN = 0.05
"""Seconds after which it is looked whether something was refused; what takes longer is seen at the next look."""

ASKED_AT = frozenset({0, 1, 4, 16})
"""Looks, a second apart, at which an interim answer is sent. Go's client before 1.23 takes five of them."""

_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
_COMMENT = b"e\r\n: keep-alive\n\n\r\n"
_REFUSED = select.POLLERR | select.POLLHUP


class HalfClosable(RequestHandler):
    """aiohttp's protocol, which gives a client up that has closed its half of the connection, with an answer for those
    that wait for one. The connection ends with it."""

    __slots__ = ("_half_closed", "_looks")

    _half_closed: bool
    _looks: int

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._half_closed = False
        self._looks = 0

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp's own returns nothing
        transport, waiter = self.transport, self._waiter
        # Whether a request was read that is not answered; nobody may have begun with it yet.
        asked = self._request_count > 0 if waiter is None else waiter.done()
        if transport is None or not asked or transport.get_extra_info("sslcontext") is not None:
            return False
        self._half_closed = True
        self.close()
        self._loop.call_soon(self.look_whether_gone, transport)
        return True

    def look_whether_gone(self, transport: asyncio.Transport) -> None:
        """Called again and again: drop a client that has closed both halves by now."""
        if self._half_closed and not _drop_if_gone(transport):
            self._ask_whether_gone(transport)
            self._looks += 1

    def _ask_whether_gone(self, transport: asyncio.Transport) -> None:
        http = self._current_request
        if http is None or http.version < HttpVersion11 or not http.content.is_eof():
            # It has its answer, cannot take what would be sent, or has not said all after all.
            transport.close()
        elif (nothing := _meaning_nothing(http)) is not _INTERIM or self._looks in ASKED_AT:
            transport.write(nothing)
            self._loop.call_later(REFUSED_WITHIN, _drop_if_gone, transport)


def _meaning_nothing(http: web.BaseRequest) -> bytes:
    """What may stand before the answer, or in it as far as it has come; nothing within one that is no stream."""
    writer = cast(StreamWriter, http.writer)
    if not writer.output_size:
        return _INTERIM
    return _COMMENT if writer.chunked else b""


def _drop_if_gone(transport: asyncio.Transport) -> bool:
    """End the connection of a client whose system has refused what was sent; whether it is at its end."""
    if not transport.is_closing():
        signs = select.poll()
        signs.register(transport.get_extra_info("socket").fileno(), 0)
        if any(found & _REFUSED for _, found in signs.poll(0)):
            transport.abort()
    return transport.is_closing()
