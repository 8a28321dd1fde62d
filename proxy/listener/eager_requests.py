"""Requests that came whole: answered within the callback that brought their last byte, without a task of asyncio's.

aiohttp (3.14) has one task for each connection, which its protocol wakes for a request, and which starts another for
the handler: three turns of the event loop before a vendor is called, and two after its answer. Here the handler's
coroutine, the same one, runs as an `EagerTask`. Whatever is not plain is left to aiohttp's tasks: a body that is still
coming, several requests at once, an offer to upgrade, an expectation, malformed bytes.
"""

import asyncio
from contextvars import Context, copy_context
from typing import Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import _ErrInfo

from proxy.eager_task import EagerTask
from proxy.listener.half_closed_clients import HalfClosable

MAX_AHEAD: Final = 64 * 1024
"""Bytes of following requests that are kept while one is answered; then nothing more is read from the client."""


class EagerRequests(HalfClosable):
    """aiohttp's protocol, which answers requests that came whole at once.

    aiohttp's own task of the connection waits meanwhile as if no request had come, so everything that asks that task
    whether one is under way has to ask `answering` too.
    """

    __slots__ = ("_ahead", "_context", "_eager")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._eager: EagerTask | None = None
        self._context: Context = copy_context()
        self._ahead = bytearray()
        super().connection_made(transport)

    @property
    def answering(self) -> bool:
        """See HalfClosable."""
        return self._eager is not None or super().answering

    def data_received(self, data: bytes) -> None:
        waiter = self._waiter
        if self._eager is not None and data:
            self._keep(data)
        elif not data or waiter is None or waiter.done() or self._messages:
            super().data_received(data)
        else:
            self._waiter = None  # which aiohttp would set for any request
            try:
                super().data_received(data)
            finally:
                self._waiter = waiter
            if self._messages and not self._begin_alone(data) and not waiter.done():
                waiter.set_result(None)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self._eager is not None:
            self._eager.cancel()

    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp calls this for every body that has been read to its end, and parses nothing in it; of a request that
        # came whole there is nothing to resume.
        if self._reading_paused or (resume_parser and self._eager is None):
            super().resume_reading(resume_parser)

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - aiohttp's own
        await super().shutdown(timeout)
        if self._eager is not None:
            self._eager.cancel()

    def _begin_alone(self, data: bytes) -> bool:
        """Begin to answer the only request there is, which `data` completed; returns False where it is left to
        aiohttp."""
        message, payload = self._messages[0]
        if (
            len(self._messages) > 1
            or isinstance(message, _ErrInfo)
            or not payload.is_eof()
            or message.upgrade
            or "Expect" in message.headers
            or self._close
            or self._force_close
        ):
            return False
        self._messages.popleft()
        if self._parser is not None:
            self._parser.message_consumed()
        answer = self._answer(message, payload, StreamWriter(self, self._loop))
        self._eager = EagerTask(answer, self._loop, self._answered)
        self._eager.begin()
        return True

    async def _answer(self, message: RawRequestMessage, payload: StreamReader, writer: AbstractStreamWriter) -> None:
        manager, factory, handler = self._manager, self._request_factory, self._request_handler
        if manager is None or factory is None or handler is None or self._task_handler is None:
            raise RuntimeError("a request on a connection that is not open")
        manager.requests_count += 1
        http = factory(message, payload, self, writer, self._task_handler)
        del message, payload  # which the request may let go
        self._keepalive = False  # or aiohttp's timer would take the connection for an idle one
        response, lost = await self._handle_request(http, None, handler)
        self._keepalive = bool(response.keep_alive) and not lost

    def _answered(self, error: BaseException | None) -> None:
        self._eager = None
        if error is not None and not isinstance(error, asyncio.CancelledError | ConnectionError):
            self.log_exception("a request failed outside its handler", exc_info=error)
        if error is not None or not self._keepalive or self._close or self._force_close:
            self.close()
            if self.transport is not None:
                self.transport.close()
            return
        self._next_keepalive_close_time = close_at = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(close_at, self._process_keepalive)
        if self._ahead:
            self._go_on()

    def _keep(self, data: bytes) -> None:
        """Keep bytes of the requests that follow: parsed now, they would be answered too early."""
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
