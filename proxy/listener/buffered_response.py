"""Responses that are sent in one write. Their heads are built as text, since aiohttp's header mapping would be most of
the cost of a small response.

The headers of every response and of streams are defined here too. All responses vary by Origin, even if the request has
none. Otherwise a cache could return the response to a page, whose browser refuses a response without
`Access-Control-Allow-Origin` (Fetch standard, "CORS protocol and HTTP caches").
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Protocol, cast

from aiohttp import HttpVersion, HttpVersion10, HttpVersion11, web
from aiohttp.client_exceptions import ClientConnectionResetError

from proxy.listener.client_request import Incoming

JSON = "application/json"
BASE_HEADERS: Mapping[str, str] = {
    "Server": "dragoman",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "vary": "Origin",
}
STREAM_HEADERS: Mapping[str, str] = {
    "Server": "dragoman",
    "Content-Type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    # Without this header, nginx delays every event until the next one.
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
    "vary": "Origin",
}


GONE = "the client has closed the connection"

MAX_WRITE_BYTES: Final = 512 * 1024
"""The maximum bytes of a response that one event loop iteration writes. asyncio copies the bytes that the socket does
not accept. Removing sent bytes from the copy takes the same time again: 40 ms for 18 MB."""

_KNOWN_STATUSES = frozenset(HTTPStatus)

_BASE = "".join(f"{name}: {value}\r\n" for name, value in {**BASE_HEADERS, "Content-Type": JSON}.items())


class Progressing(Protocol):
    """A connection that is closed if its client reads nothing for a long time."""

    def note_progress(self) -> None:
        """Note that the client has read."""


class BufferedResponse(web.StreamResponse):
    """A JSON response with a complete body. `headers` are its header lines besides the lines that every response
    has."""

    # `super().__init__` is not called, because it creates a mapping of headers. The protocol reads only these
    # attributes.
    def __init__(self, status: int, body: bytes, headers: str) -> None:
        self._status = status
        self._content = body
        self._header_lines = headers
        self._keep_alive: bool | None = None
        self._sent = False

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the response, once, and wait while the client does not read."""
        if (unread := self.send(request)) is not None:
            await unread

    def send(self, request: web.BaseRequest) -> Awaitable[None] | None:
        """Send the response, once. Return an awaitable that waits while the client does not read, `None` if it reads.
        This method and the awaitable raise ConnectionError if the client is gone."""
        if self._sent:
            return None
        self._sent = True
        incoming: Incoming = request  # type: ignore[assignment]  # listeners create only Incoming
        keep = self._keep_alive
        if keep is None:
            keep = self._keep_alive = incoming.keep_alive
        cors = incoming.cors
        headers = self._header_lines + header_lines(cors) if cors else self._header_lines
        head = response_head(incoming.version, self._status, headers, len(self._content), keep)
        content = b"" if incoming.method == "HEAD" else self._content
        client = incoming._protocol
        transport = client.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError(GONE)
        data = head + content[:MAX_WRITE_BYTES]
        incoming.count_sent(len(data))
        transport.write(data)
        if len(content) > MAX_WRITE_BYTES:
            return _send_rest(content, incoming)
        return client._drain_helper() if client._paused else None

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: `prepare` has sent everything."""


async def _send_rest(content: bytes, incoming: Incoming) -> None:
    """Send a long body from its second part on, each part once the client has read most of the previous ones.
    Raises ConnectionError if the client is gone."""
    client = incoming._protocol
    for at in range(MAX_WRITE_BYTES, len(content), MAX_WRITE_BYTES):
        await client._drain_helper()
        await asyncio.sleep(0)
        transport = client.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError(GONE)
        cast(Progressing, client).note_progress()
        transport.write(content[at : at + MAX_WRITE_BYTES])
    await client._drain_helper()


def response_head(version: HttpVersion, status: int, headers: str, length: int, keep: bool) -> bytes:
    """Return the head, with the current date, of a response with a body of `length` bytes. `keep` leaves the connection
    open."""
    before, after = _around(version, status, keep)
    return f"{before}{headers}{_date_of(int(time.time()))}Content-Length: {length}\r\n{after}".encode()


def streamed_head(version: HttpVersion, headers: str, chunked: bool, keep: bool) -> bytes:
    """Return the head, with the current date, of a response with status 200 whose body follows. `headers` are all of
    its header lines."""
    framing = "Transfer-Encoding: chunked\r\n" if chunked else ""
    return f"{start_line(version, 200)}{headers}{_date()}{framing}{_connection(version, keep)}".encode()


def header_lines(headers: Mapping[str, str]) -> str:
    """Return headers as lines. Raises ValueError for a value that would break its line."""
    for value in headers.values():
        if not value.isprintable():
            raise ValueError("a header's value would end its line")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


@lru_cache(maxsize=128)
def start_line(version: HttpVersion, status: int) -> str:
    """Return the status line of a response, in a supported version of HTTP (RFC 9112, 2.3)."""
    if version != HttpVersion10:
        version = HttpVersion11
    phrase = HTTPStatus(status).phrase if status in _KNOWN_STATUSES else "Status"
    return f"HTTP/{version.major}.{version.minor} {status} {phrase}\r\n"


@lru_cache(maxsize=128)
def _around(version: HttpVersion, status: int, keep: bool) -> tuple[str, str]:
    """Return the parts that many heads share: the lines before the response's own lines, and the lines after them."""
    return start_line(version, status) + _BASE, _connection(version, keep)


def _connection(version: HttpVersion, keep: bool) -> str:
    """Return the last lines of a head. HTTP/1.1 keeps connections open by default, HTTP/1.0 only with `Connection:
    keep-alive`."""
    if not keep:
        return "Connection: close\r\n\r\n"
    return "\r\n" if version >= HttpVersion11 else "Connection: keep-alive\r\n\r\n"


def _date() -> str:
    return _date_of(int(time.time()))


@lru_cache(maxsize=2)
def _date_of(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}\r\n"
