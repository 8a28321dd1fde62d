"""Records streams for the response cache, and replays cached streams.

A stream is packed while it is relayed, up to the most bytes of an entry. A cached stream is replayed in slices, so that
a long one does not delay other requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from providers.completion import Chunk, StreamEvent, StreamPart, TextRun
from proxy.response_cache.packed_response import EventPacker, EventReader
from proxy.upstream.gateway_streams import WrappedStream
from proxy.upstream.vendor_stream import (
    HandOn,
    HandRunOn,
    Parts,
    PartsStream,
    Shorten,
    first_parts,
    hand_each,
    without_runs,
)

GOOD_ENDS: Final = frozenset({"stop", "length", "tool_calls"})
"""Finish reasons of responses that are cached."""

SLICE: Final = 128
"""The most events that are replayed in one iteration of the event loop."""

_COMMA: Final = 1


@dataclass(slots=True, eq=False)
class RecordedStream(WrappedStream, PartsStream):
    """A stream whose events are recorded. `ended` gets the packed events once the client has the complete response. It
    gets `None` if they are not to be cached, because they take more than `most` bytes, or because not all of the
    `choices` choices ended with one of GOOD_ENDS."""

    most: int
    choices: int
    ended: Callable[[Sequence[bytes] | None], None]
    _events: list[bytes] = field(default_factory=list)
    _packer: EventPacker = field(default_factory=EventPacker)
    _size: int = 0
    _good: int = 0

    def first_parts(self) -> Parts:
        return self._recorded_parts(first_parts(self._stream))

    def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
        """Hand on the parts as `PartsStream.each` does. Each part is recorded here, so `shorten` is ignored: its
        function would take chunks unrecorded."""

        def came(parts: Parts) -> bool:
            return hand(self._recorded_parts(parts))

        def run_came(run: TextRun) -> bool:
            self._keep(self._packer.pack_run(run))
            return hand_run(run)

        return hand_each(self._stream, came, run_came)

    async def finish(self) -> None:
        kept = self._size <= self.most and self._good == self.choices
        self.ended(self._events if kept else None)
        self._events = []
        await self._stream.finish()

    def _seen(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            self._record(event)
            yield event

    def _recorded_parts(self, parts: Parts) -> Iterator[StreamPart]:
        for part in parts:
            if isinstance(part, TextRun):
                self._keep(self._packer.pack_run(part))
            else:
                self._record(part)
            yield part

    def _record(self, event: StreamEvent) -> None:
        if isinstance(event, Chunk) and event.finish_reason is not None:
            self._good += event.finish_reason in GOOD_ENDS
        if self._size <= self.most:
            self._keep(self._packer.pack(event))

    def _keep(self, packed: Sequence[bytes]) -> None:
        if self._size <= self.most:
            self._size += sum(map(len, packed)) + _COMMA * len(packed)
            self._events += packed
            if self._size > self.most:
                self._events = []


@dataclass(slots=True, eq=False)
class ReplayedStream(PartsStream):
    """The events of a cached stream as a stream."""

    _events: Sequence[object]
    _reader: EventReader = field(default_factory=EventReader)
    _next: int = 0

    @property
    def over(self) -> bool:
        return self._next >= len(self._events)

    def first(self) -> Iterator[StreamEvent]:
        return self.take()

    def first_parts(self) -> Parts:
        begin, self._next = self._next, self._next + SLICE
        return self._reader.read(self._events[begin : self._next])

    async def wait(self) -> None:
        """Let other requests run before the next slice."""
        await asyncio.sleep(0)

    def take(self) -> Iterator[StreamEvent]:
        return without_runs(self.first_parts())

    async def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> None:
        while not self.over:
            await self.wait()
            if not hand(self.first_parts()):
                return

    def conclude(self) -> Iterator[StreamEvent]:
        return iter(())

    async def finish(self) -> None:
        """Do nothing, because all events are already here."""

    def close(self) -> None:
        """Do nothing: there is no connection to a vendor."""
