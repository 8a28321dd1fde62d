"""Answers sent in one write, heads built as text: aiohttp's header mapping would be most of a small answer's cost."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import cast

from aiohttp import HttpVersion, HttpVersion11, web
from aiohttp.client_exceptions import ClientConnectionResetError

from proxy.listener.client_request import Incoming
from proxy.listener.response_headers import BASE_HEADERS, JSON

GONE = "the client has closed the connection"

_KNOWN = frozenset(HTTPStatus)

_BASE = "".join(f"{name}: {value}\r\n" for name, value in {**BASE_HEADERS, "Content-Type": JSON}.items())


class BufferedResponse(web.StreamResponse):
    """A JSON answer with a complete body. `headers` are its header lines besides those that every answer has."""

    # Does not call the parent's, which makes a mapping of headers: the protocol reads no other attributes than these.
    def __init__(self, status: int, body: bytes, headers: str) -> None:
        self._status = status
        self._content = body
        self._header_lines = headers
        self._keep_alive: bool | None = None
        self._sent = False

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the answer, once, and wait while the client does not read."""
        if self._sent:
            return
        self._sent = True
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        cors = cast(Incoming, request).cors
        headers = self._header_lines + header_lines(cors) if cors else self._header_lines
        head = response_head(request.version, self._status, headers, len(self._content), self._keep_alive)
        content = b"" if request.method == "HEAD" else self._content
        client = request.protocol
        transport = client.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError(GONE)
        data = head + content
        request.writer.output_size += len(data)  # by which others see that the answer has begun
        transport.write(data)
        if client.writing_paused:
            await client._drain_helper()

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: `prepare` has sent everything."""


def response_head(version: HttpVersion, status: int, headers: str, length: int, keep: bool) -> bytes:
    """Return the head, dated now, of an answer with a body of `length` bytes; `keep` leaves the connection open."""
    start, ending = start_line(version, status), _connection(version, keep)
    return f"{start}{_BASE}{headers}{_date()}Content-Length: {length}\r\n{ending}".encode()


def streamed_head(version: HttpVersion, headers: str, chunked: bool, keep: bool) -> bytes:
    """Return the head, dated now, of a good answer whose body follows; `headers` are all of its own lines."""
    framing = "Transfer-Encoding: chunked\r\n" if chunked else ""
    return f"{start_line(version, 200)}{headers}{_date()}{framing}{_connection(version, keep)}".encode()


def header_lines(headers: Mapping[str, str]) -> str:
    """Return headers as lines. Raises ValueError for a value that would end its line."""
    for value in headers.values():
        if not value.isprintable():
            raise ValueError("a header's value would end its line")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


@lru_cache(maxsize=128)
def start_line(version: HttpVersion, status: int) -> str:
    """Return the first line of an answer."""
    phrase = HTTPStatus(status).phrase if status in _KNOWN else "Status"
    return f"HTTP/{version.major}.{version.minor} {status} {phrase}\r\n"


def _connection(version: HttpVersion, keep: bool) -> str:
    """Return the last lines of a head: HTTP/1.1 keeps connections open by default, HTTP/1.0 when it is said."""
    if not keep:
        return "Connection: close\r\n\r\n"
    return "\r\n" if version >= HttpVersion11 else "Connection: keep-alive\r\n\r\n"


def _date() -> str:
    return _date_of(int(time.time()))


@lru_cache(maxsize=2)
def _date_of(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}\r\n"
