"""One vendor's streamed answer, as the relay reads it."""

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
"""Seconds a finished answer's terminator is waited for; some servers keep the connection open instead of sending it."""

DRAIN_WAIT = 0.25
"""Seconds spent on reaching the body's end, so that the connection can serve another request."""

MAX_DRAIN = 64 * 1024
"""Bytes read for the same purpose."""

LONG_EVENT = 64 * 1024
"""Bytes that have come of an event from which on it is read in a thread: one of 14 MB may hold 200,000 log
probabilities, which take 1.8 s to read and to write."""

MOST_AT_ONCE = 500
"""Parts of a piece that are read and written where it comes; what follows is in a thread. Nearly every piece is one
part, however large; one of 256 KiB may hold 4,000 of 30 us, where each event has another member that nobody knows."""

_SHORT = 4096
"""Bytes without an event up to which it is not asked whether one has ended, as most pieces are."""


Parts = Iterable[StreamPart]
Led = tuple[TextRun, bytes]
"""A run, and what of the piece follows it. See RunDecoder.read_run."""

HandOn = Callable[[Parts], bool]
"""Takes the parts of a piece, which raise UpstreamError where the stream breaks; returns whether to go on."""


HandRunOn = Callable[[TextRun], bool]
"""Does the same with a piece that is a run and nothing else."""


Shorten = Callable[[RunDecoder, Take], Take]
"""Returns what takes the pieces of a stream, of which it leaves to another what it does not relay itself."""


class Aside(Protocol):
    """Runs work in a thread, in turn with that of other owners, and returns what it does."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Stream(Protocol):
    """A stream that has shown its first content. Calls of `wait` and `take` alternate."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to wait for."""

    def first(self) -> Iterator[StreamEvent]:
        """Return the events read up to the first content. To be called once, before the other methods."""

    async def wait(self) -> None:
        """Wait for the next piece, or the end. Raises UpstreamError."""

    def take(self) -> Iterator[StreamEvent]:
        """Return the events of the piece. Raises UpstreamError where the stream breaks, after the events before."""

    def conclude(self) -> Iterator[StreamEvent]:
        """Return the events held back, when the rest is not waited for."""

    async def finish(self) -> None:
        """Free the connection for another request after a whole answer, or close it."""

    def close(self) -> None:
        """Close the connection without reading the rest."""


