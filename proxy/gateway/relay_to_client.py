"""Relays a committed stream to the client: upstream events in, the surface's frames out, one write for each piece."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from providers.completion import Chunk, StreamEvent
from providers.emulation.estimate_missing_usage import estimate_usage, size_of
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import Renderer
from proxy.upstream.transport import fail
from proxy.upstream.vendor_stream import Stream, read_tail

OWN_WORK = 0.005
"""Seconds up to which a write is the gateway's own work; a longer one waits for the client to read."""

Write = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Relay:
    """Relays one stream to the client that sent `request`."""

    stream: Stream
    renderer: Renderer
    write: Write
    deadlines: Deadlines
    record: RequestRecord
    request: UnifiedRequest
    _expected: int = field(init=False)
    _finished: int = 0
    _size: int = 0
    _now: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)

    def __post_init__(self) -> None:
        self._expected = self.request.choices

    async def run(self) -> None:
        """Write every frame but the renderer's end, which is the caller's to write.

        Returns when the stream ended well. Raises UpstreamError when it broke, after everything before that has been
        written. Raises ConnectionError when the client is gone. However it ends, the record has a usage, estimated from
        what was generated if need be.
        """
        try:
            await self._run()
        finally:
            if self.record.usage is None:
                self.record.usage = estimate_usage(self.request, self._size)

    async def _run(self) -> None:
        self.deadlines.pause()
        await self._emit(self.stream.first())
        self.deadlines.touch()
        while not self.stream.over and self._finished < self._expected:
            await self._read()
            self.deadlines.pause()
            frames = self.record.chunks
            await self._emit(self.stream.take())
            if self.record.chunks > frames:
                self.deadlines.advance()
            else:
                self.deadlines.touch()
        if not self.stream.over:
            self.deadlines.pause()
            await read_tail(self.stream, self._read, self._emit)
        if self._finished < self._expected:
            message = f"The upstream finished {self._finished} of {self._expected} choices."
            raise fail(FailureKind.TRUNCATED, message)
        if self.record.usage is None:
            await self._emit(iter((estimate_usage(self.request, self._size),)))

    async def _read(self) -> None:
        before = self._now()
        try:
            await self.stream.wait()
        finally:
            self.record.waited += self._now() - before

    async def _emit(self, events: Iterator[StreamEvent]) -> None:
        """Write the frames of events at once, those before the point where the stream breaks included."""
        frames: list[bytes] = []
        broken: UpstreamError | None = None
        try:
            for event in events:
                frames.append(self._frame(event))
        except UpstreamError as error:
            broken = error
        self.record.chunks += len(frames)
        data = b"".join(frames)
        # Held once only, while the client does not read.
        frames.clear()
        if data:
            before = self._now()
            await self.write(data)
            took = self._now() - before
            if took > OWN_WORK:
                self.record.client_waited += took
        if broken is not None:
            try:
                raise broken
            finally:
                del broken  # its traceback holds this frame, and frames that hold what the upstream sent

    def _frame(self, event: StreamEvent) -> bytes:
        if isinstance(event, Chunk):
            self._finished += event.finish_reason is not None
            self._size += size_of(event.text)
            return self.renderer.chunk(event)
        self.record.usage = event
        return self.renderer.usage(event)
