"""Parses event streams that may also hold JSON outside of events.

Google's front ends abort a stream with a JSON error outside of any event. If a call does not request events, they
respond with one JSON array.
"""

import json
import re
from collections.abc import Iterator

from providers.dialects.shared.read_json import estimate_value_bytes
from providers.framing.parse_sse import MAX_EVENT, EventTooLarge, SSEParser

_MOST_RESCANNED = 2 * 1024 * 1024
"""The most bytes of incomplete JSON, in total, that may be scanned again with each chunk. Beyond that total, the text
must double its length before the next scan. An error has a few hundred bytes, which may arrive one at a time."""

_LINE_ENDS = b"\r\n"
_BARE_START = re.compile(rb"[\r\n][{\[]")
_DECODER = json.JSONDecoder()


class EventsOrJSON(SSEParser):
    """A parser of events that also yields each JSON text at the beginning of a line, as an event without a name.

    No line of an event stream itself begins with a bracket. `_bare` holds an incomplete JSON text. `_scanned` counts
    the bytes scanned in vain. `_next_scan` is the length at which the text is scanned again; it makes a long text cost
    linear time. `_at_line` is true if the next byte begins a line.
    """

    __slots__ = ("_at_line", "_bare", "_next_scan", "_scanned")

    def __init__(self) -> None:
        super().__init__()
        self._at_line = True
        self._bare: bytearray | None = None
        self._next_scan = self._scanned = 0

    def only(self, chunk: bytes) -> tuple[str, bytes] | None:
        if self._bare is not None:
            return None
        event = super().only(chunk)
        if event is not None:
            self._at_line = True
        return event

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the events that the chunk completes, in order. Raises EventTooLarge."""
        if self._bare is not None or self._begins_text(chunk):
            return self._feed_mixed(chunk)
        if chunk:
            self._at_line = chunk[-1] in _LINE_ENDS
        return super().feed(chunk)

    def begun(self, most: int) -> bytes | None:
        return None if self._bare is not None else super().begun(most)

    def forget(self) -> None:
        super().forget()
        self._at_line = True

    def _feed_mixed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the events and JSON texts of a chunk, which continues the incomplete text if there is one."""
        if self._bare is not None:
            self._bare += chunk
            _check_size(len(self._bare))
            if len(self._bare) < self._next_scan:
                return
            chunk, self._bare, self._at_line = bytes(self._bare), None, True
        estimate_value_bytes(chunk)
        # Latin-1 gives one character per byte. Only ASCII characters decide the end of a JSON text.
        text = chunk.decode("latin-1")
        at = 0
        while at < len(chunk):
            start = self._find_start(chunk, at)
            if start is None:
                yield from self.feed(chunk[at:])
                return
            yield from super().feed(chunk[at:start])
            _check_size(len(chunk) - start)
            end = _end_of_text(text, start)
            if end is None:
                self._hold(chunk[start:])
                return
            yield "", chunk[start:end]
            self._next_scan = self._scanned = 0
            self._at_line, at = True, end

    def _hold(self, text: bytes) -> None:
        """Store an incomplete text, and set the length for its next scan."""
        self._bare = bytearray(text)
        self._scanned += len(text)
        if self._scanned > _MOST_RESCANNED:
            self._next_scan = 2 * len(text)

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Yield the events that the end of the body completes, and an incomplete text as it is."""
        yield from self.feed(self._take_bare())
        if cut := self._take_bare():
            yield "", cut
        yield from super().finish()

    def _take_bare(self) -> bytes:
        """Return the incomplete text and no longer store it. If it is scanned again, it begins a line."""
        held, self._bare = bytes(self._bare or b""), None
        self._at_line = self._at_line or bool(held)
        return held

    def _begins_text(self, chunk: bytes) -> bool:
        """Return whether a JSON text begins a line. Its four searches are much faster than the search for the position
        of the text."""
        if self._at_line and chunk[:1] in (b"{", b"["):
            return True
        return b"\n{" in chunk or b"\n[" in chunk or b"\r{" in chunk or b"\r[" in chunk

    def _find_start(self, chunk: bytes, at: int = 0) -> int | None:
        """Return the first position from `at` on at which a JSON text begins a line, otherwise `None`."""
        if self._at_line and chunk[at : at + 1] in (b"{", b"["):
            return at
        found = _BARE_START.search(chunk, at)
        return found.start() + 1 if found else None


def _check_size(size: int) -> None:
    if size > MAX_EVENT:
        raise EventTooLarge(f"an event of more than {MAX_EVENT} bytes")


def _end_of_text(text: str, start: int) -> int | None:
    """Return the end of the JSON text that begins at `start`; `None` while the text is incomplete."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None
