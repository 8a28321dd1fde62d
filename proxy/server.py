"""The HTTP below the surfaces: header sets, request ids, bodies, health answers, and faults of the parser.

Never knows a surface's envelope beyond asking for it.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, web
from aiohttp.web_protocol import RequestHandler

from proxy.errors import bad_http, internal, too_large
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

BODY_WAIT = 60.0
"""Seconds a request body may take to arrive."""

KEEP_ALIVE = 75.0
"""Seconds an idle client connection is kept; longer than the 60 s of common balancers, so that they close first."""

LINGER = 2.0
"""Seconds an unread body is listened to after its answer."""

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


async def read_body(http: web.BaseRequest) -> bytes:
    """The request body. Raises GatewayError 413 when it is too large, from the declared length where there is one, and
    408 when it does not arrive."""
    limit = http.client_max_size
    if (http.content_length or 0) > limit:
        raise too_large(limit)
    try:
        if http.content.is_eof():
            return await http.read()
        async with asyncio.timeout(BODY_WAIT):
            await _invite(http)
            return await http.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large(limit) from None
    except TimeoutError:
        raise bad_http(f"The request body did not arrive within {BODY_WAIT:g} s.", 408) from None
    except web.RequestPayloadError:
        raise bad_http("The request body could not be read.") from None


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


class PublicHandler(RequestHandler):
    """aiohttp's protocol, with faults below the application answered in a surface's envelope.

    The stock handler answers in plain text, echoes the offending bytes and names its version.
    """

    __slots__ = ()

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
        else:
            error = bad_http("The request could not be read as HTTP.", status)
        code, body = surface_for_path(request.path).error(error.facts)
        headers = {**BASE_HEADERS, "Content-Type": JSON, "x-request-id": fresh_id()}
        response = web.Response(status=code, body=body, headers=headers)
        response.force_close()
        return response


class PublicServer(web.Server):
    """Makes our handler for each connection, and requests with the body limit in bytes."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], max_body: int) -> None:
        super().__init__(
            handler,
            request_factory=self._request,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE,
            lingering_time=LINGER,
            access_log=None,
        )
        self._max_body = max_body

    def __call__(self) -> RequestHandler:
        return PublicHandler(self, loop=self._loop, **self._kwargs)

    def _request(
        self,
        message: "RawRequestMessage",
        payload: "StreamReader",
        protocol: RequestHandler,
        writer: "AbstractStreamWriter",
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop, client_max_size=self._max_body)
