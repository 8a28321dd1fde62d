"""Newline-delimited JSON: bytes in, lines out, whatever the cuts. Never knows JSON or a dialect.

A line ends at a line feed and nowhere else: U+2028 and its like stand inside JSON strings. The interface is that of
`providers.sse.SSEParser`, with events that have no name.
"""

from collections.abc import Iterator

from providers.sse import MAX_EVENT, EventTooLarge


class NDJSONParser:
    """Incremental splitter; feed it pieces, get whole lines without blank ones. One per stream.

    `_rest` is the line whose end has not come; it only grows in place, so that a long line in small pieces costs linear
    time.
    """

    __slots__ = ("_cap", "_rest")

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._cap = cap
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Lines completed by `piece`, in order. Raises EventTooLarge."""
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
        """The body ended: a line whose end never came still counts."""
        line = bytes(self._rest).strip()
        self._rest.clear()
        if line:
            yield "", line

    def _check_cap(self, size: int) -> None:
        if size > self._cap:
            raise EventTooLarge(f"an event of more than {self._cap} bytes")
