"""Decodes streams of typed events. Many events that each mean a chunk of text, reasoning or arguments are read at
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
from providers.framing.text_frames import BEFORE_DATA, MAX_LEARNED_BYTES, NO_ODD, Around, FrameLearner, part_run
from providers.frozen_record import frozen
from providers.json_types import JsonObject

_MAX_RUN_BYTES = 1024 * 1024
"""The most bytes of a chunk that is read as a run, and therefore the most bytes of an event in a run. This is far below
every limit on parsed events."""

_MOST_INCOMPLETE = 8 * 1024
"""The most bytes of an incomplete event that are joined with the next chunk. They are copied with each chunk."""

_MARK_SEARCH_LENGTH = 256
"""The number of bytes at an event's beginning in which a mark shows that it may hold a text."""


@frozen
class MarkedEvent:
    """An event that means one chunk of text, reasoning or arguments and nothing else.

    `member` is the name of the field that holds the text. `event` is the event with MARK instead of that text. `call`
    is the number of the call or of the reasoning block that the chunk belongs to. `detail` is the reasoning detail of
    that block. `native` is the event's name if the client gets the event itself.
    """

    member: str
    event: JsonObject
    part: RunPart = "text"
    call: int = 0
    detail: JsonObject | None = None
    native: str | None = None


class TextReader(Reader, Protocol):
    """A reader that recognizes events that mean only a chunk of text, of reasoning or of a call's arguments. Each of
    these events has one of `marks` near its beginning."""

    @property
    def marks(self) -> Sequence[bytes]:
        """The bytes by which such events are recognized."""

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        """Return an event that means only a chunk with its text replaced by MARK; `None` for any other event. The
        events of the following runs differ from the marked event only by their text."""

    def take(self, run: TextRun) -> bool:
        """Update the state as reading the events of a run one by one would have done. Return `False` and change nothing
        if such events have another meaning now, because their text, reasoning or call has ended."""


class NamingTextReader(TextReader, NamingReader, Protocol):
    """A TextReader of an API that clients also speak."""


class NativeTextReader(NativeReader):
    """A NativeReader that is also a TextReader, so that many chunks of text are read at once."""

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
    """A `RunDecoder` of typed events, which reads many events at once.

    The form of a run is learned from the next event, which is parsed once for that. `_alone` is true if nothing has
    arrived since the last run, so that nothing is pending. `_marked` is the event of the form. `_native` is the
    vendor's form for a client of the same API.
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
        # An event with only text may hold the other half of a character, so that runs are no longer read.
        self._learner.frames, self._learner.forms_left = None, 0
        return super()._join(name, payload)

    def read_run(self, data: bytes) -> tuple[TextRun, bytes] | None:
        texts, learner = self._texts, self._learner
        begun = b"" if self._alone else self._sse.begun(_MOST_INCOMPLETE)
        if begun is None or texts.complete or len(data) > _MAX_RUN_BYTES:
            return None
        if begun:
            data = begun + data
        literals, end = ([], 0) if learner.frames is None else learner.frames.read(data)
        if (
            not end
            and learner.forms_left
            and any([data.find(mark, 0, _MARK_SEARCH_LENGTH) >= 0 for mark in texts.marks])
        ):
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

    def run_frame(self) -> Around | None:
        frames = self._learner.frames
        return frames.around if self._alone and frames is not None else None

    def note_run(self, characters: int) -> None:
        self._texts.take(TextRun(0, [], NO_ODD, characters, characters))

    def _learn(self, data: bytes) -> None:
        """Learn the form of the first event in the data."""
        learner, end = self._learner, data.find(b"\n\n", 0, MAX_LEARNED_BYTES)
        if end < 0:
            return
        event = SSEParser().only(data[: end + 2])
        try:
            body = None if event is None else load_json(event[1])
        except orjson.JSONDecodeError:
            body = None  # it is parsed leniently when it is read
        found = self._texts.marked(body) if isinstance(body, dict) else None
        if event is None or found is None:
            learner.forms_left -= 1
        else:
            learner.learn(event[1], found.member, found.event, data)
            self._marked = found
            frames = learner.frames
            if found.native is not None and frames is not None:
                self._native = _native_form(found.native, frames.around)
                learner.frames = None if self._native is None else frames


_NOT_MARKED = MarkedEvent("", {})


def _native_form(name: str, around: Around | None) -> NativeForm | None:
    """Return the form of events without their framing; `None` if the form has more than one gap for a text."""
    if around is None or around[1] is not None or (begin := BEFORE_DATA.match(around[0])) is None:
        return None
    return NativeForm(name, around[0][begin.end() :], around[2].rstrip(b"\r\n"))
