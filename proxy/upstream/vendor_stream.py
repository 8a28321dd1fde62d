"""The streamed response of one vendor, as the relay reads it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from providers.completion import Chunk, StreamEvent, StreamPart, TextRun
from providers.dialect import RunDecoder, StreamDecoder
from providers.emulation.post_processing import PostProcessor, StopScanningDecoder
from providers.failure import FailureKind, UpstreamError
from proxy.upstream.transport import Take, UpstreamResponse, fail

T = TypeVar("T")
P = TypeVar("P", bound=StreamPart)

TAIL_WAIT = 2.0
"""The most seconds for which the terminator of a finished response is awaited. Some servers keep the connection open
instead of sending it."""

DRAIN_WAIT = 0.25
"""The most seconds for reading to the body's end, so that the connection can serve another request."""

MAX_DRAIN = 64 * 1024
"""The most bytes that are read to reach the body's end."""

LONG_EVENT = 64 * 1024
"""An event of at least this many received bytes is decoded in a thread. An event of 14 MB may hold 200,000 log
probabilities, which take 1.8 s to read and to write."""

MOST_AT_ONCE = 500
"""The most parts of a chunk that are processed on the event loop. The following parts are decoded in a thread. Nearly
every chunk is one part, however large. A chunk of 256 KiB may hold 4,000 parts of 30 us each, if each event has a
different unknown field."""

_UNTRACKED_BYTES = 4096
"""The most bytes since the last event for which the ends of events are not tracked. Most chunks stay below this
limit."""


Parts = Iterable[StreamPart]
RunAndRest = tuple[TextRun, bytes]
"""A run, and the rest of the chunk after the run. RunDecoder.read_run returns this pair."""

HandOn = Callable[[Parts], bool]
"""A function that takes the parts of a chunk and returns whether to go on. The iteration over the parts raises
UpstreamError if the stream breaks."""


HandRunOn = Callable[[TextRun], bool]
"""A function that takes a chunk that is a single run, and returns whether to go on."""


Shorten = Callable[[RunDecoder, Take], Take]
"""A function that returns a faster function for the chunks of a stream. The returned function passes the chunks that it
does not relay itself to the given function."""


