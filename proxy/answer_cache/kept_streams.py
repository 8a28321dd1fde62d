"""Streams on their way into the answer cache and out of it.

A stream is recorded packed, as it is relayed: never more than the cap of its entry. It is replayed in slices, so that
a long one does not hold other requests up.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from providers.completion import Chunk, StreamEvent
from proxy.answer_cache.packed_answer import pack_event, read_events
from proxy.upstream.vendor_stream import Stream

GOOD_ENDS: Final = frozenset({"stop", "length", "tool_calls"})
"""Finish reasons of answers that are kept."""

SLICE: Final = 128
"""Events that are replayed in one turn of the event loop."""

_COMMA: Final = 1


@dataclass(slots=True, eq=False)
class RecordedStream:
    """A stream whose events are recorded. See `proxy.upstream.vendor_stream.Stream`. `ended` gets them once the client
    has the whole answer: None where they are not to be kept, because they are more than `most` bytes, or no good answer
    of `choices` choices."""

    _stream: Stream
    most: int
    choices: int
    ended: Callable[[Sequence[bytes] | None], None]
    _events: list[bytes] = field(default_factory=list)
    _size: int = 0
    _good: int = 0

    @property
    def over(self) -> bool:
        """See Stream."""
        return self._stream.over

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._recorded(self._stream.first())

    async def wait(self) -> None:
        """See Stream."""
        await self._stream.wait()

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._recorded(self._stream.take())

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._recorded(self._stream.conclude())

    async def finish(self) -> None:
        """See Stream."""
        kept = self._size <= self.most and self._good == self.choices
        self.ended(self._events if kept else None)
        self._events = []
        await self._stream.finish()

    def close(self) -> None:
        """See Stream."""
        self._stream.close()

    def _recorded(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            if isinstance(event, Chunk) and event.finish_reason is not None:
                self._good += event.finish_reason in GOOD_ENDS
            if self._size <= self.most:
                packed = pack_event(event)
                self._size += len(packed) + _COMMA
                self._events.append(packed)
                if self._size > self.most:
                    self._events = []
            yield event


@dataclass(slots=True, eq=False)
class ReplayedStream:
    """The events of a kept stream. See `proxy.upstream.vendor_stream.Stream`."""

    _events: Sequence[object]
    _next: int = 0

    @property
    def over(self) -> bool:
        """See Stream."""
        return self._next >= len(self._events)

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self.take()

    async def wait(self) -> None:
        """See Stream. Lets other requests go on."""
        await asyncio.sleep(0)

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        begin, self._next = self._next, self._next + SLICE
        return read_events(self._events[begin : self._next])

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return iter(())

    async def finish(self) -> None:
        """See Stream."""

    def close(self) -> None:
        """See Stream."""
