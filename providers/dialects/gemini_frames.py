"""Events of a stream in which JSON may stand bare: Google's front ends break a stream off with an error that has no
framing, and answer with one JSON array where they are not asked for events.

Never what a payload means.
"""

import json
import re
from collections.abc import Iterator

from providers.dialects.openai_read import values_held
from providers.sse import MAX_EVENT, EventTooLarge, SSEParser

_LOOKS = 2 * 1024 * 1024
"""Bytes that are looked at in vain with each piece before a bare text has to double: an error has a few hundred, and
may come one at a time."""

_LINE_ENDS, _END = b"\r\n", b"\r\n\r\n"
_BARE = re.compile(rb"[\r\n][{\[]")
_DECODER = json.JSONDecoder()


class EventsOrJSON(SSEParser):
    """Besides events, a JSON text that begins a line is one, without a name: no line of an event stream begins with a
    bracket.

    `_bare` holds such a text until it is whole, `_looked` how many bytes were looked at in vain, and `_look_at` the
    size at which it is worth another look, so that a long one costs linear time. `_at_line` says that the next byte
    begins a line.
    """

    __slots__ = ("_at_line", "_bare", "_look_at", "_looked")

    def __init__(self) -> None:
        super().__init__()
        self._at_line = True
        self._bare: bytearray | None = None
        self._look_at = self._looked = 0

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Events completed by the piece, in order. Raises EventTooLarge."""
        if self._bare is None and _is_one_line(piece):
            # As they come most of the time; in this form they are read fastest.
            self._at_line = True
            return super().feed(piece[:-4] + b"\n\n")
        if self._bare is not None or self._start(piece) is not None:
            return self._mixed(piece)
        if piece:
            self._at_line = piece[-1] in _LINE_ENDS
        return super().feed(piece)

    def _mixed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Events and bare texts in one piece, behind what is held of a bare text."""
        if self._bare is not None:
            self._bare += piece
            _check_size(len(self._bare))
            if len(self._bare) < self._look_at:
                return
            piece, self._bare, self._at_line = bytes(self._bare), None, True
        values_held(piece)
        # One character a byte: no character beyond ASCII matters to where a text ends.
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

    def _hold(self, begun: bytes) -> None:
        """Keep a text that is not whole, and say when it is worth another look."""
        self._bare = bytearray(begun)
        self._looked += len(begun)
        if self._looked > _LOOKS:
            self._look_at = 2 * len(begun)

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """What the end of the body completes, if only by cutting it off."""
        yield from self.feed(self._taken())
        if cut := self._taken():
            yield "", cut
        yield from super().finish()

    def _taken(self) -> bytes:
        """What was held, which may be looked at once more as the beginning of a line."""
        held, self._bare = bytes(self._bare or b""), None
        self._at_line = self._at_line or bool(held)
        return held

    def _start(self, piece: bytes, at: int = 0) -> int | None:
        """Where a JSON text begins a line, from `at` on."""
        if self._at_line and piece[at : at + 1] in (b"{", b"["):
            return at
        found = _BARE.search(piece, at)
        return found.start() + 1 if found else None


def _is_one_line(piece: bytes) -> bool:
    """Whether the piece is a single `data:` line and the end of its event."""
    end = len(piece) - 4
    return piece.find(b"\r") == end and piece.find(b"\n") == end + 1 and piece[end:] == _END and piece[:5] == b"data:"


def _check_size(size: int) -> None:
    if size > MAX_EVENT:
        raise EventTooLarge(f"an event of more than {MAX_EVENT} bytes")


def _end_of_text(text: str, start: int) -> int | None:
    """Where the JSON text ends that begins at `start`; None while it is not whole."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None
