"""Streams of typed events of which many that mean a chunk of text, of reasoning or of a call's arguments are read at
once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import orjson

from providers.completion import NativeForm, RunPart, StreamEvent, TextRun
from providers.dialect import RunDecoder
from providers.dialects.shared.decode_stream import NamingReader, NativeReader, NativeStream, Reader
from providers.dialects.shared.read_json import load_json
from providers.framing.parse_sse import SSEParser
from providers.framing.text_frames import BEFORE_DATA, MOST_BYTES, NO_ODD, Around, FrameLearner, part_run
from providers.frozen_record import record
from providers.json_types import JsonObject

_MOST_LED = 1024 * 1024
"""Bytes at most of a piece that is read as a run, and hence of an event: far below any limit of an event that is
parsed."""

_MOST_BEGUN = 8 * 1024
"""Bytes at most of an event's begin that the next piece is put behind: they are copied with each piece."""

_MARKED_WITHIN = 256
"""Bytes in which an event shows that it may hold a text."""


@record
class MarkedEvent:
    """An event that means one chunk of a part and nothing else: the name of the field that has its text, and the event
    with MARK in its place. `call` is the number of the call whose arguments it is of, or of the block of reasoning that
    it is of, `detail` the reasoning detail of that block. `native` is the event's name if the client gets the event
    itself."""

    member: str
    event: JsonObject
    part: RunPart = "text"
    call: int = 0
    detail: JsonObject | None = None
    native: str | None = None


class TextReader(Reader, Protocol):
    """A reader that knows which events mean a chunk of text, of reasoning or of a call's arguments, and nothing else.
    Each of these has one of `marks` near its begin."""

    @property
    def marks(self) -> Sequence[bytes]:
        """See the class."""

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        """Return such an event; None for another one. From then on runs are of events that are this one but for the
        piece."""

    def take(self, run: TextRun) -> bool:
        """Change what reading the events of a run one by one would have changed. Returns False, and changes nothing,
        where they mean something else by now: what they are pieces of has ended."""


class NamingTextReader(TextReader, NamingReader, Protocol):
    """A TextReader of an API that clients speak too."""


class NativeTextReader(NativeReader):
    """A NativeReader of a stream whose chunks of text are read at once. See TextReader."""

    __slots__ = ("_texts",)

    def __init__(self, inner: NamingTextReader) -> None:
        super().__init__(inner)
        self._texts = inner

    @property
    def marks(self) -> Sequence[bytes]:
        return self._texts.marks

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        found, kind = self._texts.marked(event), event.get("type")
        return replace(found, native=kind) if found is not None and isinstance(kind, str) else None

    def take(self, run: TextRun) -> bool:
        return self._texts.take(run)


class TextStream(NativeStream, RunDecoder):
    """A stream of whose pieces many are read at once. See providers.dialect.RunDecoder.

    A form is learned from the event that is to be read: it is parsed for that, and then not again. `_alone` says that
    nothing has come since the last run, so that nothing is pending; `_marked` is the event of the form, and `_native`
    the vendor's form for a client of the same API.
    """

    __slots__ = ("_alone", "_learner", "_marked", "_native", "_sse", "_texts")

    def __init__(self, frames: SSEParser, reader: TextReader) -> None:
        super().__init__(frames, reader)
        self._sse, self._texts = frames, reader
        self._learner = FrameLearner((), frozenset())
        self._alone = False
        self._marked = _NOT_MARKED
        self._native: NativeForm | None = None

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        self._alone = False
        return super().feed(data)

    def _join(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        self._learner.frames, self._learner.lessons = None, 0  # a text alone may be what half a character wants
        return super()._join(name, payload)

    def lead(self, data: bytes) -> tuple[TextRun, bytes] | None:
        texts, learner = self._texts, self._learner
        begun = b"" if self._alone else self._sse.begun(_MOST_BEGUN)
        if begun is None or texts.complete or len(data) > _MOST_LED:
            return None
        if begun:
            data = begun + data
        literals, end = ([], 0) if learner.frames is None else learner.frames.read(data)
        if not end and learner.lessons and any([data.find(mark, 0, _MARKED_WITHIN) >= 0 for mark in texts.marks]):
            self._learn(data)
            literals, end = ([], 0) if learner.frames is None else learner.frames.read(data)
        marked = self._marked
        run = part_run(0, literals, None, marked.part, marked.call) if end else None
        if run is None:
            return None
        run.detail, run.native = marked.detail, self._native
        if not texts.take(run):
            learner.frames = None
            return None
        if begun:
            self._sse.forget()
        self._alone = True
        return run, data[end:]

    def around(self) -> Around | None:
        frames = self._learner.frames
        return frames.around if self._alone and frames is not None else None

    def passed(self, characters: int) -> None:
        self._texts.take(TextRun(0, [], NO_ODD, characters, characters))

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
            learner.learn(event[1], found.member, found.event, data)
            self._marked = found
            frames = learner.frames
            if found.native is not None and frames is not None:
                self._native = _native_form(found.native, frames.around)
                learner.frames = None if self._native is None else frames


_NOT_MARKED = MarkedEvent("", {})


def _native_form(name: str, around: Around | None) -> NativeForm | None:
    """Return the form of events without their framing; `None` if they have more than one hole."""
    if around is None or around[1] is not None or (begin := BEFORE_DATA.match(around[0])) is None:
        return None
    return NativeForm(name, around[0][begin.end() :], around[2].rstrip(b"\r\n"))
