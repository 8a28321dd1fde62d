"""An answer that the gateway has without a call, as a stream."""

from collections.abc import Iterator

from providers.completion import StreamEvent


class LocalStream:
    """An answer that the gateway has without a call. See Stream."""

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
