"""Stream decoding from a framing's events to a dialect's reader, or from an answer that a vendor only gives whole. A
stream is complete only when its reader says so.

For calls in an API that the client speaks too there is a reader that gives what the vendor sent, beside its meaning.
That is read as for any other call; only calls whose `native` is true cost more for it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import orjson

from providers.completion import Chunk, Completion, NativeEvent, StreamEvent, TextRun
from providers.dialect import RunDecoder
from providers.dialects.shared.read_json import is_json, load_json, malformed, parse_json
from providers.emulation.collect_stream import to_chunks
from providers.failure import ENDED_EARLY, Failure, FailureKind, UpstreamError
from providers.framing.parse_sse import EventTooLarge, SSEParser
from providers.framing.text_frames import MOST_BYTES, FrameLearner, text_run
from providers.json_types import JsonObject

NOTHING: tuple[StreamEvent, ...] = ()


class Frames(Protocol):
    """A framing of events, such as `providers.framing.parse_sse.SSEParser` and
    `providers.framing.parse_ndjson.NDJSONParser`."""

    def only(self, piece: bytes) -> tuple[str, bytes] | None:
        """Return name and payload of a piece that is exactly one event, where nothing of another is pending. None for a
        piece that `feed` has to read, which gives the same. Raises what `feed` raises."""

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


def failing(error: UpstreamError) -> Iterator[StreamEvent]:
    """Return events that end in an error before the first."""
    yield from NOTHING
    raise error


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
        """See StreamDecoder. A piece that is one event, as nearly all are, is read without the two generators."""
        reader = self._reader
        if reader.complete:
            return iter(NOTHING)
        try:
            event = self._frames.only(data)
            return self._events(data) if event is None else iter(reader.read(*event))
        except UpstreamError as error:
            return failing(error)

    def _events(self, data: bytes) -> Iterator[StreamEvent]:
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


# Runs of text ---------------------------------------------------------------------------------------------------------

_MOST_LED = 1024 * 1024
"""Bytes at most of a piece that is read as a run, and hence of an event: far below any limit of an event that is
parsed."""

_MOST_BEGUN = 8 * 1024
"""Bytes at most of an event's begin that the next piece is put behind: they are copied with each piece."""

_MARKED_WITHIN = 256
"""Bytes in which an event shows that it may hold a text."""


class TextReader(Reader, Protocol):
    """A reader that knows which events mean their text and nothing else. Each of these has `text_mark` near its
    begin."""

    text_mark: bytes

    def marked(self, event: JsonObject) -> tuple[str, JsonObject] | None:
        """Return the name of the member that has the text of such an event, and the event with MARK in its place; None
        for another event. From then on runs are of events that are this one but for the text."""

    def take(self, run: TextRun) -> None:
        """Change what reading the events of a run one by one would have changed."""


class TextStream(NativeStream, RunDecoder):
    """A stream of whose texts many are read at once. See providers.dialect.RunDecoder.

    A form is learned from the event that is to be read: it is parsed for that, and then not again. `_alone` says that
    nothing has come since the last run, so that nothing is pending.
    """

    __slots__ = ("_alone", "_learner", "_sse", "_texts")

    def __init__(self, frames: SSEParser, reader: TextReader) -> None:
        super().__init__(frames, reader)
        self._sse, self._texts = frames, reader
        self._learner = FrameLearner((), frozenset())
        self._alone = False

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        self._alone = False
        return super().feed(data)

    def lead(self, data: bytes) -> tuple[TextRun, bytes] | None:
        """See RunDecoder."""
        texts, learner = self._texts, self._learner
        begun = b"" if self._alone else self._sse.begun(_MOST_BEGUN)
        if begun is None or texts.complete or len(data) > _MOST_LED:
            return None
        if begun:
            data = begun + data
        literals, end = ([], 0) if learner.frames is None else learner.frames.read(data)
        if not end and learner.lessons and data.find(texts.text_mark, 0, _MARKED_WITHIN) >= 0:
            self._learn(data)
            literals, end = ([], 0) if learner.frames is None else learner.frames.read(data)
        run = text_run(0, literals, None) if end else None
        if run is None:
            return None
        if begun:
            self._sse.forget()
        self._alone = True
        texts.take(run)
        return run, data[end:]

    def _learn(self, data: bytes) -> None:
        """Learn the form of the event that the data begins with."""
        learner, end = self._learner, data.find(b"\n\n", 0, MOST_BYTES)
        if end < 0:
            return
        event = SSEParser().only(data[: end + 2])
        try:
            body = None if event is None else load_json(event[1])
        except orjson.JSONDecodeError:
            body = None  # is mended when it is read
        found = self._texts.marked(body) if isinstance(body, dict) else None
        if event is None or found is None:
            learner.lessons -= 1
        else:
            learner.learn(event[1], *found, data)


# In the client's own API ---------------------------------------------------------------------------------------------

_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)
_MOST_NAMES = 128
_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")


class NamingReader(Reader, Protocol):
    """A reader that knows the name of the event that it has read last, from the event itself or its frame."""

    kind: str
    """The name; unchanged by an event that is no JSON object or has none."""


class NativeReader:
    """A reader that passes on every event that has a name, with the first chunk of its meaning or in one of its own.

    What the inner reader raises, an event that is an error among it, ends the stream as ever. See Reader.
    """

    __slots__ = ("_inner", "_names", "complete")

    def __init__(self, inner: NamingReader) -> None:
        self._inner = inner
        self._names: set[str] = set()
        self.complete = False

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """See Reader."""
        inner = self._inner
        inner.kind = ""
        events = inner.read(name, payload)
        kind = inner.kind
        self.complete = inner.complete
        if kind not in self._names and not self._fits(kind):
            return events
        event = NativeEvent(kind, one_line(payload) if b"\n" in payload or b"\r" in payload else payload)
        if type(events) is tuple and len(events) == 1 and type(chunk := events[0]) is Chunk:
            _attach(chunk, event)
            return events
        return _with_event(event, events)

    def _fits(self, kind: str) -> bool:
        """Return whether a name of the vendor's may become a line of the client's stream, and remember it."""
        fits = _NAME.fullmatch(kind) is not None
        if fits and len(self._names) < _MOST_NAMES:
            self._names.add(kind)
        return fits


def _attach(chunk: Chunk, event: NativeEvent) -> None:
    # The chunk was made for this event and nothing else holds it: a copy would cost more than the parsing.
    object.__setattr__(chunk, "native", event)


def _with_event(event: NativeEvent, events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return events with the vendor's own in the first chunk, which is one that holds nothing else if it must."""
    made = [*events]
    first = made[0] if made else None
    if isinstance(first, Chunk):
        _attach(first, event)
        return made
    return [Chunk(native=event), *made]


def one_line(payload: bytes) -> bytes:
    """Return JSON on one line, as a frame of a stream has it: in JSON, line ends are white space."""
    return payload.translate(_LINE_ENDS)


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
    if type(event) is not dict:
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
