"""Pumping a committed stream to the client: upstream pieces in, surface frames out, in one write per piece.

Never chooses a target, and never makes a broken stream look whole.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from providers.completion import Chunk, StreamEvent
from providers.emulate import estimate, size_of
from providers.failure import FailureKind, UpstreamError
from providers.unified import UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.record import RequestRecord
from proxy.streams import TAIL_WAIT, Stream
from proxy.surfaces.surface import Renderer
from proxy.upstream import fail

OWN_WORK = 0.005
"""Seconds up to which a write is the gateway's own work; one that takes longer waits for its client to read."""

Write = Callable[[bytes], Awaitable[None]]


class Relay:
    """One stream on its way to whoever asked `request`."""

    __slots__ = (
        "_clock",
        "_expected",
        "_finished",
        "_now",
        "_record",
        "_renderer",
        "_request",
        "_size",
        "_stream",
        "_write",
    )

    def __init__(
        self,
        stream: Stream,
        renderer: Renderer,
        write: Write,
        clock: Deadlines,
        record: RequestRecord,
        request: UnifiedRequest,
    ) -> None:
        self._clock = clock
        self._stream = stream
        self._renderer = renderer
        self._write = write
        self._record = record
        self._request = request
        self._expected = request.choices
        self._finished = 0
        self._size = 0
        self._now = asyncio.get_running_loop().time

    async def run(self) -> None:
        """Write every frame up to the renderer's end, which is the caller's to write.

        Returns when the stream proved that it ended well. Raises UpstreamError when it broke; everything decoded before
        that has been written. Raises ConnectionError when the client is gone. However it ends, the record has a usage:
        what was generated until then counts, too.
        """
        try:
            await self._run()
        finally:
            if self._record.usage is None:
                self._record.usage = estimate(self._request, self._size)

    async def _run(self) -> None:
        self._clock.pause()
        await self._emit(self._stream.first())
        self._clock.touch()
        while not self._stream.over and self._finished < self._expected:
            await self._read()
            self._clock.pause()
            frames = self._record.chunks
            await self._emit(self._stream.take())
            if self._record.chunks > frames:
                self._clock.advance()
            else:
                self._clock.touch()
        if not self._stream.over:
            await self._tail()
        if self._finished < self._expected:
            message = f"The upstream finished {self._finished} of {self._expected} choices."
            raise fail(FailureKind.TRUNCATED, message)
        if self._record.usage is None:
            await self._emit(iter((estimate(self._request, self._size),)))

    async def _tail(self) -> None:
        """Every choice has finished; what may follow is usage and the terminator, and neither is worth a failure."""
        self._clock.pause()
        with suppress(TimeoutError):
            async with asyncio.timeout(TAIL_WAIT):
                while not self._stream.over and await self._reached():
                    await self._last(self._stream.take())
        if not self._stream.over:
            await self._last(self._stream.conclude())

    async def _reached(self) -> bool:
        """Whether there is another piece of a finished answer; that its connection broke is no more than its end."""
        try:
            await self._read()
        except UpstreamError:
            return False
        return True

    async def _last(self, events: Iterator[StreamEvent]) -> None:
        """What came after the last choice's end. The decoder's doubts whether the stream ended well are settled."""
        try:
            await self._emit(events)
        except UpstreamError as error:
            if error.failure.kind is not FailureKind.TRUNCATED:
                raise

    async def _read(self) -> None:
        before = self._now()
        try:
            await self._stream.wait()
        finally:
            self._record.waited += self._now() - before

    async def _emit(self, events: Iterator[StreamEvent]) -> None:
        """Write what the events say, in one piece; what comes before the point where the stream breaks too."""
        frames: list[bytes] = []
        broken: UpstreamError | None = None
        try:
            for event in events:
                frames.append(self._frame(event))
        except UpstreamError as error:
            broken = error
        self._record.chunks += len(frames)
        data = b"".join(frames)
        # What waits for a client that does not read is held once.
        frames.clear()
        if data:
            before = self._now()
            await self._write(data)
            took = self._now() - before
            if took > OWN_WORK:
                self._record.client_waited += took
        if broken is not None:
            try:
                raise broken
            finally:
                del broken  # its traceback holds this frame, and frames that hold what the upstream sent

    def _frame(self, event: StreamEvent) -> bytes:
        if isinstance(event, Chunk):
            self._finished += event.finish_reason is not None
            self._size += size_of(event.text)
            return self._renderer.chunk(event)
        self._record.usage = event
        return self._renderer.usage(event)
