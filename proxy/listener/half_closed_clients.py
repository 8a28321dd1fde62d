"""Half-closed connections: distinguishes clients that have sent everything and wait for the response from clients that
have left.

Both look the same until the gateway sends data. The operating system of a client that has left refuses the data (RFC
9293, 3.10.7.1). So the gateway sends data without meaning: an interim response, which every HTTP/1.1 client must accept
before the final one (RFC 9110, 15.2), or a comment in a stream. This is not done with TLS, in which closing one half
closes both, nor with HTTP/1.0, which has no interim responses.
"""

import asyncio
import select
from typing import cast

from aiohttp import HttpVersion11, web
from aiohttp.web_protocol import RequestHandler

from proxy.listener.client_request import Incoming

REFUSED_WITHIN = 0.05
"""Seconds from sending a probe to the check whether it was refused. A later refusal is noticed at the next check."""

PROBED_AT = frozenset({0, 1, 4, 16})
"""The numbers of the checks, one second apart, at which an interim response is sent. Go's client before 1.23 accepts
five of them."""

_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
_COMMENT = b"e\r\n: keep-alive\n\n\r\n"
_REFUSED = select.POLLERR | select.POLLHUP


class HalfClosable(RequestHandler):
    """aiohttp's protocol, changed to respond to clients that half-close their connection and wait. aiohttp would drop
    them. The connection is closed after the response."""

    __slots__ = ("_half_closed", "_looks")

    def __init__(self, manager: web.Server, **settings: object) -> None:
        super().__init__(manager, **settings)  # type: ignore[arg-type]  # passed through from the server
        self._half_closed = False
        self._looks = 0

    @property
    def answering(self) -> bool:
        """Whether a request has been read and has no response yet."""
        # The request's handler may not have started yet.
        return self._request_count > 0 if self._waiter is None else self._waiter.done()

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp's own returns `None`
        transport = self.transport
        if transport is None or not self.answering or transport.get_extra_info("sslcontext") is not None:
            return False
        self._half_closed = True
        self.close()
        self._loop.call_soon(self.look_whether_gone, transport)
        return True

    def look_whether_gone(self, transport: asyncio.Transport) -> None:
        """Drop the client if it has closed both halves, else probe it. It is called at every check."""
        if self._half_closed and not _drop_if_gone(transport):
            self._probe(transport)
            self._looks += 1

    def _probe(self, transport: asyncio.Transport) -> None:
        http = self._current_request
        if http is None or http.version < HttpVersion11 or not http.content.is_eof():
            # The client has its response, does not support interim responses, or closed before its request was
            # complete.
            transport.close()
        elif (probe := _probe_for(http)) is not _INTERIM or self._looks in PROBED_AT:
            transport.write(probe)
            self._loop.call_later(REFUSED_WITHIN, _drop_if_gone, transport)


def _probe_for(http: web.BaseRequest) -> bytes:
    """Return bytes without meaning at this point of the response; empty within a response that is not a stream."""
    if not http.writer.output_size:
        return _INTERIM
    return _COMMENT if cast(Incoming, http).takes_comments else b""


def _drop_if_gone(transport: asyncio.Transport) -> bool:
    """Abort the connection if the client's system has refused data. Returns whether the connection is closing."""
    if not transport.is_closing():
        poll = select.poll()
        poll.register(transport.get_extra_info("socket").fileno(), 0)
        if any(found & _REFUSED for _, found in poll.poll(0)):
            transport.abort()
    return transport.is_closing()
