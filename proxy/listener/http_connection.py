"""The listeners' HTTP on top of aiohttp: limits on heads and idle clients, early checks, responses to malformed
bytes."""

import asyncio
import heapq
import logging
import math
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from proxy.deadlines import CLIENT_STALL
from proxy.errors import ErrorFacts, GatewayError, bad_http, internal_error
from proxy.listener.buffered_response import BASE_HEADERS, JSON
from proxy.listener.client_request import Incoming, PlainRequest
from proxy.listener.cors_and_host_names import BrowserGuard, Permitted, Preflight, Verdict
from proxy.listener.fast_head_parser import head_fault
from proxy.listener.inline_requests import InlineRequests
from proxy.request_record import fresh_id

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

_LOG = logging.getLogger("dragoman")

HEAD_WAIT = 10.0
"""The most seconds in which a request's head must arrive, from its first byte on."""

HEAD_LIMIT = 16 * 1024
"""The most bytes of a head that arrives in parts. A single line may have half as many."""

LINE_LIMIT = 8190
"""The most bytes of one header field, or of the first line: aiohttp's `max_field_size` and `max_line_size` (3.14)."""

MAX_FIELDS = 100
"""The most header fields of a request."""

LOOK_EVERY = 1.0
"""Seconds between two checks of all connections. One timer serves the whole listener."""

KEEP_ALIVE = 75.0
"""Seconds after which an idle connection is closed. Common load balancers close an idle connection after 60 s, which is
before the gateway does."""

UNREAD_LIMIT = 64 * 1024
"""The number of bytes that the client has not read yet from which on a writer waits."""

LINGER = 2.0
"""Seconds for which an unread body is read and dropped after the response."""

CLOSED_AT_ONCE = 8
"""Each search for idle connections closes at least one in CLOSED_AT_ONCE of the allowed connections, so that searches
are rare."""

LEAST_IDLE = 2.0
"""Seconds for which a connection must have been idle before it is closed to make room, since a request may be on its
way."""

LOGGED_EVERY = 10.0
"""Seconds between two log messages about closed idle connections."""

Envelope = Callable[[str, ErrorFacts], tuple[int, bytes]]
"""Makes the status and body of an error for the path that was requested."""


