"""Makes calls over HTTP/1.1. Only this package opens sockets to vendors.

In the common case, an idle connection and a body of common size, `open` writes once and waits once, without its own
task, future or timer.
"""

import asyncio
import errno
from collections.abc import AsyncGenerator
from typing import Final, NoReturn

from providers.dialect import Upload, UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.http_client.connect_failures import connect_failure
from proxy.http_client.connection_pool import ConnectionPool
from proxy.http_client.dialer import Destination, Dialer
from proxy.http_client.http1_connection import Http1Connection
from proxy.http_client.http_response import HttpResponse
from proxy.http_client.inflate_body import readable
from proxy.http_client.request_bytes import CallHeads
from proxy.loop_clock import loop_clock
from proxy.upstream.transport import RepeatableError, RepeatCause, Repeats, UpstreamResponse, fail

POOL_IDLE = 15.0
"""Seconds after which an idle connection is closed. It is below every vendor's own limit, so that the vendor does not
close first."""

POOL_IDLE_UNREPEATED = 1.0
"""Seconds after which an idle connection is closed if requests must not be sent twice, because a connection that closes
during reuse then makes a request fail. It is half of the shortest default of servers (gunicorn 2 s; uvicorn and Node.js
5 s)."""

STALE_WITHIN = 1.0
"""Seconds within which a reused connection must break for its request to count as unread. After that, the vendor may
have begun to process the request."""

MAX_WRITE_BYTES: Final = 512 * 1024
"""The maximum bytes of a body that one event loop iteration writes. asyncio copies the bytes that the socket does not
accept, and needs the same time again to remove the sent bytes from the copy: 40 ms for 30 MB."""

NO_DESCRIPTOR_LEFT: Final = frozenset({errno.EMFILE, errno.ENFILE})
NO_DESCRIPTOR: Final = "The gateway has no descriptor left for a connection to the upstream."

UNANSWERED: Final = "The upstream closed the connection without a response."
NOT_HTTP: Final = "The upstream's response was not valid HTTP."


class HttpTransport:
    """HTTP over the gateway's own connections, pooled by destination.

    A server that closes an idle connection at the moment of its reuse has very likely not read the request, so this
    raises RepeatableError. Deployments whose `retries.safety` forbids the repeat do not reuse connections that were
    idle for long.
    """

    def __init__(self) -> None:
        self._now = loop_clock()
        self.pool = ConnectionPool()
        self.dialer = Dialer(self.pool)
        self._heads = CallHeads()

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        """Send a call and return the response. Redirects are not followed, since they would carry the operator's key to
        another host."""
        call = self._heads.of(request)
        fresh = RepeatCause.STALE_CONNECTION in repeats
        head = call.bytes_for(request, request_id, fresh)
        connection = None if fresh else self.pool.take(call.to)
        reused = connection is not None
        if connection is None:
            connection = await self._connected(call.to, request)
        sent = self._now()
        request.note_written()
        try:
            late = request.upload is not None or len(request.body) > MAX_WRITE_BYTES
            connection.begin(head, b"" if late else request.body, request.method == "HEAD")
            if fresh:
                connection.spoil()
            if request.upload is not None:
                await _send(request.upload, connection)
            elif late:
                await _send_body(request.body, connection)
            while connection.state == "head":
                await connection.signal
        except BaseException:
            connection.abort()
            raise
        if connection.state == "dead" and connection.fault in ("unanswered", "garbled"):
            self._raise(connection, reused and self._now() - sent < STALE_WITHIN)
        response = HttpResponse(connection)
        if not connection.packed:
            return response
        shown = readable(response)
        if shown is None:
            connection.abort()
            raise fail(FailureKind.MALFORMED, NOT_HTTP)
        return shown

    async def _connected(self, to: Destination, request: UpstreamRequest) -> Http1Connection:
        """Return a new connection. Raises UpstreamError."""
        idle, began = POOL_IDLE if to.twice else POOL_IDLE_UNREPEATED, self._now()
        try:
            connection = await self.dialer.dial(to, idle, request.target.timeouts.connect)
        except OSError as error:
            if error.errno in NO_DESCRIPTOR_LEFT:
                raise UpstreamError(Failure(FailureKind.BUSY, NO_DESCRIPTOR, retry_after=1.0, unsent=True)) from None
            raise UpstreamError(connect_failure(error, request.url)) from None
        if connection.closed_unsent:
            connection.abort()
            raise UpstreamError(Failure(FailureKind.SERVER, UNANSWERED, unsent=True, ours=True))
        request.note_connected(self._now() - began)
        return connection

    def _raise(self, connection: Http1Connection, stale: bool) -> NoReturn:
        """Raise the failure of a connection without a response. `stale` is set if the vendor may have closed the reused
        connection before it read the request."""
        if connection.fault == "garbled":
            raise fail(FailureKind.MALFORMED, NOT_HTTP)
        if stale and not connection.heard:
            raise RepeatableError(Failure(FailureKind.STALE, UNANSWERED, ours=True), RepeatCause.STALE_CONNECTION)
        raise fail(FailureKind.SERVER, UNANSWERED)

    async def aclose(self) -> None:
        await self.pool.aclose()


async def _send_body(body: bytes, connection: Http1Connection) -> None:
    """Send a large body in parts. Each part is sent once the vendor has taken most of the previous parts. If the vendor
    refuses the body, the rest is not sent, and the connection is not used again. If the vendor responds early, the rest
    is sent without a wait."""
    for at in range(0, len(body), MAX_WRITE_BYTES):
        while connection.writing_held and connection.state == "head":
            await connection.signal
        if connection.wants_no_more:
            connection.spoil()
            return
        connection.write(body[at : at + MAX_WRITE_BYTES])
        await asyncio.sleep(0)


async def _send(upload: Upload, connection: Http1Connection) -> None:
    """Send a body as fast as the vendor takes it. If the vendor refuses it before its end, the rest is not sent, and
    the connection is not used again."""
    size = 0
    pieces = upload.pieces()
    try:
        async for piece in pieces:
            while connection.writing_held and not connection.wants_no_more:
                await connection.signal
            if connection.wants_no_more:
                connection.spoil()
                return
            connection.write(piece)
            size += len(piece)
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
    if size != upload.length:
        raise RuntimeError("a body of another length than was announced")
