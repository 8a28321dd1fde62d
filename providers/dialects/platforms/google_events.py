"""Events of a stream that may hold JSON without framing.

Google's front ends break a stream off with a bare JSON error, and answer with one JSON array to calls that do not
request events.
"""

import json
import re
from collections.abc import Iterator

from providers.dialects.shared.read_json import values_held
from providers.framing.parse_sse import MAX_EVENT, EventTooLarge, SSEParser

_LOOKS = 2 * 1024 * 1024
"""Bytes of incomplete text that are scanned again with each piece; beyond them, the text must double before the next
scan. An error has a few hundred bytes, which may come one at a time."""

_LINE_ENDS = b"\r\n"
_BARE = re.compile(rb"[\r\n][{\[]")
_DECODER = json.JSONDecoder()


class EventsOrJSON(SSEParser):
    """A parser of events that also yields JSON texts which begin a line, as events without a name.

    No line of an event stream begins with a bracket. `_bare` holds an incomplete text, `_looked` counts the bytes
    scanned in vain, `_look_at` is the size for the next scan, so that a long text costs linear time. `_at_line` says
    that the next byte begins a line.
    """

    __slots__ = ("_at_line", "_bare", "_look_at", "_looked")

    def __init__(self) -> None:
        super().__init__()
        self._at_line = True
        self._bare: bytearray | None = None
        self._look_at = self._looked = 0

    def only(self, piece: bytes) -> tuple[str, bytes] | None:
        """See SSEParser. No line of such a piece begins with a bracket."""
        if self._bare is not None:
            return None
        event = super().only(piece)
        if event is not None:
            self._at_line = True
        return event

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the events that the piece completes, in order. Raises EventTooLarge."""
        if self._bare is not None or self._begins_text(piece):
            return self._mixed(piece)
        if piece:
            self._at_line = piece[-1] in _LINE_ENDS
        return super().feed(piece)

    def begun(self, most: int) -> bytes | None:
        """See SSEParser."""
        return None if self._bare is not None else super().begun(most)

    def forget(self) -> None:
        """See SSEParser. What has read the rest of the event has read its line end too."""
        super().forget()
        self._at_line = True

    def _mixed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield events and bare texts of one piece, which continues an incomplete text."""
        if self._bare is not None:
            self._bare += piece
            _check_size(len(self._bare))
            if len(self._bare) < self._look_at:
                return
            piece, self._bare, self._at_line = bytes(self._bare), None, True
        values_held(piece)
        # One character per byte: only ASCII characters decide where a text ends.
        text = piece.decode("latin-1")
        at = 0
        while at < len(piece):
            start = self._start(piece, at)
            if start is None:
                yield from self.feed(piece[at:])
                return
            yield from super().feed(piece[at:start])
            _check_size(len(piece) - start)
            end = _end_of_text(text, start)
            if end is None:
                self._hold(piece[start:])
                return
            yield "", piece[start:end]
            self._look_at = self._looked = 0
            self._at_line, at = True, end

    def _hold(self, text: bytes) -> None:
        """Keep an incomplete text, and set the size for its next scan."""
        self._bare = bytearray(text)
        self._looked += len(text)
        if self._looked > _LOOKS:
            self._look_at = 2 * len(text)

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Yield what the end of the body completes, an incomplete text included."""
        yield from self.feed(self._take_bare())
        if cut := self._take_bare():
            yield "", cut
        yield from super().finish()

    def _take_bare(self) -> bytes:
        """Return and forget the incomplete text; scanned again, it begins a line."""
        held, self._bare = bytes(self._bare or b""), None
        self._at_line = self._at_line or bool(held)
        return held

    def _begins_text(self, piece: bytes) -> bool:
        """Return whether a JSON text begins a line. Four searches, each much faster than that for the place."""
        if self._at_line and piece[:1] in (b"{", b"["):
            return True
        return b"\n{" in piece or b"\n[" in piece or b"\r{" in piece or b"\r[" in piece

    def _start(self, piece: bytes, at: int = 0) -> int | None:
        """Return where a JSON text begins a line, from `at` on."""
        if self._at_line and piece[at : at + 1] in (b"{", b"["):
            return at
        found = _BARE.search(piece, at)
        return found.start() + 1 if found else None


def _check_size(size: int) -> None:
    if size > MAX_EVENT:
        raise EventTooLarge(f"an event of more than {MAX_EVENT} bytes")


def _end_of_text(text: str, start: int) -> int | None:
    """Return where the JSON text that begins at `start` ends, None while it is incomplete."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None
