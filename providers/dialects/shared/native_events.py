"""What a vendor sent, beside its meaning, for calls in an API that the client speaks too.

The meaning is read as for any other call, by the same readers; only calls whose `native` is true cost more for it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from providers.completion import Chunk, Completion, NativeEvent, StreamEvent
from providers.dialect import UpstreamRequest
from providers.dialects.shared.stream_reader import Reader

_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)
_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")


class NamingReader(Reader, Protocol):
    """A reader that knows the name of the event that it has read last, from the event itself or its frame."""

    kind: str
    """The name; unchanged by an event that is no JSON object or has none."""


class NativeReader:
    """A reader that passes on every event that has a name, with the first chunk of its meaning or in one of its own.

    What the inner reader raises, an event that is an error among it, ends the stream as ever. See
    providers.dialects.shared.stream_reader.Reader.
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
