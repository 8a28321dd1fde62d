"""Parses newline-delimited JSON: pieces of bytes in, lines out.

A line ends at a line feed and nowhere else: JSON strings may hold U+2028 and its like. The interface is that of
`providers.framing.parse_sse.SSEParser`, with events that have no name.
"""

from collections.abc import Iterator

from providers.framing.parse_sse import MAX_EVENT, EventTooLarge


class NDJSONParser:
    """Splits pieces of any size into whole lines without blank ones. One per stream.

    `_rest` is the line whose end has not arrived; it only grows in place, so that a long line in small pieces costs
    linear time.
    """

    __slots__ = ("_cap", "_rest")

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._cap = cap
        self._rest = bytearray()

    def only(self, piece: bytes) -> tuple[str, bytes] | None:
        """Return the line of a piece that is exactly one, where nothing of another is pending; None for every other
        piece, which is unread then."""
        end = len(piece) - 1
        if piece.find(b"\n") != end or self._rest or end > self._cap:
            return None
        line = piece.strip()
        return ("", line) if line else None

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Return the lines completed by `piece`, in order. Raises EventTooLarge."""
        *lines, tail = piece.split(b"\n")
        for number, line in enumerate(lines):
            if number == 0 and self._rest:
                self._rest += line
                line = bytes(self._rest)
                self._rest.clear()
            self._check_cap(len(line))
            if line := line.strip():
                yield "", line
        if tail:
            self._rest += tail
            self._check_cap(len(self._rest))

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Return the last line, when the body ended without its line feed."""
        line = bytes(self._rest).strip()
        self._rest.clear()
        if line:
            yield "", line

    def _check_cap(self, size: int) -> None:
        if size > self._cap:
            raise EventTooLarge(f"an event of more than {self._cap} bytes")
