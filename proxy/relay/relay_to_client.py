"""Relays a committed stream to the client: upstream events in, the surface's frames out, one write for each piece.

A piece is relayed within the callback that brought it, while the client reads: `wait` is where the coroutine stands
between two pieces, and nothing else is awaited. The clock is read twice for a piece, when it has come and when it has
been written.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from providers.completion import Chunk, StreamPart, TextRun
from providers.emulation.estimate_missing_usage import estimate_usage, size_of
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.loop_clock import loop_clock
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import Renderer
from proxy.upstream.transport import fail
from proxy.upstream.vendor_stream import OpenStream, Stream, read_tail

OWN_WORK = 0.005
"""Seconds up to which a write is the gateway's own work; a longer one waits for the client to read."""

Write = Callable[[bytes], bool | Awaitable[object]]
"""Sends bytes to the client. Returns whether it did, or what to wait for while the client does not read. Either raises
ConnectionError when the client is gone."""


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
    _now: Callable[[], float] = field(default_factory=loop_clock)

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
        stream, record, deadlines = self.stream, self.record, self.deadlines
        # Others see events one by one: what wraps a stream or changes its choices knows nothing of runs.
        in_runs = stream if isinstance(stream, OpenStream) and stream.finisher is None else None
        take = stream.take if in_runs is None else in_runs.take_parts
        await self._emit(stream.first() if in_runs is None else in_runs.first_parts())
        idle_since = deadlines.touch()
        while not stream.over and self._finished < self._expected:
            try:
                await stream.wait()
            finally:
                record.waited += self._now() - idle_since
            frames = record.chunks
            await self._emit(take())
            idle_since = deadlines.advance() if record.chunks > frames else deadlines.touch()
        if not stream.over:
            deadlines.pause()
            await read_tail(stream, self._wait, self._emit)
        if self._finished < self._expected:
            message = f"The upstream finished {self._finished} of {self._expected} choices."
            raise fail(FailureKind.TRUNCATED, message)
        if record.usage is None:
            await self._emit(iter((estimate_usage(self.request, self._size),)))

    async def _wait(self) -> None:
        before = self._now()
        try:
            await self.stream.wait()
        finally:
            self.record.waited += self._now() - before

    async def _emit(self, parts: Iterable[StreamPart]) -> None:
        """Write the frames of parts of the stream at once, those before the point where it breaks included."""
        frames: list[bytes] = []
        broken: UpstreamError | None = None
        try:
            for part in parts:
                frames.append(self._frames(part))
        except UpstreamError as error:
            broken = error
        data = b"".join(frames)
        # Held once only, while the client does not read.
        frames.clear()
        if data:
            sent = self.write(data)
            if not isinstance(sent, bool):
                await self._until_read(sent)
        if broken is not None:
            try:
                raise broken
            finally:
                del broken  # its traceback holds this frame, and frames that hold what the upstream sent

    async def _until_read(self, sent: Awaitable[object]) -> None:
        """Wait for the client, while the upstream's silence does not count."""
        self.deadlines.pause()
        before = self._now()
        await sent
        took = self._now() - before
        if took > OWN_WORK:
            self.record.client_waited += took

    def _frames(self, part: StreamPart) -> bytes:
        record = self.record
        if isinstance(part, TextRun):
            record.chunks += len(part.literals)
            self._size += part.size
            return self.renderer.run(part)
        record.chunks += 1
        if isinstance(part, Chunk):
            self._finished += part.finish_reason is not None
            self._size += size_of(part.text)
            return self.renderer.chunk(part)
        record.usage = part
        return self.renderer.usage(part)