class Aside(Protocol):
    """Runs work in a thread, sharing the threads fairly among owners, and returns its result."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Stream(Protocol):
    """A stream that has been read up to its first content. Calls of `wait` and `take` must alternate."""

    @property
    def over(self) -> bool:
        """Whether the stream is over, so that `wait` must not be called."""

    def first(self) -> Iterator[StreamEvent]:
        """Return the events read up to the first content. It must be called once, before the other methods."""

    async def wait(self) -> None:
        """Wait for the next chunk, or the end. Raises UpstreamError."""

    def take(self) -> Iterator[StreamEvent]:
        """Return the events of the chunk. If the stream breaks, the iterator raises UpstreamError after the events that
        precede the break."""

    def conclude(self) -> Iterator[StreamEvent]:
        """Return the events that the decoder still holds, if the rest of the stream is not awaited."""

    async def finish(self) -> None:
        """Free the connection for another request after a complete response, or close it."""

    def close(self) -> None:
        """Close the connection without reading the rest."""


@dataclass(slots=True, eq=False)
class OpenStream:
    """The stream of one call. `events` are the parts that were read so far. `ended` is true if the body is over.
    Without `aside` everything is decoded on the event loop. `_unended` is the approximate number of bytes since the
    last event. `_read` are the events that the next `take` returns: the events of a heavy chunk, or the rest of a chunk
    with many events."""

    response: UpstreamResponse
    decoder: StreamDecoder
    events: Sequence[StreamPart]
    ended: bool
    aside: Aside | None = None
    finisher: PostProcessor | None = None
    _chunk: bytes = b""
    _read: Iterator[StreamEvent] | None = None
    _unended: int = 0

    @property
    def over(self) -> bool:
        return (self.ended or self.decoder.complete) and self._read is None

    def first(self) -> Iterator[StreamEvent]:
        return self._finished(without_runs(self.first_parts()))

    def first_parts(self) -> Sequence[StreamPart]:
        """Return the parts that were read up to the first content, with runs not split into events, and before any
        post-processing."""
        # The parts are released here, because the stream may last for minutes and the first chunk may be large.
        events, self.events = self.events, ()
        return events

    async def wait(self) -> None:
        if self._read is not None:
            return  # events of the previous chunk are left
        self._chunk = await self.response.read()
        self.ended = not self._chunk
        if (aside := self.aside_if_heavy) is not None:
            self._read = await aside(lambda: read_now(self.take()))

    def take(self) -> Iterator[StreamEvent]:
        events, self._read = self._read, None
        if events is not None:
            return events
        chunk, self._chunk = self._chunk, b""
        return self._finished(self._noted(self.decoder.feed(chunk), len(chunk)) if chunk else self.decoder.finish())

    @property
    def aside_if_heavy(self) -> Aside | None:
        """The threads that must decode the received chunk if it is heavy, so that it does not block other requests: a
        large chunk, a chunk that may end a long event, or the rest of a chunk with many events. `None` for light
        chunks, and if there are no threads."""
        heavy = self._read is not None or (self._chunk and self._unended + len(self._chunk) > LONG_EVENT)
        return self.aside if heavy else None

    def _noted(self, parts: Iterable[P], size: int) -> Iterator[P]:
        """Yield the parts of a chunk of `size` bytes, and note whether an event ended in it."""
        self._unended += size
        for each in parts:
            self._unended = 0
            yield each

    def _begin(self, parts: Iterable[StreamPart]) -> Iterator[StreamPart]:
        """Yield the first MOST_AT_ONCE parts, and store the others for the next `take`."""
        every = iter(parts)
        for count, each in enumerate(every, 1):
            yield each
            if count == MOST_AT_ONCE and self.aside is not None:
                self._read = without_runs(every)
                return

    def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
        """Implement `hand_each` for this stream. Each chunk is decoded and handed on within the callback that received
        it. A heavy chunk is left for the next call of this method, unless `take` takes it first."""
        if (aside := self.aside_if_heavy) is not None:
            return self._hand_heavy(hand, aside)
        decoder = self.decoder
        runs = decoder if isinstance(decoder, RunDecoder) and self.finisher is None else None
        take = partial(self._receive, hand, hand_run, runs)
        return self.response.each(take if runs is None or shorten is None else shorten(runs, take))

    def _receive(self, hand: HandOn, hand_run: HandRunOn, runs: RunDecoder | None, chunk: bytes) -> bool:
        """Hand on a chunk, or the end of the stream. Return whether to go on: False for a heavy chunk."""
        self.ended = not chunk
        if self._unended > LONG_EVENT and chunk and self.aside is not None:  # then it is heavy
            self._chunk = chunk
            return False
        if runs is None or not chunk:
            parts: Parts = self._finished(self.decoder.feed(chunk) if chunk else self.decoder.finish())
        else:
            found = runs.read_run(chunk)
            if found is not None and not found[1]:
                return hand_run(found[0])  # nearly every chunk is a run, which does not end a stream
            parts = _parts_after(found, runs, chunk)
        if self._unended + len(chunk) > _UNTRACKED_BYTES:
            parts = self._begin(self._noted(parts, len(chunk)))
        else:
            self._unended += len(chunk)
        return hand(parts) and self._read is None and not self.over

    async def _hand_heavy(self, hand: HandOn, aside: Aside) -> None:
        hand(await aside(lambda: read_now(self.take())))

    def conclude(self) -> Iterator[StreamEvent]:
        return self._finished(self.decoder.finish())

    def _finished(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        return events if self.finisher is None else finished(events, self.finisher)

    async def finish(self) -> None:
        """Free the connection, or close it if the server is still generating."""
        if isinstance(self.decoder, StopScanningDecoder) and self.decoder.cut:
            self.close()
        else:
            await drain(self.response)

    def close(self) -> None:
        self.response.close()


MOST_SINGLE = 6
"""The most events of a chunk that are decoded one by one in search of a run. Each costs a copy of the rest. A stream
has fewer events than this before the first one whose form can be learned."""

Read = Callable[[bytes], Parts]
"""A function that decodes a chunk of a stream. It raises UpstreamError."""


def reader_of(decoder: StreamDecoder) -> Read:
    """Return the function that decodes the chunks of a stream, with runs of text not split into events if the decoder
    supports them."""
    return partial(_parts_of, decoder) if isinstance(decoder, RunDecoder) else decoder.feed


def _parts_of(decoder: RunDecoder, chunk: bytes) -> Parts:
    return _parts_after(decoder.read_run(chunk), decoder, chunk)


def _parts_after(found: RunAndRest | None, decoder: RunDecoder, chunk: bytes) -> Parts:
    """Return the parts of a chunk. If `found` is not `None`, the chunk begins with this run."""
    if found is None and chunk.find(b"\n\n") + 2 in (1, len(chunk)):
        return decoder.feed(chunk)  # most other chunks are one event, or a part of one
    return _with_runs(decoder, found, chunk)


def _with_runs(decoder: RunDecoder, found: RunAndRest | None, chunk: bytes) -> Iterator[StreamPart]:
    """Yield the parts of a chunk: runs, and the events between and after the runs. If `found` is not `None`, the chunk
    begins with this run."""
    left = MOST_SINGLE
    while True:
        if found is not None:
            run, chunk = found
            yield run
        end = chunk.find(b"\n\n") + 2
        if not left or end in (1, len(chunk)):
            break
        left -= 1
        yield from decoder.feed(chunk[:end])
        chunk = chunk[end:]
        found = decoder.read_run(chunk)
    if chunk:
        yield from decoder.feed(chunk)


def without_runs(parts: Iterable[StreamPart]) -> Iterator[StreamEvent]:
    """Yield parts of a stream as single events."""
    for part in parts:
        if isinstance(part, TextRun):
            yield from part.chunks()
        else:
            yield part


def read_now(events: Iterator[P]) -> Iterator[P]:
    """Read all events, and return an iterator over them. If an UpstreamError ended the events, the iterator raises it
    at its end."""
    found: list[P] = []
    try:
        found.extend(events)
    except UpstreamError as error:
        return _with_error(found, error)
    return iter(found)


def _with_error(events: list[P], error: UpstreamError) -> Iterator[P]:
    yield from events
    raise error


def finished(events: Iterator[StreamEvent], finisher: PostProcessor) -> Iterator[StreamEvent]:
    """Yield events, with the choices post-processed by `finisher`."""
    for event in events:
        if isinstance(event, Chunk):
            yield from finisher.feed(event)
        else:
            yield event


class PartsStream(ABC):
    """A Stream that also hands on runs without splitting them into events."""

    __slots__ = ()

    @abstractmethod
    def first_parts(self) -> Parts:
        """Return the parts that were read up to the first content, with runs not split into events."""

    @property
    def aside_if_heavy(self) -> Aside | None:
        """The threads that must decode the received chunk if it is heavy. By default there are no threads."""
        return None

    @abstractmethod
    def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
        """Implement `hand_each` for this stream."""


def first_parts(stream: Stream) -> Parts:
    """Return the parts of the stream up to its first content, with unsplit runs if the stream supports runs and is not
    post-processed."""
    if isinstance(stream, OpenStream):  # the usual class, and a cheap test, unlike the test for an abstract class
        return stream.first_parts() if stream.finisher is None else stream.first()
    return stream.first_parts() if isinstance(stream, PartsStream) else stream.first()


def hand_each(stream: Stream, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
    """Call `hand` with the parts of each chunk of a stream as it arrives, including the parts at the end, until it
    returns False or the stream is over. For a chunk that is a single run, call `hand_run` instead. Raises the
    exceptions of the stream and of both functions. The functions may be called outside the waiting task. If nothing
    else observes the stream, `shorten` may put a faster function before `hand` and `hand_run`."""
    if isinstance(stream, OpenStream | PartsStream):
        return stream.each(hand, hand_run, shorten)
    return _pull_each(stream, hand)


def aside_of(stream: Stream) -> Aside | None:
    """Return the threads that must decode the next chunk of a stream, as `OpenStream.aside_if_heavy` defines them;
    `None` if the chunk is light."""
    return stream.aside_if_heavy if isinstance(stream, OpenStream | PartsStream) else None


async def _pull_each(stream: Stream, hand: HandOn) -> None:
    going = True
    while going and not stream.over:
        await stream.wait()
        going = hand(stream.take())


async def drain(response: UpstreamResponse) -> None:
    """Read the few bytes after a complete response, so that the connection can be reused. Close it if more follows."""
    if response.take_all() is not None:
        return  # in the usual case everything has arrived, and a timeout with a wait would cost 10 us
    size = 0
    try:
        async with asyncio.timeout(DRAIN_WAIT):
            while size < MAX_DRAIN and (chunk := await response.read()):
                size += len(chunk)
    except (TimeoutError, UpstreamError):
        response.close()
    response.release()


Hand = Callable[[Iterator[StreamEvent]], Awaitable[int]]
"""A function that takes the events of a chunk, and returns how many choices ended in them."""


async def read_through(stream: OpenStream, expected: int, hand: Hand) -> None:
    """Read one call's stream to its end. Raises UpstreamError if it breaks before `expected` choices ended."""
    ended = await hand(stream.first())
    while not stream.over and ended < expected:
        await stream.wait()
        ended += await hand(stream.take())
    if ended < expected:
        raise fail(FailureKind.TRUNCATED, f"The upstream finished {ended} of {expected} choices.")
    await read_tail(stream, stream.wait, hand)
    await stream.finish()


async def read_tail(
    stream: Stream, wait: Callable[[], Awaitable[None]], hand: Callable[[Iterator[StreamEvent]], Awaitable[object]]
) -> None:
    """Read the usage and the terminator after the end of the last choice. A missing usage or terminator is not a
    failure.

    `wait` waits for the next chunk, `hand` takes its events. Raises UpstreamError for an error that the vendor sends.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(TAIL_WAIT):
            while not stream.over:
                try:
                    await wait()
                except UpstreamError:
                    break  # the connection broke after a finished response
                await hand(_settled(stream.take()))
    if not stream.over:
        await hand(_settled(stream.conclude()))


def _settled(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    """Yield events up to a TRUNCATED error. The error is ignored, because every choice has ended and the response is
    therefore complete."""
    try:
        yield from events
    except UpstreamError as error:
        if error.failure.kind is not FailureKind.TRUNCATED:
            raise
