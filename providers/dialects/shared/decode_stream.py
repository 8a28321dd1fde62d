"""Decodes streams: a framing splits the bytes into events, which a dialect's reader translates. Also decodes
non-streaming responses as streams.

A stream is complete only if its reader says so. For calls in an API that the client also speaks, a second reader
attaches the vendor's own events to their translation. Only calls whose `native` is true have the cost of the second
reader.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import orjson

from providers.completion import Chunk, Completion, NativeEvent, StreamEvent, Usage
from providers.dialect import usage_so_far
from providers.dialects.shared.read_json import (
    SplitCharacter,
    is_json,
    malformed,
    parse_event,
    parse_json,
    passed_on,
)
from providers.emulation.collect_stream import to_chunks
from providers.failure import ENDED_EARLY, Failure, FailureKind, UpstreamError
from providers.framing.join_surrogates import REPLACEMENT, HalfCharacter, SurrogateJoiner
from providers.framing.parse_sse import EventTooLarge
from providers.json_types import JsonObject, JsonValue

NOTHING: tuple[StreamEvent, ...] = ()


class Frames(Protocol):
    """A framing of events, such as `providers.framing.parse_sse.SSEParser` and
    `providers.framing.parse_ndjson.NDJSONParser`."""

    def only(self, chunk: bytes) -> tuple[str, bytes] | None:
        """Return name and payload of a chunk that is exactly one event, if no other event is pending. `None` for any
        other chunk, which `feed` must read. Raises the same errors as `feed`."""

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield name and payload of the events that the chunk completes. Raises EventTooLarge."""

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Yield the events that the end of the body completes."""


class Reader(Protocol):
    """A translator of one stream's events into events of the common shape."""

    @property
    def complete(self) -> bool:
        """Whether the vendor has declared the response finished."""

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """Translate one event. Raises UpstreamError."""


def failing(error: UpstreamError) -> Iterator[StreamEvent]:
    """Return an iterator of events that raises the error before the first event."""
    yield from NOTHING
    raise error


class NativeStream:
    """The `StreamDecoder` of a framing and a reader."""

    __slots__ = ("_frames", "_reader")

    def __init__(self, frames: Frames, reader: Reader) -> None:
        self._frames = frames
        self._reader = reader

    @property
    def complete(self) -> bool:
        return self._reader.complete

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Decode one chunk. A chunk that is one event, as nearly all are, is read without the cost of two
        generators."""
        reader = self._reader
        if reader.complete:
            return iter(NOTHING)
        event: tuple[str, bytes] | None = None
        try:
            event = self._frames.only(data)
            return self._events(data) if event is None else iter(reader.read(*event))
        except SplitCharacter:
            return iter(() if event is None else self._join(*event))
        except UpstreamError as error:
            return failing(error)

    def _events(self, data: bytes) -> Iterator[StreamEvent]:
        try:
            for name, payload in self._frames.feed(data):
                yield from self._read(name, payload)
                if self._reader.complete:
                    return
        except EventTooLarge as error:
            raise malformed(f"holds {error}") from None

    def _read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        try:
            return self._reader.read(name, payload)
        except SplitCharacter:
            return self._join(name, payload)

    def _join(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """Read an event with half a character. From now on, every event is joined with halves from the events
        before."""
        self._reader = JoiningReader(self._reader)
        return self._reader.read(name, payload)

    def finish(self) -> Iterator[StreamEvent]:
        reader = self._reader
        if not reader.complete:
            try:
                for name, payload in self._frames.finish():
                    yield from self._read(name, payload)
            except UpstreamError as error:
                # An event that the end of the body cuts in two is not JSON: the response was cut off.
                if error.failure.kind is not FailureKind.MALFORMED:
                    raise
        if not reader.complete:
            raise cut()

    def usage_so_far(self) -> Usage | None:
        return usage_so_far(self._reader)


# In the client's own API ---------------------------------------------------------------------------------------------

_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)
_MOST_NAMES = 128


class NamingReader(Reader, Protocol):
    """A reader that knows the name of the last event it has read, from the event itself or its frame."""

    kind: str
    """The name. An event that is not a JSON object or has no name does not change it."""


class NativeReader:
    """A `Reader` that passes on every named event of the vendor, attached to the first chunk of its translation or to
    an extra chunk.

    Errors that the inner reader raises, also for events that are errors, end the stream.
    """

    __slots__ = ("_inner", "_names", "complete")

    def __init__(self, inner: NamingReader) -> None:
        self._inner = inner
        self._names: set[str] = set()
        self.complete = False

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        inner = self._inner
        inner.kind = ""
        events = inner.read(name, payload)
        kind = inner.kind
        self.complete = inner.complete
        if kind not in self._names and not self._fits(kind):
            return events
        event = NativeEvent(kind, passed_on(payload))
        if type(events) is tuple and len(events) == 1 and type(chunk := events[0]) is Chunk:
            _attach(chunk, event)
            return events
        return _with_event(event, events)

    def usage_so_far(self) -> Usage | None:
        return usage_so_far(self._inner)

    def _fits(self, kind: str) -> bool:
        """Return whether a vendor's event name may be written into the client's stream, and store it if so."""
        fits = _NAME.fullmatch(kind) is not None
        if fits and len(self._names) < _MOST_NAMES:
            self._names.add(kind)
        return fits


def _attach(chunk: Chunk, event: NativeEvent) -> None:
    # The chunk was made for this event and has no other references. Copying it would cost more than the parsing.
    object.__setattr__(chunk, "native", event)


def _with_event(event: NativeEvent, events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return the events with the vendor's own event in the first chunk. If the first event is not a chunk, an extra
    chunk is put before it."""
    listed = [*events]
    first = listed[0] if listed else None
    if isinstance(first, Chunk):
        _attach(first, event)
        return listed
    return [Chunk(native=event), *listed]


