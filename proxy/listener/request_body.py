"""Reads the body of a client's request, within limits of size and time."""

import asyncio
import re
from collections.abc import Callable
from io import BytesIO

from aiohttp import HttpVersion11, hdrs, web

from proxy.errors import GatewayError, bad_http, not_json, too_large
from proxy.listener.buffered_response import JSON
from proxy.listener.client_request import Incoming, PlainRequest

BODY_WAIT = 15.0
"""The seconds within which a request body must arrive, however short it is."""

BODY_PACE = 100_000
"""The number of received bytes that extend the deadline of a body by a second."""

_JSON_TYPE = re.compile(r"application/(?:[a-z0-9!#$&^_.-]+\+)?json[ \t]*(?:;|$)", re.IGNORECASE)


async def read_body(http: web.BaseRequest, on_received: Callable[[int], None]) -> bytes:
    """Return the request body. `on_received` gets the number of bytes received so far, after each part and at the end.
    It may refuse them by raising.

    Raises GatewayError 413 if the body is too large, judged by the declared length if there is one. Raises 408 if it
    does not arrive in time. Raises 415 if it is declared as anything but JSON, or is compressed, since its length would
    then not limit its memory. A missing content type is accepted, since raw clients omit it.
    """
    body = received_body(http)
    if body is None:
        _check_declared(http)
        try:
            body = await _read_arriving(http, on_received)
        except web.RequestPayloadError:
            raise _unreadable() from None
    on_received(len(body))
    return body


def received_body(http: web.BaseRequest) -> bytes | None:
    """Return the body of a request; `None` unless all of it has been received. Raises GatewayError as `read_body`
    does."""
    if not (isinstance(http, PlainRequest) or http.content.is_eof()):
        return None
    incoming: Incoming = http  # type: ignore[assignment]  # listeners create only Incoming
    # The received body is measured below, whatever length was declared.
    if not incoming.found.takes_body:
        _check_declared(http)
    try:
        body = http.content.read_nowait()
    except web.RequestPayloadError:
        raise _unreadable() from None
    if len(body) > http._client_max_size:
        raise too_large(http.client_max_size)
    return body


def _check_declared(http: web.BaseRequest) -> None:
    """Raise GatewayError if the head declares a body that is not accepted."""
    headers = http.headers
    kind = headers.get(hdrs.CONTENT_TYPE, JSON)
    if kind != JSON and not _JSON_TYPE.match(kind):
        raise not_json(kind)
    if (http.content_length or 0) > http.client_max_size:
        raise too_large(http.client_max_size)
    coding = headers.get(hdrs.CONTENT_ENCODING)
    if coding is not None and coding.lower() != "identity":
        raise bad_http("The request body must not be compressed; send it without Content-Encoding.", 415)
    incoming: Incoming = http  # type: ignore[assignment]  # listeners create only Incoming
    incoming.found.takes_body = True


def _unreadable() -> GatewayError:
    return bad_http("The request body could not be read.")


async def _read_arriving(http: web.BaseRequest, on_received: Callable[[int], None]) -> bytes:
    # BytesIO returns its value without a copy. Copying 30 MB would take 15 ms.
    body, received = BytesIO(), 0
    started = asyncio.get_running_loop().time()
    deadline = asyncio.timeout(BODY_WAIT)
    try:
        async with deadline:
            await send_continue(http)
            while part := await http.content.readany():
                received += body.write(part)
                if received > http.client_max_size:
                    raise too_large(http.client_max_size)
                on_received(received)
                deadline.reschedule(started + BODY_WAIT + received / BODY_PACE)
    except TimeoutError:
        raise bad_http(f"The request body did not arrive within {BODY_WAIT:g} s and 1 s per 100 kB.", 408) from None
    return body.getvalue()


async def send_continue(http: web.BaseRequest) -> None:
    """Send the interim response to `Expect: 100-continue`. curl sends this for bodies from 1 MiB on, and waits a second
    for it."""
    if http.version >= HttpVersion11 and http.headers.get("expect", "").lower() == "100-continue":
        await http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # aiohttp counts the interim response as output, but no part of the final response has been sent yet.
        http.writer.output_size = 0
