"""The HTTP below the surfaces: header sets, request ids, bodies, health answers, and faults of the parser.

Never knows a surface's envelope beyond asking for it.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from proxy.admission import Admitted
from proxy.browser_guard import BrowserGuard, Permitted, Preflight, Verdict
from proxy.deadlines import CLIENT_STALL
from proxy.errors import ErrorFacts, GatewayError, bad_http, internal, not_json, too_large
from proxy.half_closed import HalfClosable
from proxy.strict import fault
from proxy.surfaces.registry import surface_for_path

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

JSON = "application/json"
BASE_HEADERS: Mapping[str, str] = {
    "Server": "dragoman",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}
STREAM_HEADERS: Mapping[str, str] = {
    "Server": "dragoman",
    "Content-Type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    # nginx delays every event by one without it.
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
}
HEALTH_PATHS = frozenset({"/health", "/health/live", "/health/ready"})

HEAD_WAIT = 10.0
"""Seconds a request's head may take to arrive, from its first byte on."""

HEAD_LIMIT = 16 * 1024
"""Bytes of a head that comes in pieces; a single line may have half of them."""

MAX_FIELDS = 100
"""Header fields of a request."""

BODY_WAIT = 15.0
"""Seconds a request body may take to arrive, however short it is."""

BODY_PACE = 100_000
"""Bytes of a body that win its sender another second."""

LOOK_EVERY = 1.0
"""Seconds between two looks at the connections: one timer a listener instead of one a request."""

KEEP_ALIVE = 75.0
"""Seconds an idle client connection is kept; longer than the 60 s of common balancers, so that they close first."""

UNREAD_LIMIT = 64 * 1024
"""Bytes written to a client that does not read, from which on whoever writes waits."""

LINGER = 2.0
"""Seconds an unread body is listened to after its answer."""