class PublicHandler(InlineRequests):
    """aiohttp's protocol, changed to respond to malformed HTTP in the API's error format, and to close connections of
    clients that stop sending a head or reading a response.

    aiohttp's own protocol responds in plain text, echoes the malformed bytes, reveals its version, and waits for the
    rest of a head as long as for the next request.
    """

    __slots__ = ("_envelope", "_head_bytes", "_head_looks", "_stalled_looks", "_unread")

    def __init__(self, manager: web.Server, envelope: Envelope, **settings: object) -> None:
        super().__init__(manager, **settings)
        self._envelope = envelope
        self._head_bytes = 0
        self._head_looks = -1
        self._stalled_looks = 0
        self._unread = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # asyncio's own limit for plain connections; its limit under TLS is eight times as high.
        cast(asyncio.Transport, transport).set_write_buffer_limits(UNREAD_LIMIT)

    def connection_lost(self, exc: BaseException | None) -> None:
        transport = self.transport
        super().connection_lost(exc)
        # asyncio's transport (3.11 to 3.14) holds a bound method of itself. Only the garbage collector would free this
        # cycle.
        if transport is not None and hasattr(transport, "_read_ready_cb"):
            transport._read_ready_cb = None

    def _parse(self, data: bytes) -> None:
        complete = self._request_count
        super()._parse(data)
        if self._request_count > complete or self.answering:
            self._head_looks = -1
            if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
                self._fail_body()
            return
        # Bytes arrived and no request is complete, so they are part of a head.
        if self._head_looks < 0:
            self._head_looks = self._head_bytes = 0
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_LIMIT:
            self._refuse_head(431)

    def _fail_body(self) -> None:
        # The rest of a body is not valid HTTP. aiohttp does not always raise this in the reader of the body.
        current = self._current_request
        if current is not None and not current.content.is_eof():
            current.content.set_exception(web.RequestPayloadError())

    @property
    def idle(self) -> bool:
        """Whether no byte of a request without a response has arrived."""
        return not (self.answering or self._messages or self._collected or self._head_looks >= 0)

    @property
    def idle_since(self) -> float:
        """The time of the last response, or of the connection if there was no response."""
        return self._next_keepalive_close_time - self._keepalive_timeout

    def ignore_upgrade(self) -> None:
        """Stay with HTTP/1.1 after an offer to upgrade. Bytes after it belong to the other protocol and are dropped."""
        self._upgraded = False
        self._message_tail = b""

    def look(self, transport: asyncio.Transport) -> None:
        """Close the connection of a client that neither sends nor reads. It is called every LOOK_EVERY seconds."""
        self.look_whether_gone(transport)
        if self._head_looks >= 0:
            self._head_looks += 1
            if self._head_looks > HEAD_WAIT / LOOK_EVERY:
                self._refuse_head(408)
        # While a stream is written, the buffer may stay full although the client reads. The stream has its own
        # deadlines.
        if self._current_request is not None and not self._paused:
            self._stalled_looks = 0
        elif unread := transport.get_write_buffer_size():
            self._stalled_looks = self._stalled_looks + 1 if unread >= self._unread else 0
            self._unread = unread
            if self._stalled_looks > CLIENT_STALL / LOOK_EVERY:
                transport.abort()
        else:
            self._stalled_looks = self._unread = 0

    def note_progress(self) -> None:
        """Note that the client has read, so that the next part of its response is written."""
        self._stalled_looks = 0

    def _refuse_head(self, status: int) -> None:
        if self.answering or self._messages:
            return
        self._head_looks = -1
        self._messages.append((_ErrInfo(status, TimeoutError(), ""), EMPTY_PAYLOAD))
        # There is no waiter yet if the first bytes of the connection exceeded a limit.
        if self._waiter is not None:
            self._waiter.set_result(None)

    def refusal(self, path: str, error: GatewayError) -> web.Response:
        """Return an error response that closes the connection, since the following bytes of the connection cannot be
        trusted."""
        code, body = self._envelope(path, error.facts)
        headers = {**BASE_HEADERS, "Content-Type": JSON, "x-request-id": fresh_id(), **error.facts.headers}
        response = web.Response(status=code, body=body, headers=headers)
        response.force_close()
        return response

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("part of the answer has been sent")
        if status >= 500:
            self.log_exception("a request failed outside its handler", exc_info=exc)
            error = internal_error()
        elif status == 408:
            error = bad_http(f"The request's head did not arrive within {HEAD_WAIT:g} s.", status)
        elif isinstance(exc, LineTooLong):
            status = 431
            error = bad_http(f"A line of the request's head is larger than {LINE_LIMIT} bytes.", status)
        elif status == 431:
            error = bad_http(f"The request's head is larger than {HEAD_LIMIT} bytes.", status)
        else:
            error = bad_http("The request could not be read as HTTP.", status)
        return self.refusal(path_of(request), error)


RequestHandling = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Refuse = Callable[[web.BaseRequest, GatewayError], web.StreamResponse]


