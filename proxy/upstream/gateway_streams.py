"""Streams that the gateway itself creates: a stream for a response that needs no call, and a stream around another
stream."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from providers.completion import StreamEvent
from proxy.upstream.vendor_stream import Stream


class LocalStream:
    """The stream of a response that needs no call. It implements `Stream`."""

    __slots__ = ("_events",)

    over = True

    def __init__(self, events: list[StreamEvent]) -> None:
        self._events = events

    def first(self) -> Iterator[StreamEvent]:
        return iter(self._events)

    async def wait(self) -> None:
        """Do nothing, because there is no connection."""

    def take(self) -> Iterator[StreamEvent]:
        return iter(())

    def conclude(self) -> Iterator[StreamEvent]:
        return iter(())

    async def finish(self) -> None:
        """Do nothing, because there is no connection."""

    def close(self) -> None:
        """Do nothing, because there is no connection."""


@dataclass(slots=True, eq=False)
class WrappedStream(ABC):
    """A Stream around another one, whose events it observes."""

    _stream: Stream

    @property
    def over(self) -> bool:
        return self._stream.over

    def first(self) -> Iterator[StreamEvent]:
        return self._seen(self._stream.first())

    async def wait(self) -> None:
        await self._stream.wait()

    def take(self) -> Iterator[StreamEvent]:
        return self._seen(self._stream.take())

    def conclude(self) -> Iterator[StreamEvent]:
        return self._seen(self._stream.conclude())

    async def finish(self) -> None:
        await self._stream.finish()

    def close(self) -> None:
        self._stream.close()

    @abstractmethod
    def _seen(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        """Yield the events that are sent on to the client."""
