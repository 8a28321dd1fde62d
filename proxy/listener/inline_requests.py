"""Connections that handle a request within the callback that received its last byte, without an asyncio task.

Two parsers share a connection. A plain request (`fast_head_parser`) is parsed here, without any of aiohttp's objects.
All other bytes go to aiohttp's parser (3.14). The parser is created with aiohttp's task of the connection when the
first such bytes arrive. Both take 3 KB, which most connections never need. Bytes are parsed here only if aiohttp's
parser is known to hold nothing of another request, see `at_boundary`.

aiohttp's task starts another task for the handler, which takes three event loop iterations before a vendor is called,
and two after its response. Here the handler's coroutine runs as an `EagerTask`, for each plain request and for each
complete request from aiohttp's parser. aiohttp's tasks handle bodies that are still arriving, several requests at once,
offers to upgrade, expectations and malformed bytes.
"""

import asyncio
from collections import deque
from contextvars import Context, copy_context
from typing import Any, Final, Protocol, cast

from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import HttpRequestParser
from aiohttp.http_writer import StreamWriter
from aiohttp.tcp_helpers import tcp_keepalive
from aiohttp.web_protocol import MAX_MSG_QUEUE_SIZE, _ErrInfo

from proxy.eager_task import EagerTask
from proxy.listener.buffered_response import BufferedResponse
from proxy.listener.client_request import PlainRequest
from proxy.listener.fast_head_parser import PlainHead, read_plain_head
from proxy.listener.half_closed_clients import HalfClosable
from proxy.loop_clock import loop_clock

MAX_AHEAD: Final = 64 * 1024
"""The most bytes of following requests that are stored while one is handled. Beyond that, reading from the client
pauses."""

MAX_COLLECTED: Final = 512 * 1024
"""The most bytes of a plain request that are collected here until its rest arrives."""

COLLECT_WAIT: Final = 0.05
"""The most seconds for which the rest of a plain request is awaited here. Many clients send head and body separately.
After that aiohttp gets the received bytes, and its rules for slow bodies apply."""


_NO_MESSAGES: Final[deque[Any]] = deque(maxlen=0)
"""The queue of parsed messages while there is no parser. Sharing it saves 0.7 KB for each connection."""


class BodyLimit(Protocol):
    """A server that limits the bodies of requests to `max_body` bytes."""

    max_body: int


