"""Requests of clients, as handlers get them: aiohttp's, and those that this package has read itself."""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import cast

from aiohttp import HttpVersion, HttpVersion11, web
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from proxy.listener.plain_head import PlainHead

_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


class Incoming(web.BaseRequest):
    """A request. `cors` are the headers that let the web page that sent it read the answer."""

    cors: Mapping[str, str] = MappingProxyType({})

    @property
    def safe_path(self) -> str:
        """The path, decoded but for `%2F` and `%25`: with the slashes that a rule in front of it sees."""
        return self._rel_url.path_safe

    def let_head_and_body_go(self) -> None:
        """Free the memory of what the client sent, all of which has been read: a stream may last for minutes. The
        request has no header fields after that."""
        self._headers = _NO_HEADERS
        self._message = self._message._replace(headers=_NO_HEADERS, raw_headers=())
        self._payload = EMPTY_PAYLOAD
        self._cache.clear()  # of members that were asked for, the header fields and the body among them

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # aiohttp calls this before it writes the head of an answer.
        response.headers.update(self.cors)


class ReceivedBody:
    """A body that came with its head, as the part of aiohttp's stream that readers of bodies use."""

    __slots__ = ("_left",)

    def __init__(self, body: bytes) -> None:
        self._left = body

    def is_eof(self) -> bool:
        """Whether all has come."""
        return True

    def at_eof(self) -> bool:
        """Whether all has been read."""
        return not self._left

    def read_nowait(self) -> bytes:
        """Return what has not been read."""
        left, self._left = self._left, b""
        return left

    async def readany(self) -> bytes:
        """Return what has not been read."""
        return self.read_nowait()

    def set_read_chunk_size(self, size: int) -> None:
        """Do nothing: there is one piece."""


class PlainRequest(Incoming):
    """A request that came whole and in the plain form.

    aiohttp's own constructor, with the URL, the message and the stream that it wants, costs 20 us in a running gateway;
    here the URL is made for whoever asks for it, and members that every request asks for are attributes.
    """

    __slots__ = (
        *("_cache", "_client_max_size", "_headers", "_payload", "_payload_writer", "_protocol", "_target"),
        *("content", "content_length", "headers", "keep_alive", "method", "version"),
    )

    headers: CIMultiDictProxy[str]
    content: StreamReader
    content_length: int
    keep_alive: bool
    method: str
    version: HttpVersion
    _target: str

    def __init__(self, head: PlainHead, body: bytes, protocol: RequestHandler, max_body: int) -> None:
        self._cache = {}
        self._target = head.target
        self._protocol = protocol
        self._client_max_size = max_body
        self._payload_writer = StreamWriter(protocol, protocol._loop)
        self._payload = self.content = cast(StreamReader, ReceivedBody(body))
        self._headers = self.headers = head.headers
        self.method = head.method
        self.version = HttpVersion11
        self.content_length = head.length
        self.keep_alive = head.keep_alive

    def __repr__(self) -> str:
        return f"<PlainRequest {self.method} {self.path}>"

    @property
    def safe_path(self) -> str:
        target = self._target
        return super().safe_path if "%" in target else target.partition("?")[0]

    @property
    def remote(self) -> str | None:
        address = self._protocol.peername
        return str(address[0]) if isinstance(address, tuple) else address

    @cached_property
    def _rel_url(self) -> URL:  # type: ignore[override]  # an attribute of the parent's
        path, _, query = self._target.partition("?")
        return URL.build(path=path, query_string=query, encoded=True)

    def let_head_and_body_go(self) -> None:
        self._headers = self.headers = _NO_HEADERS
        self._payload = self.content = EMPTY_PAYLOAD
        self._cache.clear()

    def _cancel(self, exc: BaseException) -> None:
        """Do nothing: aiohttp tells a body that nothing more of it will come."""
