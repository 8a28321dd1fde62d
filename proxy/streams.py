"""Streamed answers as the relay reads them: one upstream's, or several as one.

Never writes to a client, opens a connection or decides what a broken stream means.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Protocol

from providers.completion import Chunk, StreamEvent, Usage
from providers.dialect import StreamDecoder
from providers.emulate import Finisher, Scanned, estimate, size_of
from providers.failure import FailureKind, UpstreamError
from providers.fanout import UsageTally, renumber
from providers.shape import Call
from proxy.upstream import UpstreamResponse, fail

TAIL_WAIT = 2.0
"""Seconds a finished answer's terminator is waited for; some servers keep the connection open instead of sending it."""

DRAIN_WAIT = 0.25
"""Seconds that are spent on reaching the body's end, so that the connection can serve another request."""

MAX_DRAIN = 64 * 1024
"""Bytes read for the same purpose."""

MAX_WAITING = 8
"""Pieces that one client may leave unread before the upstreams of its request are no longer read."""


class Stream(Protocol):
    """A stream that has shown its first content. `wait` and `take` alternate."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to wait for."""

    def first(self) -> Iterator[StreamEvent]:
        """The events read before anybody knew that there would be an answer. To be taken once, before the others."""

    async def wait(self) -> None:
        """The next piece is here, or the end. Raises UpstreamError."""

    def take(self) -> Iterator[StreamEvent]:
        """What it says. Raises UpstreamError at the point where the stream breaks, after the events before it."""

    def conclude(self) -> Iterator[StreamEvent]:
        """What is held back, when the rest is not waited for."""

    async def finish(self) -> None:
        """The answer is whole: leave the connection so that it can serve another, or close it."""

    def close(self) -> None:
        """Nobody wants the rest."""


