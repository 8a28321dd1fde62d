"""Requests of clients that handlers receive: aiohttp's requests, and requests that this package has parsed itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from aiohttp import HttpVersion, HttpVersion11, web
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from proxy.listener.fast_head_parser import HeadFindings, PlainHead

_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


class Incoming(web.BaseRequest):
    """A request. `cors` are the headers that let the web page that sent it read the response. `takes_comments` is set
    while a comment may be sent: the response is a stream of events, and the last event was sent completely."""

    takes_comments: bool = False
    cors: Mapping[str, str] = MappingProxyType({})

    @cached_property
    def found(self) -> HeadFindings:
        """The findings about its head."""
        return HeadFindings()

    def count_sent(self, size: int) -> None:
        """Count bytes of the response, which shows that the response has begun."""
        self.writer.output_size += size

    @property
    def safe_path(self) -> str:
        """The path, decoded except for `%2F` and `%25`, so that it has the slashes that a proxy in front sees."""
        return self._rel_url.path_safe

    def let_head_and_body_go(self) -> None:
        """Free the memory of the client's head and body, which have been read, since a stream may last for minutes.
        After this call the request has no header fields."""
        self._headers = _NO_HEADERS
        self._message = self._message._replace(headers=_NO_HEADERS, raw_headers=())
        self._payload = EMPTY_PAYLOAD
        self._cache.clear()  # the cached properties, such as header fields and body

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # aiohttp calls this before it writes the head of a response.
        response.headers.update(self.cors)


@dataclass(slots=True, eq=False)
class ReceivedBody:
    """A body that was received with its head. It has the methods of aiohttp's stream that readers of bodies use."""

    _left: bytes

    def is_eof(self) -> bool:
        """Whether the whole body has been received."""
        return True

    def at_eof(self) -> bool:
        """Whether the whole body has been read."""
        return not self._left

    def read_nowait(self) -> bytes:
        """Return the part that has not been read."""
        left, self._left = self._left, b""
        return left

    async def readany(self) -> bytes:
        return self.read_nowait()

    def set_read_chunk_size(self, size: int) -> None:
        """Do nothing, since the body is read in one part."""


class PlainRequest(Incoming):
    """A request that was received completely and in the plain form.

    aiohttp's own constructor, with the URL, the message and the stream that it needs, costs 20 us in a running gateway.
    Here the URL and the writer are made on demand, and properties that every request needs are attributes.
    """

    __slots__ = (
        *("_cache", "_client_max_size", "_headers", "_payload", "_protocol", "_sent", "_target", "_writer"),
        *("content", "content_length", "found", "headers", "keep_alive", "method", "remote", "takes_comments"),
        "version",
    )

    headers: CIMultiDictProxy[str]
    content: StreamReader
    content_length: int
    found: HeadFindings
    keep_alive: bool
    method: str
    remote: str | None
    takes_comments: bool
    version: HttpVersion
    _sent: int
    _target: str
    _writer: StreamWriter | None

    def __init__(self, head: PlainHead, body: bytes, protocol: RequestHandler, max_body: int) -> None:
        self._cache = {}
        self._target = head.target
        self._protocol = protocol
        self._client_max_size = max_body
        self._writer = None
        self._sent = 0
        self.takes_comments = False
        self._payload = self.content = ReceivedBody(body)  # type: ignore[assignment]  # it has the methods that are used
        self._headers = self.headers = head.headers
        self.method = head.method
        self.version = HttpVersion11
        self.content_length = head.length
        self.keep_alive = head.keep_alive
        self.found = head.found
        address = protocol.peername
        self.remote = str(address[0]) if isinstance(address, tuple) else address

    @property
    def _payload_writer(self) -> StreamWriter:  # type: ignore[override]  # an attribute of the parent's
        writer = self._writer
        if writer is None:
            writer = self._writer = StreamWriter(self._protocol, self._protocol._loop)
            writer.output_size = self._sent
        return writer

    def count_sent(self, size: int) -> None:
        if self._writer is None:
            self._sent += size
        else:
            self._writer.output_size += size

    def __repr__(self) -> str:
        return f"<PlainRequest {self.method} {self.path}>"

    @property
    def safe_path(self) -> str:
        target = self._target
        return super().safe_path if "%" in target else target.partition("?")[0]

    @cached_property
    def _rel_url(self) -> URL:  # type: ignore[override]  # an attribute of the parent's
        path, _, query = self._target.partition("?")
        return URL.build(path=path, query_string=query, encoded=True)

    def let_head_and_body_go(self) -> None:
        self._headers = self.headers = _NO_HEADERS
        self._payload = self.content = EMPTY_PAYLOAD
        self._cache.clear()

    def _cancel(self, exc: BaseException) -> None:
        """Do nothing. aiohttp calls this if the rest of a body will not arrive, but this body is complete."""
