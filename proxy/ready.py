"""Answers that are sent in one write: making headers out of a mapping is most of what a small answer costs otherwise.

Never a stream, and never a body's content.
"""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import cast

from aiohttp import HttpVersion, HttpVersion11, web

from proxy.server import BASE_HEADERS, JSON, Incoming

_KNOWN = frozenset(HTTPStatus)

_BASE = "".join(f"{name}: {value}\r\n" for name, value in {**BASE_HEADERS, "Content-Type": JSON}.items())


class ReadyResponse(web.StreamResponse):
    """A JSON answer whose bytes stand ready. `own` are the lines of its own headers, besides those that every answer
    has."""

    # Not the parent's, which makes a mapping of headers: of an answer the protocol asks only what stands here.
    def __init__(self, status: int, body: bytes, own: str) -> None:
        self._status = status
        self._content = body
        self._own = own
        self._keep_alive: bool | None = None
        self._sent = False

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send everything, once, and wait for a client that does not read."""
        if self._sent:
            return
        self._sent = True
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        cors = cast(Incoming, request).cors
        own = self._own + lines(cors) if cors else self._own
        text = head(request.version, self._status, own, len(self._content), self._keep_alive)
        content = b"" if request.method == "HEAD" else self._content
        await request.writer.write_eof(text + content)

    async def write_eof(self, data: bytes = b"") -> None:
        """Everything has been sent."""


def head(version: HttpVersion, status: int, own: str, length: int, keep: bool) -> bytes:
    """The head of an answer with a body of so many bytes, at this moment; the connection stays, or it does not."""
    start, ending = start_line(version, status), _connection(version, keep)
    return f"{start}{_BASE}{own}{_date()}Content-Length: {length}\r\n{ending}".encode()


def lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises ValueError for a value that would end its line."""
    for value in headers.values():
        if not value.isprintable():
            raise ValueError("a header's value would end its line")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


@lru_cache(maxsize=128)
def start_line(version: HttpVersion, status: int) -> str:
    """The first line of an answer."""
    phrase = HTTPStatus(status).phrase if status in _KNOWN else "Status"
    return f"HTTP/{version.major}.{version.minor} {status} {phrase}\r\n"


def _connection(version: HttpVersion, keep: bool) -> str:
    """The last lines: connections stay open by themselves since HTTP/1.1, and by agreement before."""
    if not keep:
        return "Connection: close\r\n\r\n"
    return "\r\n" if version >= HttpVersion11 else "Connection: keep-alive\r\n\r\n"


def _date() -> str:
    return _date_of(int(time.time()))


@lru_cache(maxsize=2)
def _date_of(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}\r\n"