class PublicServer(web.Server):
    """Makes a PublicHandler for each connection. The bodies of requests are limited to `max_body` bytes. The creator
    shuts it down.

    `envelope` renders refusals before `handler` is called. `guard` judges requests of browsers; without a guard, all
    are permitted. `refuse` makes the response to a request that the guard refuses, by default with the envelope. If
    more than `most_open` connections are open, idle ones are closed, since calls of vendors need their file
    descriptors.
    """

    def __init__(
        self,
        handler: RequestHandling,
        max_body: int,
        envelope: Envelope,
        guard: BrowserGuard | None = None,
        refuse: Refuse | None = None,
    ) -> None:
        super().__init__(
            self._handle,
            request_factory=self._request,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE,
            lingering_time=LINGER,
            auto_decompress=False,
            max_headers=MAX_FIELDS,
            access_log=None,
        )
        self._handler = handler
        self.max_body = max_body
        self._envelope = envelope
        self._guard = guard
        self._refuse = refuse or _refusal_of
        self.most_open = sys.maxsize
        self._closing: set[RequestHandler] = set()
        self._closed_idle = 0
        self._search_at = self._log_at = -math.inf
        self._timer = self._loop.call_later(LOOK_EVERY, self._look)

    def __call__(self) -> RequestHandler:
        return PublicHandler(self, self._envelope, loop=self._loop, **self._kwargs)

    @property
    def open_connections(self) -> int:
        """The number of open connections of clients."""
        return len(self._connections)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Add a new connection, and close idle ones if there are too many. Called by aiohttp."""
        super().connection_made(handler, transport)
        if self._too_many > 0:
            self.close_idle()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Remove a connection. Called by aiohttp."""
        super().connection_lost(handler, exc)
        self._closing.discard(handler)

    @property
    def _too_many(self) -> int:
        """The number of open connections above the limit."""
        return len(self._connections) - len(self._closing) - self.most_open

    def close_idle(self) -> None:
        """Close the connections that have been idle longest, if they have been idle for at least LEAST_IDLE. If there
        are too few, the next search is delayed, since each search visits all connections."""
        now = self._loop.time()
        if now < self._search_at:
            return
        open_ones = cast(dict[PublicHandler, asyncio.Transport], self._connections)
        before = now - LEAST_IDLE
        idle = [
            each for each, at in open_ones.items() if each.idle and each.idle_since <= before and not at.is_closing()
        ]
        count = max(self._too_many, self.most_open // CLOSED_AT_ONCE, 1)
        closed = heapq.nsmallest(count, idle, key=lambda each: each.idle_since)
        for each in closed:
            open_ones[each].close()
        self._closing.update(closed)
        if len(closed) == len(idle):
            self._search_at = now + LOOK_EVERY / 2
        self._closed_idle += len(closed)
        if closed and now >= self._log_at:
            self._log_at = now + LOGGED_EVERY
            _LOG.warning(
                "%d idle connections of clients were closed: %d are open, and file descriptors are needed for vendors",
                *(self._closed_idle, len(open_ones)),
            )
            self._closed_idle = 0

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's own
        self._timer.cancel()
        await super().shutdown(timeout)

    def _look(self) -> None:
        # The timer is set first, so that checks continue after an exception in one of them.
        self._timer = self._loop.call_later(LOOK_EVERY, self._look)
        for handler, transport in list(self._connections.items()):
            cast(PublicHandler, handler).look(transport)
        if self._too_many > 0:
            self.close_idle()

    def _handle(self, http: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        # It is not a coroutine itself, since it is called for every request.
        plain = isinstance(http, PlainRequest)
        if not plain and (fault := head_fault(http._message)) is not None:
            return _refused(http, fault)
        handler = self._handler
        guard = self._guard
        if guard is not None:
            incoming: Incoming = http  # type: ignore[assignment]  # this server creates only Incoming
            found = incoming.found
            if found.browser is not guard.rules:
                if (verdict := guard.judge(http.method, http.headers)) is None:
                    found.browser = guard.rules
                else:
                    handler = partial(self._answer_browser, verdict)
        return handler(http) if plain or not http._message.upgrade else self._without_upgrade(handler, http)

    async def _answer_browser(self, verdict: Verdict, http: web.BaseRequest) -> web.StreamResponse:
        """Respond to a request on which the browser guard has a verdict."""
        if isinstance(verdict, Permitted):
            cast(Incoming, http).cors = verdict.headers
            return await self._handler(http)
        if isinstance(verdict, Preflight):
            return web.Response(status=204, headers={**BASE_HEADERS, **verdict.headers})
        response = self._refuse(http, verdict)
        # The request's body has not been read.
        response.force_close()
        return response

    async def _without_upgrade(self, handler: RequestHandling, http: web.BaseRequest) -> web.StreamResponse:
        """Respond to a client that offers to upgrade as if it did not, and close the connection: aiohttp 3.14.5 loses
        the next request, or fails on it if it arrives too soon."""
        response = await handler(http)
        response.force_close()
        cast(PublicHandler, http.protocol).ignore_upgrade()
        return response

    def _request(
        self,
        message: "RawRequestMessage",
        payload: "StreamReader",
        protocol: RequestHandler,
        writer: "AbstractStreamWriter",
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        return Incoming(message, payload, protocol, writer, task, self._loop, client_max_size=self.max_body)


async def _refused(http: web.BaseRequest, reason: str) -> web.StreamResponse:
    return _refusal_of(http, bad_http(reason))


def _refusal_of(http: web.BaseRequest, error: GatewayError) -> web.StreamResponse:
    return cast(PublicHandler, http.protocol).refusal(path_of(http), error)


def path_of(http: web.BaseRequest) -> str:
    """Return a request's path, decoded except for `%2F` and `%25`, so that it has the slashes that a proxy in front
    sees."""
    incoming: Incoming = http  # type: ignore[assignment]  # listeners create only Incoming
    return incoming.safe_path
