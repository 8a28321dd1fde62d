"""Pumping a committed stream to the client: upstream pieces in, surface frames out, in one write per piece.

Never chooses a target, and never makes a broken stream look whole.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from providers.completion import Chunk, StreamEvent
from providers.failure import FailureKind, UpstreamError
from proxy.deadlines import Deadlines, Phase
from proxy.dispatch import OpenStream
from proxy.record import RequestRecord
from proxy.surfaces.surface import Renderer
from proxy.upstream import UpstreamResponse, fail

TAIL_WAIT = 2.0
"""Seconds a finished answer's terminator is waited for; some servers keep the connection open instead of sending it."""

DRAIN_WAIT = 0.25
"""Seconds that are spent on reaching the body's end, so that the connection can serve another request."""

MAX_DRAIN = 64 * 1024
"""Bytes read for the same purpose."""

Write = Callable[[bytes], Awaitable[None]]


class Relay:
    """One stream on its way. `expected` is how many choices must finish before the answer is whole."""

    __slots__ = ("_clock", "_expected", "_finished", "_now", "_record", "_renderer", "_stream", "_write")

    def __init__(
        self,
        stream: OpenStream,
        renderer: Renderer,
        write: Write,
        clock: Deadlines,
        record: RequestRecord,
        expected: int,
    ) -> None:
        self._clock = clock
        self._stream = stream
        self._renderer = renderer
        self._write = write
        self._record = record
        self._expected = expected
        self._finished = 0
        self._now = asyncio.get_running_loop().time

    async def run(self, idle: float) -> None:
        """Write every frame up to the renderer's end, which is the caller's to write.

        Returns when the stream proved that it ended well. Raises UpstreamError when it broke; everything decoded before
        that has been written. Raises ConnectionError when the client is gone.
        """
        self._clock.enter(Phase.IDLE, idle)
        self._clock.pause()
        await self._emit(self._stream.events)
        self._clock.touch()
        while not self._over and self._finished < self._expected:
            await self._step()
        if not self._over:
            await self._tail()
        if self._finished < self._expected:
            message = f"The upstream finished {self._finished} of {self._expected} choices."
            raise fail(FailureKind.TRUNCATED, message)

    @property
    def _over(self) -> bool:
        return self._stream.ended or self._stream.decoder.complete

    async def _tail(self) -> None:
        """Every choice has finished; what may follow is usage and the terminator, and neither is worth a failure."""
        self._clock.pause()
        with suppress(TimeoutError):
            async with asyncio.timeout(TAIL_WAIT):
                while not self._over and (piece := await self._rest()):
                    await self._decode(piece)
        if not self._over:
            await self._last()

    async def _last(self) -> None:
        """What the decoder holds back. Its doubts whether the stream ended well are settled."""
        try:
            await self._decode(b"")
        except UpstreamError as error:
            if error.failure.kind is not FailureKind.TRUNCATED:
                raise

    async def _rest(self) -> bytes:
        """The next piece of a finished answer; that its connection broke is no more than its end."""
        try:
            return await self._read()
        except UpstreamError:
            return b""

    async def _step(self) -> None:
        piece = await self._read()
        self._stream.ended = not piece
        self._clock.pause()
        await self._decode(piece)
        self._clock.touch()

    async def _read(self) -> bytes:
        before = self._now()
        try:
            return await self._stream.response.read()
        finally:
            self._record.waited += self._now() - before

    async def _decode(self, piece: bytes) -> None:
        events: list[StreamEvent] = []
        broken: UpstreamError | None = None
        try:
            # Not list(): events before the point where the stream breaks must reach the client.
            for event in self._stream.decoder.feed(piece) if piece else self._stream.decoder.finish():
                events.append(event)
        except UpstreamError as error:
            broken = error
        await self._emit(events)
        if broken is not None:
            raise broken

    async def _emit(self, events: list[StreamEvent]) -> None:
        frames: list[bytes] = []
        for event in events:
            if isinstance(event, Chunk):
                frames.append(self._renderer.chunk(event))
                self._finished += event.finish_reason is not None
            else:
                self._record.usage = event
                frames.append(self._renderer.usage(event))
        self._record.chunks += len(frames)
        if data := b"".join(frames):
            await self._write(data)


async def drain(response: UpstreamResponse) -> None:
    """Read what is left after a good end, so that the connection is kept; a server that has more to say loses it."""
    size = 0
    try:
        async with asyncio.timeout(DRAIN_WAIT):
            while size < MAX_DRAIN and (piece := await response.read()):
                size += len(piece)
    except (TimeoutError, UpstreamError):
        response.close()
    response.release()
