"""What the native dialects share in reading streams: from a framing's events to a reader of JSON, and the stream's end.

Never a vendor's event. A stream ends well only when its reader says so.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

import orjson

from providers.completion import StreamEvent
from providers.dialects.openai_read import malformed, parsed
from providers.failure import ENDED_EARLY, Failure, FailureKind, UpstreamError
from providers.sse import EventTooLarge
from providers.unified import JsonObject

NOTHING: tuple[StreamEvent, ...] = ()


class Frames(Protocol):
    """A framing: `providers.sse.SSEParser` and `providers.ndjson.NDJSONParser`."""

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Events completed by the piece. Raises EventTooLarge."""

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """What the end of the body completes."""


class Reader(Protocol):
    """What one stream's events mean."""

    @property
    def complete(self) -> bool:
        """Whether the stream has proved that it ended well."""

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """One event. Raises UpstreamError."""


class NativeStream:
    """See providers.dialect.StreamDecoder."""

    __slots__ = ("_frames", "_reader")

    def __init__(self, frames: Frames, reader: Reader) -> None:
        self._frames = frames
        self._reader = reader

    @property
    def complete(self) -> bool:
        """See StreamDecoder."""
        return self._reader.complete

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if self.complete:
            return
        reader = self._reader
        try:
            for name, payload in self._frames.feed(data):
                yield from reader.read(name, payload)
                if reader.complete:
                    return
        except EventTooLarge as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if not self._reader.complete:
            try:
                for name, payload in self._frames.finish():
                    yield from self._reader.read(name, payload)
            except UpstreamError as error:
                # An event that the end cut in two is no JSON; what it says is that the answer was cut.
                if error.failure.kind is not FailureKind.MALFORMED:
                    raise
        if not self._reader.complete:
            raise cut()


def cut() -> UpstreamError:
    """The stream ended before its answer did."""
    return UpstreamError(Failure(FailureKind.TRUNCATED, ENDED_EARLY, ours=True))


def event_object(payload: bytes) -> JsonObject:
    """An event's JSON object. Raises UpstreamError(MALFORMED)."""
    try:
        event = parsed(payload)
    except orjson.JSONDecodeError:
        raise malformed("holds an event that is not JSON") from None
    if not isinstance(event, dict):
        raise malformed("holds an event that is not a JSON object")
    return event
