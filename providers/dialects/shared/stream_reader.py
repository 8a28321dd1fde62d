"""Stream decoding from a framing's events to a dialect's reader, or from an answer that a vendor only gives whole. A
stream is complete only when its reader says so.

For calls in an API that the client speaks too there is a reader that gives what the vendor sent, beside its meaning.
That is read as for any other call; only calls whose `native` is true cost more for it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

import orjson

from providers.completion import Chunk, Completion, NativeEvent, StreamEvent
from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import is_json, malformed, parse_json
from providers.emulation.collect_stream import to_chunks
from providers.failure import ENDED_EARLY, Failure, FailureKind, UpstreamError
from providers.framing.parse_sse import EventTooLarge
from providers.json_types import JsonObject

NOTHING: tuple[StreamEvent, ...] = ()


class Frames(Protocol):
    """A framing of events, such as `providers.framing.parse_sse.SSEParser` and
    `providers.framing.parse_ndjson.NDJSONParser`."""

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield name and payload of the events that the piece completes. Raises EventTooLarge."""

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Yield the events that the end of the body completes."""


class Reader(Protocol):
    """Translator of one stream's events into events of the common shape."""

    @property
    def complete(self) -> bool:
        """Whether the vendor has declared the answer finished."""

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """Translate one event. Raises UpstreamError."""


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
        if self._reader.complete:
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
        reader = self._reader
        if not reader.complete:
            try:
                for name, payload in self._frames.finish():
                    yield from reader.read(name, payload)
            except UpstreamError as error:
                # An event that the end cut in two is no JSON: the answer was cut off.
                if error.failure.kind is not FailureKind.MALFORMED:
                    raise
        if not reader.complete:
            raise cut()


# In the client's own API ---------------------------------------------------------------------------------------------

_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)
_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")


class NamingReader(Reader, Protocol):
    """A reader that knows the name of the event that it has read last, from the event itself or its frame."""

    kind: str
    """The name; unchanged by an event that is no JSON object or has none."""


class NativeReader:
    """A reader that passes on every event that has a name, with the first chunk of its meaning or in one of its own.

    What the inner reader raises, an event that is an error among it, ends the stream as ever. See Reader.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: NamingReader) -> None:
        self._inner = inner

    @property
    def complete(self) -> bool:
        """See Reader."""
        return self._inner.complete

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """See Reader."""
        inner = self._inner
        inner.kind = ""
        events = inner.read(name, payload)
        kind = inner.kind
        # A name of the vendor's becomes a line of the client's stream.
        if not _NAME.fullmatch(kind):
            return events
        return _attached(NativeEvent(kind, one_line(payload)), events)


def with_events(sent: UpstreamRequest, reader: NamingReader) -> Reader:
    """Return the reader of a call's stream: for a native call, one that gives the vendor's events too."""
    return NativeReader(reader) if sent.native else reader


def with_body(sent: UpstreamRequest, completion: Completion, body: bytes) -> Completion:
    """Return the answer of a call: for a native call, with the vendor's own body."""
    return replace(completion, native=body) if sent.native else completion


def one_line(payload: bytes) -> bytes:
    """Return JSON on one line, as a frame of a stream has it: in JSON, line ends are white space."""
    return payload.translate(_LINE_ENDS) if b"\n" in payload or b"\r" in payload else payload


def _attached(event: NativeEvent, events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
    pending = True
    for each in events:
        if pending and isinstance(each, Chunk):
            # The chunk was made for this event and nothing else holds it: a copy would cost more than the parsing.
            object.__setattr__(each, "native", event)
            pending = False
        elif pending:
            yield Chunk(native=event)
            pending = False
        yield each
    if pending:
        yield Chunk(native=event)


# Ends -----------------------------------------------------------------------------------------------------------------


def cut() -> UpstreamError:
    """Return the error for a stream that ended before its answer did."""
    return UpstreamError(Failure(FailureKind.TRUNCATED, ENDED_EARLY, ours=True))


def event_object(payload: bytes) -> JsonObject:
    """Parse an event's JSON object. Raises UpstreamError(MALFORMED)."""
    try:
        event = parse_json(payload)
    except orjson.JSONDecodeError:
        raise malformed("holds an event that is not JSON") from None
    if not isinstance(event, dict):
        raise malformed("holds an event that is not a JSON object")
    return event


MAX_BODY = 32 * 1024 * 1024
"""The largest body in bytes; a larger one is malformed."""


class WholeStream:
    """Yields the answer when the body has ended; `decode` reads the body. See providers.dialect.StreamDecoder."""

    __slots__ = ("_body", "_decode", "complete")

    def __init__(self, decode: Callable[[bytes], Completion]) -> None:
        self.complete = False
        self._decode = decode
        self._body = bytearray()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        self._body += data
        if len(self._body) > MAX_BODY:
            raise malformed("is too large")
        return iter(())

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        body = bytes(self._body)
        if not is_json(body):
            raise cut()
        yield from to_chunks(self._decode(body))
        self.complete = True