@dataclass(slots=True, eq=False)
class OpenStream:
    """See Stream. `events` are those read so far, `ended` says whether the body is over. Without `aside` everything is
    decoded in place. `_unended` are the bytes that have come since the last event, about; `_read` are the events to be
    taken next: of a heavy piece, or the rest of one with many."""

    response: UpstreamResponse
    decoder: StreamDecoder
    events: Sequence[StreamPart]
    ended: bool
    aside: Aside | None = None
    finisher: PostProcessor | None = None
    _piece: bytes = b""
    _read: Iterator[StreamEvent] | None = None
    _unended: int = 0

    @property
    def over(self) -> bool:
        """See Stream."""
        return (self.ended or self.decoder.complete) and self._read is None

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._finished(without_runs(self.first_parts()))

    def first_parts(self) -> Sequence[StreamPart]:
        """Return what `first` does, runs as such, and before any post-processing."""
        # Not kept: the stream may last for minutes, and the first piece may be large.
        events, self.events = self.events, ()
        return events

    async def wait(self) -> None:
        """See Stream."""
        if self._read is not None:
            return  # of the piece before
        self._piece = await self.response.read()
        self.ended = not self._piece
        if (aside := self.aside_if_heavy) is not None:
            self._read = await aside(lambda: read_now(self.take()))

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        events, self._read = self._read, None
        if events is not None:
            return events
        piece, self._piece = self._piece, b""
        return self._finished(self._noted(self.decoder.feed(piece), len(piece)) if piece else self.decoder.finish())

    @property
    def aside_if_heavy(self) -> Aside | None:
        """By what to take what is there, where it may be long, so that it holds nobody up: a large piece, one that may
        end a long event, or the rest of one with many events; None for others, and where there is none."""
        heavy = self._read is not None or (self._piece and self._unended + len(self._piece) > LONG_EVENT)
        return self.aside if heavy else None

    def _noted(self, parts: Iterable[P], size: int) -> Iterator[P]:
        """Yield the parts of a piece of so many bytes, and note whether an event ended in it."""
        self._unended += size
        for each in parts:
            self._unended = 0
            yield each

    def _begin(self, parts: Iterable[StreamPart]) -> Iterator[StreamPart]:
        """Yield the first of the parts, and leave those beyond MOST_AT_ONCE to be taken."""
        every = iter(parts)
        for count, each in enumerate(every, 1):
            yield each
            if count == MOST_AT_ONCE and self.aside is not None:
                self._read = without_runs(every)
                return

    def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
        """See hand_each. A piece is decoded and handed on within the callback that brought it. What is heavy is left
        for the next call, unless it is taken before that."""
        if (aside := self.aside_if_heavy) is not None:
            return self._hand_heavy(hand, aside)
        decoder = self.decoder
        runs = decoder if isinstance(decoder, RunDecoder) and self.finisher is None else None
        take = partial(self._came, hand, hand_run, runs)
        return self.response.each(take if runs is None or shorten is None else shorten(runs, take))

    def _came(self, hand: HandOn, hand_run: HandRunOn, runs: RunDecoder | None, piece: bytes) -> bool:
        """Hand on a piece, or the end. Returns whether to go on: not where the piece is heavy."""
        self.ended = not piece
        if self._unended > LONG_EVENT and piece and self.aside is not None:  # then it is heavy
            self._piece = piece
            return False
        if runs is None or not piece:
            parts: Parts = self._finished(self.decoder.feed(piece) if piece else self.decoder.finish())
        else:
            found = runs.read_run(piece)
            if found is not None and not found[1]:
                return hand_run(found[0])  # nearly every piece is a run, which ends no stream
            parts = _parts_after(found, runs, piece)
        if self._unended + len(piece) > _SHORT:
            parts = self._begin(self._noted(parts, len(piece)))
        else:
            self._unended += len(piece)
        return hand(parts) and self._read is None and not self.over

    async def _hand_heavy(self, hand: HandOn, aside: Aside) -> None:
        hand(await aside(lambda: read_now(self.take())))

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._finished(self.decoder.finish())

    def _finished(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        return events if self.finisher is None else finished(events, self.finisher)

    async def finish(self) -> None:
        """See Stream. A server that still generates is cut off."""
        if isinstance(self.decoder, StopScanningDecoder) and self.decoder.cut:
            self.close()
        else:
            await drain(self.response)

    def close(self) -> None:
        """See Stream."""
        self.response.close()


MOST_SINGLE = 6
"""Events of a piece that are decoded one by one in search of a run: those of a stream's begin, up to one whose form can
be learned, are fewer. Each costs a copy of the rest."""

Read = Callable[[bytes], Parts]
"""Decodes a piece of a stream. Raises UpstreamError."""


def reader_of(decoder: StreamDecoder) -> Read:
    """Return what decodes the pieces of a stream, with runs of text as such where the decoder can read them."""
    return partial(_parts_of, decoder) if isinstance(decoder, RunDecoder) else decoder.feed


def _parts_of(decoder: RunDecoder, piece: bytes) -> Parts:
    return _parts_after(decoder.read_run(piece), decoder, piece)


def _parts_after(found: Led | None, decoder: RunDecoder, piece: bytes) -> Parts:
    """Return the parts of a piece that begins with what `found` says."""
    if found is None and piece.find(b"\n\n") + 2 in (1, len(piece)):
        return decoder.feed(piece)  # most others are one event, or a part of one
    return _with_runs(decoder, found, piece)


def _with_runs(decoder: RunDecoder, found: Led | None, piece: bytes) -> Iterator[StreamPart]:
    """Yield the parts of a piece that begins with what `found` says: runs, and the events between and after them."""
    left = MOST_SINGLE
    while True:
        if found is not None:
            run, piece = found
            yield run
        end = piece.find(b"\n\n") + 2
        if not left or end in (1, len(piece)):
            break
        left -= 1
        yield from decoder.feed(piece[:end])
        piece = piece[end:]
        found = decoder.read_run(piece)
    if piece:
        yield from decoder.feed(piece)


def without_runs(parts: Iterable[StreamPart]) -> Iterator[StreamEvent]:
    """Yield parts of a stream as single events."""
    for part in parts:
        if isinstance(part, TextRun):
            yield from part.chunks()
        else:
            yield part


def read_now(events: Iterator[P]) -> Iterator[P]:
    """Read events, and return them, with the UpstreamError that ended them if there was one."""
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
    """A stream that also hands on runs as such. See Stream."""

    __slots__ = ()

    @abstractmethod
    def first_parts(self) -> Parts:
        """Return what `first` does, runs as such."""

    @property
    def aside_if_heavy(self) -> Aside | None:
        """See OpenStream."""
        return None

    @abstractmethod
    def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
        """See hand_each."""


def first_parts(stream: Stream) -> Parts:
    """Return what a stream's `first` does, with runs where the stream has them and nothing changes its choices."""
    if isinstance(stream, OpenStream):  # nearly always, and asked for at no cost, unlike an abstract class
        return stream.first_parts() if stream.finisher is None else stream.first()
    return stream.first_parts() if isinstance(stream, PartsStream) else stream.first()


def hand_each(stream: Stream, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
    """Give `hand` the parts of each piece of a stream as it comes, the end's included, until it returns False or the
    stream is over; or `hand_run` the only part of a piece. Raises what the stream and both raise. They may be called
    outside the task that waits. Where nobody else sees the stream, `shorten` may put something before both."""
    if isinstance(stream, OpenStream | PartsStream):
        return stream.each(hand, hand_run, shorten)
    return _pulled(stream, hand)


def aside_of(stream: Stream) -> Aside | None:
    """Return the threads that are to decode the next chunk of a stream; `None` if it is light. See OpenStream."""
    return stream.aside_if_heavy if isinstance(stream, OpenStream | PartsStream) else None


async def _pulled(stream: Stream, hand: HandOn) -> None:
    going = True
    while going and not stream.over:
        await stream.wait()
        going = hand(stream.take())


async def drain(response: UpstreamResponse) -> None:
    """Read a little of what follows a whole answer, so that the connection is kept; close it where there is more."""
    if response.take_all() is not None:
        return  # nearly always: a timeout and a wait would cost 10 us
    size = 0
    try:
        async with asyncio.timeout(DRAIN_WAIT):
            while size < MAX_DRAIN and (piece := await response.read()):
                size += len(piece)
    except (TimeoutError, UpstreamError):
        response.close()
    response.release()


Hand = Callable[[Iterator[StreamEvent]], Awaitable[int]]
"""Takes the events of a piece, and returns how many choices ended in them."""


async def read_through(stream: OpenStream, expected: int, hand: Hand) -> None:
    """Read one call's stream to its end. Raises UpstreamError when it breaks before `expected` choices ended."""
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
    """Read what follows the end of the last choice: usage and the terminator, whose lack is no failure.

    `wait` waits for the next piece, `hand` takes its events. Raises UpstreamError for an error that the vendor sends.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(TAIL_WAIT):
            while not stream.over:
                try:
                    await wait()
                except UpstreamError:
                    break  # a finished answer whose connection broke
                await hand(_settled(stream.take()))
    if not stream.over:
        await hand(_settled(stream.conclude()))


def _settled(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    """Yield events up to a TRUNCATED error: every choice has ended, so the answer is whole."""
    try:
        yield from events
    except UpstreamError as error:
        if error.failure.kind is not FailureKind.TRUNCATED:
            raise