_JSON_TYPE = re.compile(r"application/(?:[a-z0-9!#$&^_.-]+\+)?json[ \t]*(?:;|$)", re.IGNORECASE)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id(headers: Mapping[str, str]) -> str:
    """The client's id when it is one that may be echoed and logged, else a fresh one."""
    given = headers.get("x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given
    return fresh_id()


_bits = random.Random().getrandbits  # noqa: S311 - tells requests apart, guards nothing


def fresh_id() -> str:
    """24 hex digits; the system's own source would cost a system call of about 5 us."""
    return f"{_bits(96):024x}"


async def read_body(http: web.BaseRequest, arrived: Callable[[int], None]) -> bytes:
    """The request body; `arrived` is told how much of it there is while it comes and at its end, and may refuse it.

    Raises GatewayError 413 when it is too large, from the declared length where there is one, 408 when it does not
    arrive, and 415 when it is declared as anything but JSON, or is compressed: its length would say nothing of the
    memory it takes. Without a content type it is taken: raw clients leave it out.
    """
    kind = http.headers.get(hdrs.CONTENT_TYPE, JSON)
    if kind != JSON and not _JSON_TYPE.match(kind):
        raise not_json(kind)
    limit = http.client_max_size
    if (http.content_length or 0) > limit:
        raise too_large(limit)
    if http.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise bad_http("The request body must not be compressed; send it without Content-Encoding.", 415)
    try:
        body = await (http.read() if http.content.is_eof() else _arriving(http, arrived))
    except web.HTTPRequestEntityTooLarge:
        raise too_large(limit) from None
    except web.RequestPayloadError:
        raise bad_http("The request body could not be read.") from None
    arrived(len(body))
    return body


async def _arriving(http: web.BaseRequest, arrived: Callable[[int], None]) -> bytes:
    body = bytearray()
    started = asyncio.get_running_loop().time()
    clock = asyncio.timeout(BODY_WAIT)
    try:
        async with clock:
            await _invite(http)
            while piece := await http.content.readany():
                body += piece
                if len(body) > http.client_max_size:
                    raise too_large(http.client_max_size)
                arrived(len(body))
                clock.reschedule(started + BODY_WAIT + len(body) / BODY_PACE)
    except TimeoutError:
        raise bad_http(f"The request body did not arrive within {BODY_WAIT:g} s and 1 s per 100 kB.", 408) from None
    return bytes(body)


async def _invite(http: web.BaseRequest) -> None:
    """Tell a client that waits for it to send its body: curl does so from 1 MiB on, and loses a second otherwise."""
    if http.version >= HttpVersion11 and http.headers.get("expect", "").lower() == "100-continue":
        await http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # No part of the answer has been sent yet, which is what this counts.
        http.writer.output_size = 0


def health(ok: bool, headers: Mapping[str, str]) -> web.Response:
    """The answer of a health path."""
    body = b'{"status":"ok"}' if ok else b'{"status":"unavailable"}'
    return web.Response(status=200 if ok else 503, body=body, headers={**headers, "Content-Type": JSON})


Envelope = Callable[[str, ErrorFacts], tuple[int, bytes]]
"""Status and body of an error for whoever asked for a path."""


def surface_envelope(path: str, facts: ErrorFacts) -> tuple[int, bytes]:
    """The envelope of the surface that a path belongs to."""
    return surface_for_path(path).error(facts)


class PublicHandler(HalfClosable):
    """aiohttp's protocol with faults below the application answered in an envelope, and an eye on clients that neither
    send nor read.

    The stock handler answers in plain text, echoes the offending bytes, names its version, and waits for the rest of a
    head as long as for the next request.
    """

    __slots__ = ("_envelope", "_head_bytes", "_head_looks", "_stalled_looks", "_unread")

    def __init__(self, manager: web.Server, envelope: Envelope, **settings: object) -> None:
        super().__init__(manager, **settings)  # type: ignore[arg-type]  # handed through from the server
        self._envelope = envelope
        self._head_bytes = 0
        self._head_looks = -1
        self._stalled_looks = 0
        self._unread = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # asyncio's own limit for plain connections; under TLS its own is eight times as much.
        cast(asyncio.Transport, transport).set_write_buffer_limits(UNREAD_LIMIT)

    def connection_lost(self, exc: BaseException | None) -> None:
        transport = self.transport
        super().connection_lost(exc)
        # asyncio's own (3.11 to 3.14) keeps a method of itself, so that each connection would wait for the collector.
        if transport is not None and hasattr(transport, "_read_ready_cb"):
            transport._read_ready_cb = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        waiter = self._waiter
        # The first bytes may come before anybody waits for a request.
        if self._request_count if waiter is None else waiter.done():
            self._head_looks = -1
            if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
                self._break_off()
            return
        # Bytes came and no request is complete, so they are a part of its head.
        if self._head_looks < 0:
            self._head_looks = self._head_bytes = 0
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_LIMIT:
            self._give_up(431)

    def _break_off(self) -> None:
        # What was to be the rest of a body is no HTTP; aiohttp does not always tell whoever waits for it.
        current = self._current_request
        if current is not None and not current.content.is_eof():
            current.content.set_exception(web.RequestPayloadError())

    @property
    def untouched(self) -> bool:
        """Whether no byte has come on the connection."""
        return self._request_count == 0 and self._head_looks < 0

    def claim(self) -> Admitted | None:
        """The place of the request that came last, where it has one already."""
        return None

    def stay(self) -> None:
        """Go on in HTTP/1.1 after an offer to upgrade; whatever was sent behind it belongs to the other protocol."""
        self._upgraded = False
        self._message_tail = b""

    def look(self, transport: asyncio.Transport) -> None:
        """Called every LOOK_EVERY seconds: end the connection of a client that does not go on."""
        self.look_whether_gone(transport)
        if self._head_looks >= 0:
            self._head_looks += 1
            if self._head_looks > HEAD_WAIT / LOOK_EVERY:
                self._give_up(408)
        # A stream that is being written may fill the buffer as fast as it is read; its own clock knows better.
        if self._current_request is not None and not self._paused:
            self._stalled_looks = 0
        elif unread := transport.get_write_buffer_size():
            self._stalled_looks = self._stalled_looks + 1 if unread >= self._unread else 0
            self._unread = unread
            if self._stalled_looks > CLIENT_STALL / LOOK_EVERY:
                transport.abort()
        else:
            self._stalled_looks = self._unread = 0

    def _give_up(self, status: int) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            self._head_looks = -1
            self._messages.append((_ErrInfo(status, TimeoutError(), ""), EMPTY_PAYLOAD))
            waiter.set_result(None)

    def refusal(self, path: str, error: GatewayError) -> web.Response:
        """An error as the last answer of its connection: what else was sent on it is not to be trusted."""
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
            error = internal()
        elif status == 408:
            error = bad_http(f"The request's head did not arrive within {HEAD_WAIT:g} s.", status)
        elif status == 431:
            error = bad_http(f"The request's head is larger than {HEAD_LIMIT} bytes.", status)
        else:
            error = bad_http("The request could not be read as HTTP.", status)
        return self.refusal(path_of(request), error)


class Incoming(web.BaseRequest):
    """A request. `cors` are the headers that its answer has so that the web page that asked can read it."""

    cors: Mapping[str, str] = MappingProxyType({})

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # What aiohttp calls before it writes an answer's head.
        response.headers.update(self.cors)


RequestHandling = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Refuse = Callable[[web.BaseRequest, GatewayError], web.StreamResponse]


class PublicServer(web.Server):
    """Makes our handler for each connection, and requests with the body limit in bytes; whoever makes it shuts it down.

    `envelope` dresses what is refused before `handler` is asked. `guard` judges what browsers send; without one,
    everything passes. `refuse` answers what it refuses, in the envelope unless given.
    """

    def __init__(
        self,
        handler: RequestHandling,
        max_body: int,
        envelope: Envelope = surface_envelope,
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
        self._sound = handler
        self._max_body = max_body
        self._envelope = envelope
        self._guard = guard
        self._refuse = refuse or _refusal
        self._timer = self._loop.call_later(LOOK_EVERY, self._look)

    def __call__(self) -> RequestHandler:
        return PublicHandler(self, self._envelope, loop=self._loop, **self._kwargs)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's own
        self._timer.cancel()
        await super().shutdown(timeout)

    def _look(self) -> None:
        # Armed again first, so that a fault in one look is not the last.
        self._timer = self._loop.call_later(LOOK_EVERY, self._look)
        for handler, transport in list(self._connections.items()):
            cast(PublicHandler, handler).look(transport)

    def _handle(self, http: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        # No coroutine of its own: every request passes here.
        message = http._message
        if (found := fault(message)) is not None:
            return _refused(http, found)
        handler = self._sound
        if self._guard is not None and (verdict := self._guard.judge(message.method, message.headers)) is not None:
            handler = partial(self._judged, verdict)
        return self._unmoved(handler, http) if message.upgrade else handler(http)

    async def _judged(self, verdict: Verdict, http: web.BaseRequest) -> web.StreamResponse:
        """Answer a browser."""
        if isinstance(verdict, Permitted):
            cast(Incoming, http).cors = verdict.headers
            return await self._sound(http)
        if isinstance(verdict, Preflight):
            return web.Response(status=204, headers={**BASE_HEADERS, **verdict.headers})
        response = self._refuse(http, verdict)
        # Its body has not been read.
        response.force_close()
        return response

    async def _unmoved(self, handler: RequestHandling, http: web.BaseRequest) -> web.StreamResponse:
        """Answer a client that offers to upgrade as if it did not, and close: aiohttp 3.14.5 loses the next request, or
        stumbles over it, when it comes too soon."""
        response = await handler(http)
        response.force_close()
        cast(PublicHandler, http.protocol).stay()
        return response

    def _request(
        self,
        message: "RawRequestMessage",
        payload: "StreamReader",
        protocol: RequestHandler,
        writer: "AbstractStreamWriter",
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        return Incoming(message, payload, protocol, writer, task, self._loop, client_max_size=self._max_body)


async def _refused(http: web.BaseRequest, reason: str) -> web.StreamResponse:
    return _refusal(http, bad_http(reason))


def _refusal(http: web.BaseRequest, error: GatewayError) -> web.StreamResponse:
    return cast(PublicHandler, http.protocol).refusal(path_of(http), error)


def path_of(http: web.BaseRequest) -> str:
    """A request's path, decoded but for `%2F` and `%25`: what is told apart by slashes must see those alone that a rule
    in front of the gateway sees."""
    return http.rel_url.path_safe