class OpenStream:
    """See Stream. `events` are those read so far, `ended` whether the body is over."""

    __slots__ = ("_piece", "decoder", "ended", "events", "finisher", "response")

    def __init__(
        self,
        response: UpstreamResponse,
        decoder: StreamDecoder,
        events: list[StreamEvent],
        ended: bool,
        finisher: Finisher | None = None,
    ) -> None:
        self.response = response
        self.decoder = decoder
        self.events = events
        self.ended = ended
        self.finisher = finisher
        self._piece = b""

    @property
    def over(self) -> bool:
        """See Stream."""
        return self.ended or self.decoder.complete

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        # The stream may last for minutes, and the first piece may be a large one.
        events, self.events = self.events, []
        return self._finished(iter(events))

    async def wait(self) -> None:
        """See Stream."""
        self._piece = await self.response.read()
        self.ended = not self._piece

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        piece, self._piece = self._piece, b""
        return self._finished(self.decoder.feed(piece) if piece else self.decoder.finish())

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._finished(self.decoder.finish())

    def _finished(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        return events if self.finisher is None else finished(events, self.finisher)

    async def finish(self) -> None:
        """See Stream. What a server still generates, nobody reads."""
        if isinstance(self.decoder, Scanned) and self.decoder.cut:
            self.close()
        else:
            await drain(self.response)

    def close(self) -> None:
        """See Stream."""
        self.response.close()


def finished(events: Iterator[StreamEvent], finisher: Finisher) -> Iterator[StreamEvent]:
    """Events with the last hand put on their choices."""
    for event in events:
        if isinstance(event, Chunk):
            yield from finisher.feed(event)
        else:
            yield event


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


class LocalStream:
    """An answer that the gateway knew without asking anybody. See Stream."""

    __slots__ = ("_events",)

    over = True

    def __init__(self, events: list[StreamEvent]) -> None:
        self._events = events

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return iter(self._events)

    async def wait(self) -> None:
        """See Stream."""

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return iter(())

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return iter(())

    async def finish(self) -> None:
        """See Stream."""

    def close(self) -> None:
        """See Stream."""


Hand = Callable[[Iterator[StreamEvent]], Awaitable[int]]
"""Takes the events of a piece and tells how many choices ended in them."""


async def read_through(stream: OpenStream, expected: int, hand: Hand) -> None:
    """Read one call's stream to its good end. Raises UpstreamError when it breaks before `expected` choices ended."""
    ended = await hand(stream.first())
    while not stream.over and ended < expected:
        await stream.wait()
        ended += await hand(stream.take())
    if ended < expected:
        raise fail(FailureKind.TRUNCATED, f"The upstream finished {ended} of {expected} choices.")
    with suppress(TimeoutError):
        async with asyncio.timeout(TAIL_WAIT):
            while not stream.over and await _reached(stream):
                await hand(_settled(stream.take()))
    if not stream.over:
        await hand(_settled(stream.conclude()))
    await stream.finish()


async def _reached(stream: OpenStream) -> bool:
    """Whether there is another piece of a finished answer; that its connection broke is no more than its end."""
    try:
        await stream.wait()
    except UpstreamError:
        return False
    return True


def _settled(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    """What came after the last choice's end, without the decoder's doubts whether the stream ended well."""
    try:
        yield from events
    except UpstreamError as error:
        if error.failure.kind is not FailureKind.TRUNCATED:
            raise


Open = Callable[[Call], Awaitable[OpenStream]]


class MergedStream:
    """Several calls' streams as one, in the order in which their pieces come. See Stream.

    Each call is read by a task of its own, which whoever made this owns; `pump` does not raise an upstream's failure
    but hands it over, so that what came before it is relayed first.
    """

    __slots__ = (
        "_fault",
        "_first",
        "_item",
        "_n",
        "_open",
        "_queue",
        "_running",
        "_sizes",
        "_slots",
        "_tally",
        "_usage",
        "finisher",
    )

    def __init__(self, calls: int, n: int, open_stream: Open, slots: asyncio.Semaphore, tally: UsageTally) -> None:
        self._queue: asyncio.Queue[list[Chunk] | UpstreamError | None] = asyncio.Queue(MAX_WAITING)
        self._running = calls
        self._n = n
        self._open = open_stream
        self._slots = slots
        self._tally = tally
        self._usage: Usage | None = None
        self._sizes: dict[int, int] = dict.fromkeys(range(calls), 0)
        self._item: list[Chunk] | UpstreamError | None = None
        self._fault: BaseException | None = None
        self._first: list[StreamEvent] = []
        self.finisher: Finisher | None = None

    @property
    def over(self) -> bool:
        """See Stream."""
        return not self._running

    @property
    def billed(self) -> Usage | None:
        """What the vendor charges for; None until every call has ended or told."""
        return self._tally.billed

    async def until_content(self) -> None:
        """The first content of any call. Raises UpstreamError."""
        while not any(isinstance(event, Chunk) for event in self._first):
            await self.wait()
            self._first.extend(self._events())

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._finished(iter(self._first))

    async def wait(self) -> None:
        """See Stream. Raises RuntimeError when a call's task failed by a fault of ours."""
        self._item = await self._queue.get() if self._fault is None else None
        if self._fault is not None:
            raise RuntimeError("a call's stream cannot be read") from self._fault
        if self._item is None:
            self._running -= 1

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._finished(self._events())

    def _events(self) -> Iterator[StreamEvent]:
        item, self._item = self._item, None
        if isinstance(item, UpstreamError):
            raise item
        yield from item or ()
        if self._queue.empty():
            yield from self.conclude()

    def _finished(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        return events if self.finisher is None else finished(events, self.finisher)

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream. The usage, once every call has told its own; it does not queue, so that no limit on the time of
        those who put into the queue can lose it."""
        usage, self._usage = self._usage, None
        if usage is not None:
            yield usage

    async def finish(self) -> None:
        """See Stream. The tasks have left their connections in order."""

    def close(self) -> None:
        """See Stream. The tasks close their connections when they are cancelled."""

    async def pump(self, number: int, call: Call) -> None:
        """Read one call's stream to its end and hand over what it says."""
        try:
            async with self._slots:
                try:
                    await self._pumped(number, call)
                except UpstreamError as error:
                    await self._queue.put(error)
            await self._queue.put(None)
        except BaseException as fault:
            self._fault = fault
            if self._queue.empty():
                self._queue.put_nowait(None)
            raise

    async def _pumped(self, number: int, call: Call) -> None:
        stream = await self._open(call)
        try:
            await read_through(stream, call.part.count, partial(self._hand_over, number, call))
        finally:
            stream.close()
        if number in self._sizes:
            self._note(number, estimate(call.request, self._sizes[number]))

    async def _hand_over(self, number: int, call: Call, events: Iterator[StreamEvent]) -> int:
        """Number the choices as the answer has them, and tell how many ended."""
        batch: list[Chunk] = []
        ended = 0
        broken: UpstreamError | None = None
        try:
            for event in events:
                if isinstance(event, Chunk):
                    batch.append(self._numbered(call, event))
                    ended += event.finish_reason is not None
                    if number in self._sizes:
                        self._sizes[number] += size_of(event.text)
                else:
                    self._sizes.pop(number, None)
                    self._note(number, event)
        except UpstreamError as error:
            broken = error
        if batch or self._usage is not None:
            await self._queue.put(batch)
        if broken is not None:
            raise broken
        return ended

    def _note(self, number: int, usage: Usage) -> None:
        self._tally.note(number, usage)
        self._usage = self._tally.merged

    def _numbered(self, call: Call, chunk: Chunk) -> Chunk:
        try:
            return renumber(call.part, chunk, self._n)
        except ValueError:
            message = "The upstream answered with a choice that was not asked for."
            raise fail(FailureKind.MALFORMED, message) from None