class InlineRequests(HalfClosable):
    """A connection of a client that handles plain requests inline.

    If aiohttp's task of the connection exists, it waits during an eager request as if no request had arrived. So code
    that checks that task for a request in flight must check `answering` too.

    `_owed` is the number of bytes that aiohttp's parser still needs for a request whose end is known. Below zero, the
    parser may hold a part of another request, and handles the connection to its end.
    """

    __slots__ = ("_ahead", "_collected", "_collecting", "_context", "_eager", "_now", "_owed")

    def __init__(self, manager: web.Server, **settings: object) -> None:
        super().__init__(manager, **settings)
        self._parser = None
        self._messages = _NO_MESSAGES
        self._now = loop_clock()
        self._eager: EagerTask | None = None
        self._ahead = bytearray()
        self._collected: tuple[PlainHead, bytearray] | None = None
        self._collecting: asyncio.TimerHandle | None = None
        self._owed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # This does the same as aiohttp's own method, but starts no task. Aiohttp's method is called later, if at all.
        BaseProtocol.connection_made(self, transport)
        manager, self.transport = self._manager, cast(asyncio.Transport, transport)
        if manager is None:
            raise RuntimeError("a connection without a server")
        tcp_keepalive(self.transport)
        self._expect_next()
        manager.connection_made(self, self.transport)
        self._context: Context = copy_context()

    @property
    def answering(self) -> bool:
        return self._eager is not None or super().answering

    @property
    def at_boundary(self) -> bool:
        """Whether the next byte is the first of a request that can be handled at once."""
        if self._owed or self._collected or self._close or self._force_close:
            return False
        if self._parser is None:  # aiohttp's parser has read nothing
            return self._eager is None
        return not (self._messages or self.answering)

    def data_received(self, data: bytes) -> None:
        if self._eager is not None and data:
            self._store_ahead(data)
        elif self._collected is not None:
            self._collect(*self._collected, data)
        elif data and self.at_boundary:
            head = read_plain_head(data)
            if head is None:
                self._owed = -1
                self._parse(data)
            elif len(data) == head.size + head.length:
                self._begin_plain(head, data)
            else:
                self._receive_part(head, data)
        else:
            self._parse(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._stop_collecting()
        if self._eager is not None:
            self._eager.cancel()

    def eof_received(self) -> bool:  # type: ignore[override]  # see HalfClosable
        if self._collected is None:
            return super().eof_received()
        # aiohttp's task needs a few event loop iterations for a response that does not need the body, such as a refusal
        # of the head.
        self._leave_to_parser()
        self._loop.call_later(COLLECT_WAIT, self._eof_received_late)
        return True

    def _eof_received_late(self) -> None:
        if self.transport is not None and not super().eof_received():
            self.transport.close()

    def close(self) -> None:
        self._leave_to_parser()
        super().close()

    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp calls this for every body that has been read to its end, and parses nothing in it. A request that was
        # received completely has nothing to resume.
        if self._reading_paused or (resume_parser and self._eager is None):
            super().resume_reading(resume_parser)

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - aiohttp's own
        await super().shutdown(timeout)
        if self._eager is not None:
            self._eager.cancel()

    def _receive_part(self, head: PlainHead, data: bytes) -> None:
        """Receive the first bytes of an incomplete request, or of several requests. They begin with this head."""
        size = head.size + head.length
        if len(data) < size <= MAX_COLLECTED:
            self._collected = (head, bytearray(data))
            self._collecting = self._loop.call_later(COLLECT_WAIT, self._leave_to_parser)
        else:
            self._owed = size
            self._parse(data)

    def _collect(self, head: PlainHead, collected: bytearray, data: bytes) -> None:
        """Receive more bytes of the request that begins with this head."""
        missing = head.size + head.length - len(collected) - len(data)
        if missing < 0:
            self._leave_to_parser()
            self._parse(data)
            return
        collected += data
        if not missing:
            self._stop_collecting()
            self._begin_plain(head, collected)

    def _leave_to_parser(self) -> None:
        """Give aiohttp's parser the received bytes of an incomplete request."""
        if self._collected is not None:
            head, collected = self._collected
            self._stop_collecting()
            self._owed = head.size + head.length
            self._parse(bytes(collected))

    def _stop_collecting(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()
        self._collected = self._collecting = None

    def _parse(self, data: bytes) -> None:
        """Give bytes to aiohttp's parser, and handle at once the request that they complete, if it is a single one."""
        if self._parser is None and self.transport is not None:
            self._begin_parsing(self.transport)
        self._owed -= len(data)
        waiter = self._waiter
        if not data or waiter is None or waiter.done() or self._messages:
            super().data_received(data)
            return
        self._waiter = None  # aiohttp would set this for any request
        try:
            super().data_received(data)
        finally:
            self._waiter = waiter
        if self._messages and not self._begin_alone() and not waiter.done():
            waiter.set_result(None)

    def _begin_parsing(self, transport: asyncio.Transport) -> None:
        """Create the objects that aiohttp needs for the connection: its task and its parser."""
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
        super().connection_made(transport)
        self._messages = deque()
        self._parser = HttpRequestParser(
            self,
            self._loop,
            self._read_bufsize,
            max_line_size=self.max_line_size,
            max_field_size=self.max_field_size,
            max_headers=self.max_headers,
            payload_exception=web.RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=MAX_MSG_QUEUE_SIZE,
        )

    def _begin_alone(self) -> bool:
        """Begin to handle the only request that the parser has found. Return whether it is handled here, and not by
        aiohttp."""
        message, payload = self._messages[0]
        factory, task = self._request_factory, self._task_handler
        if (
            len(self._messages) > 1
            or isinstance(message, _ErrInfo)
            or not payload.is_eof()
            or message.upgrade
            or "Expect" in message.headers
            or self._close
            or self._force_close
            or factory is None
            or task is None
        ):
            return False
        self._messages.popleft()
        if self._parser is not None:
            self._parser.message_consumed()
        http = factory(message, payload, self, StreamWriter(self, self._loop), task)
        self._eager = EagerTask(self._answer(http), self._loop, self._answered)
        self._eager.begin()
        return True

    def _begin_plain(self, head: PlainHead, data: bytes | bytearray) -> None:
        server: BodyLimit = self._manager  # type: ignore[assignment]  # no other makes these connections
        http = PlainRequest(head, bytes(memoryview(data)[head.size :]), self, server.max_body)
        self._eager = EagerTask(self._answer(http), self._loop, self._answered)
        self._eager.begin()

    async def _answer(self, http: web.BaseRequest) -> None:
        """Call the handler and send its response, as aiohttp's `_handle_request` and `finish_response` do."""
        manager, handler = self._manager, self._request_handler
        if manager is None or handler is None:
            raise RuntimeError("a request on a connection that is not open")
        manager.requests_count += 1
        self._keepalive = False  # otherwise aiohttp's timer would take the connection for an idle one
        self._current_request = http
        self._request_in_progress = True
        try:
            try:
                response = await handler(http)
            except web.HTTPException as answer:
                response = answer
            except Exception as error:  # a client must get a response
                response = self.handle_error(http, 500, error)
            finally:
                self._current_request = None
            if isinstance(response, BufferedResponse):
                # This is the same as below, without two coroutines that wait for nothing.
                if (unread := response.send(http)) is not None:
                    await unread
                self._keepalive = bool(response._keep_alive)
            else:
                await response.prepare(http)
                await response.write_eof()
                self._keepalive = bool(response.keep_alive)
        finally:
            self._request_in_progress = False
            if self._handler_waiter is not None:
                self._handler_waiter.set_result(None)

    def _answered(self, error: BaseException | None) -> None:
        self._eager = None
        if error is not None and not isinstance(error, asyncio.CancelledError | ConnectionError):
            self.log_exception("a request failed outside its handler", exc_info=error)
        if error is not None or not self._keepalive or self._close or self._force_close:
            self.close()
            if self.transport is not None:
                self.transport.close()
            return
        self._expect_next()
        if self._ahead:
            self._handle_ahead()

    def _expect_next(self) -> None:
        """Start the time within which the next request must arrive."""
        self._next_keepalive_close_time = close_at = self._now() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(close_at, self._process_keepalive)

    def _process_keepalive(self) -> None:
        super()._process_keepalive()
        # aiohttp closes the connection through its task, but there may be no task.
        if self._keepalive_handle is None and self._keepalive and self.at_boundary:
            self.force_close()

    def _store_ahead(self, data: bytes) -> None:
        """Store bytes of following requests, which must not be handled before the current response is complete."""
        self._ahead += data
        if len(self._ahead) > MAX_AHEAD and not self._buffer_paused:
            self._pause_reading_for_buffer()

    def _handle_ahead(self) -> None:
        """Parse the stored bytes in another event loop iteration. Otherwise each request would begin within the handler
        of the previous one and see its context variables."""
        self._eager = following = self._context.run(EagerTask, _next_iteration(), self._loop, self._parse_ahead)
        following.begin()

    def _parse_ahead(self, error: BaseException | None) -> None:
        self._eager = None
        ahead, self._ahead = bytes(self._ahead), bytearray()
        if self._buffer_paused:
            self._resume_reading_for_buffer()
        if error is None:
            self.data_received(ahead)


async def _next_iteration() -> None:
    await asyncio.sleep(0)