# Ends -----------------------------------------------------------------------------------------------------------------


def cut() -> UpstreamError:
    """Return the error for a stream that ended before its response was complete."""
    return UpstreamError(Failure(FailureKind.TRUNCATED, ENDED_EARLY, ours=True))


def event_object(payload: bytes, parse: Callable[[bytes], JsonValue] = parse_event) -> JsonObject:
    """Parse an event's JSON object. Raises UpstreamError(MALFORMED), and SplitCharacter if `parse` raises it."""
    try:
        event = parse(payload)
    except orjson.JSONDecodeError:
        raise malformed("holds an event that is not JSON") from None
    if type(event) is not dict:
        raise malformed("holds an event that is not a JSON object")
    return event


# Characters in two events ---------------------------------------------------------------------------------------------


class CharacterJoiner:
    """The joiner of a stream's characters whose halves came in two events."""

    __slots__ = ("_joiner",)

    def __init__(self) -> None:
        self._joiner = SurrogateJoiner()

    def parse(self, payload: bytes) -> JsonValue:
        """Parse an event, and join halves of characters with halves from previous events. Raises
        UpstreamError(MALFORMED) for a half without its other half, and JSONDecodeError."""
        parse_json(payload)  # checks the limits of memory and depth
        try:
            return self._joiner.parse(payload)
        except HalfCharacter:
            raise SplitCharacter from None

    def end(self, chunk: Chunk) -> Chunk:
        """Return the last chunk of a choice. Raises SplitCharacter for a half that the vendor did not complete. If the
        token limit ended the text there, the half becomes U+FFFD instead."""
        open_halves = self._joiner.open
        paths = [path for path in open_halves if path[0] != "choices" or path[1] == chunk.index]
        if not paths:
            return chunk
        if chunk.finish_reason != "length":
            raise SplitCharacter
        for path in paths:
            del open_halves[path]
        return replace(chunk, text=chunk.text + REPLACEMENT)


class JoiningReader:
    """A `Reader` of a stream whose events hold halves of characters."""

    __slots__ = ("_characters", "_inner")

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        self._characters = CharacterJoiner()

    @property
    def complete(self) -> bool:
        return self._inner.complete

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if payload[:1] == b"{":
            with suppress(orjson.JSONDecodeError):
                payload = orjson.dumps(self._characters.parse(payload))
        for event in self._inner.read(name, payload):
            ends = isinstance(event, Chunk) and event.finish_reason is not None
            yield self._characters.end(event) if ends and isinstance(event, Chunk) else event

    def usage_so_far(self) -> Usage | None:
        return usage_so_far(self._inner)


MAX_BODY = 32 * 1024 * 1024
"""The largest body in bytes; a larger one is malformed."""


class SingleResponseStream:
    """A `StreamDecoder` of a non-streaming response, which yields all events once the body has ended. `decode` reads
    the body."""

    __slots__ = ("_body", "_decode", "complete")

    def __init__(self, decode: Callable[[bytes], Completion]) -> None:
        self.complete = False
        self._decode = decode
        self._body = bytearray()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        self._body += data
        if len(self._body) > MAX_BODY:
            raise malformed("is too large")
        return iter(())

    def finish(self) -> Iterator[StreamEvent]:
        body = bytes(self._body)
        if not is_json(body):
            raise cut()
        yield from to_chunks(self._decode(body))
        self.complete = True
