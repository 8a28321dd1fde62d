"""Connections that answer requests within the callback that brought their last byte, without a task of asyncio's.

Two readers take turns on a connection. A plain request (`plain_head`) is read here, and nothing of aiohttp's is needed
for it. All other bytes go to aiohttp's parser (3.14), which is made when the first of them come, with aiohttp's task of
the connection: 3 KB that most connections never need. Between them stands one rule: bytes are looked at here only where
the parser is known to hold nothing of another request, see `at_boundary`.

aiohttp's task starts another for the handler: three turns of the event loop before a vendor is called, and two after
its answer. Here the handler's coroutine runs as an `EagerTask`, for each plain request and for those that aiohttp's
parser found whole. What is left to aiohttp's tasks: a body that is still coming, several requests at once, an offer to
upgrade, an expectation, malformed bytes.
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
"""Bytes of following requests that are kept while one is answered; then nothing more is read from the client."""

MAX_COLLECTED: Final = 512 * 1024
"""Bytes of a plain request that is waited for here."""

COLLECT_WAIT: Final = 0.05
"""Seconds for which the rest of a plain request is waited for here: many clients send head and body apart. After that
aiohttp gets what has come, and with it all rules for bodies that come slowly."""


_NO_MESSAGES: Final[deque[Any]] = deque(maxlen=0)
"""What aiohttp's parser has found where there is none: 0.7 KB less for each connection."""


class BodyLimit(Protocol):
    """A server whose requests have at most so many bytes in their bodies."""

    max_body: int


class InlineRequests(HalfClosable):
    """See the module.

    Where aiohttp's task of the connection exists, it waits during an eager answer as if no request had come, so
    everything that asks that task whether one is under way has to ask `answering` too.

    `_owed` are the bytes that aiohttp's parser lacks of a request whose end is known. Below zero, it may hold a part of
    another request, and goes on with the connection to its end.
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
        # As aiohttp's own, which comes later if at all, but without its task.
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
        """See HalfClosable."""
        return self._eager is not None or super().answering

    @property
    def at_boundary(self) -> bool:
        """Whether the next byte is the first of a request, which nothing has to wait for."""
        if self._owed or self._collected or self._close or self._force_close:
            return False
        if self._parser is None:  # nothing has been read but here
            return self._eager is None
        return not (self._messages or self.answering)

    def data_received(self, data: bytes) -> None:
        if self._eager is not None and data:
            self._keep(data)
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
        # aiohttp's task needs a few turns for an answer that does without the body: a refusal for what the head says.
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
        # aiohttp calls this for every body that has been read to its end, and parses nothing in it; of a request that
        # came whole there is nothing to resume.
        if self._reading_paused or (resume_parser and self._eager is None):
            super().resume_reading(resume_parser)

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - aiohttp's own
        await super().shutdown(timeout)
        if self._eager is not None:
            self._eager.cancel()

    def _receive_part(self, head: PlainHead, data: bytes) -> None:
        """Take in the first bytes of a request that has not come whole, or of several. They begin with this head."""
        size = head.size + head.length
        if len(data) < size <= MAX_COLLECTED:
            self._collected = (head, bytearray(data))
            self._collecting = self._loop.call_later(COLLECT_WAIT, self._leave_to_parser)
        else:
            self._owed = size
            self._parse(data)

    def _collect(self, head: PlainHead, collected: bytearray, data: bytes) -> None:
        """Take in more of the request that begins with this head."""
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
        """Give aiohttp's parser what has come of a request whose rest is missing."""
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
        """Give bytes to aiohttp's parser, and answer at once what they complete, where that is one whole request."""
        if self._parser is None and self.transport is not None:
            self._begin_parsing(self.transport)
        self._owed -= len(data)
        waiter = self._waiter
        if not data or waiter is None or waiter.done() or self._messages:
            super().data_received(data)
            return
        self._waiter = None  # which aiohttp would set for any request
        try:
            super().data_received(data)
        finally:
            self._waiter = waiter
        if self._messages and not self._begin_alone() and not waiter.done():
            waiter.set_result(None)

    def _begin_parsing(self, transport: asyncio.Transport) -> None:
        """Make what aiohttp needs for the connection, its task above all."""
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
        """Begin to answer the only request that the parser has found; returns False where it is left to aiohttp."""
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
        """Call the handler and send its answer, as aiohttp's `_handle_request` and `finish_response` do."""
        manager, handler = self._manager, self._request_handler
        if manager is None or handler is None:
            raise RuntimeError("a request on a connection that is not open")
        manager.requests_count += 1
        self._keepalive = False  # or aiohttp's timer would take the connection for an idle one
        self._current_request = http
        self._request_in_progress = True
        try:
            try:
                response = await handler(http)
            except web.HTTPException as answer:
                response = answer
            except Exception as error:  # a client must get an answer
                response = self.handle_error(http, 500, error)
            finally:
                self._current_request = None
            if isinstance(response, BufferedResponse):
                # The same as below, without two coroutines that wait for nothing.
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
            self._go_on()

    def _expect_next(self) -> None:
        """Count the time in which the next request has to come."""
        self._next_keepalive_close_time = close_at = self._now() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(close_at, self._process_keepalive)

    def _process_keepalive(self) -> None:
        super()._process_keepalive()
        # aiohttp closes what its task waits on, and there may be no task.
        if self._keepalive_handle is None and self._keepalive and self.at_boundary:
            self.force_close()

    def _keep(self, data: bytes) -> None:
        """Keep bytes of the requests that follow: read now, they would be answered too early."""
        self._ahead += data
        if len(self._ahead) > MAX_AHEAD and not self._buffer_paused:
            self._pause_reading_for_buffer()

    def _go_on(self) -> None:
        """Read the kept bytes, in a turn of the loop of their own: each request of a long row would begin within the
        answer of the one before, and see its context variables."""
        self._eager = following = self._context.run(EagerTask, _turn(), self._loop, self._read_kept)
        following.begin()

    def _read_kept(self, error: BaseException | None) -> None:
        self._eager = None
        kept, self._ahead = bytes(self._ahead), bytearray()
        if self._buffer_paused:
            self._resume_reading_for_buffer()
        if error is None:
            self.data_received(kept)


async def _turn() -> None:
    await asyncio.sleep(0)
