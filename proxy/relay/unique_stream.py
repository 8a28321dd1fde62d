"""A stream whose calls have unique ids. Runs hold no ids, so that they pass as they come."""

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

from providers.adaptation.unique_calls import UniqueCalls
from providers.completion import Chunk, StreamEvent, StreamPart
from proxy.upstream.vendor_stream import (
    Aside,
    HandOn,
    HandRunOn,
    Parts,
    PartsStream,
    Shorten,
    Stream,
    aside_of,
    first_parts,
    hand_each,
)


@dataclass(slots=True, eq=False)
class UniqueStream(PartsStream):
    """See `proxy.upstream.vendor_stream.Stream`."""

    _stream: Stream
    _calls: UniqueCalls

    @property
    def over(self) -> bool:
        """See Stream."""
        return self._stream.over

    @property
    def aside_if_heavy(self) -> Aside | None:
        """See PartsStream."""
        return aside_of(self._stream)

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._unique(self._stream.first())

    def first_parts(self) -> Parts:
        """See PartsStream."""
        return self._unique_parts(first_parts(self._stream))

    async def wait(self) -> None:
        """See Stream."""
        await self._stream.wait()

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._unique(self._stream.take())

    def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
        """See PartsStream."""
        return hand_each(self._stream, lambda parts: hand(self._unique_parts(parts)), hand_run, shorten)

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._unique(self._stream.conclude())

    async def finish(self) -> None:
        """See Stream."""
        await self._stream.finish()

    def close(self) -> None:
        """See Stream."""
        self._stream.close()

    def _unique(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            yield self._calls.chunk(event) if isinstance(event, Chunk) else event

    def _unique_parts(self, parts: Parts) -> Iterator[StreamPart]:
        for part in parts:
            yield self._calls.chunk(part) if isinstance(part, Chunk) else part
