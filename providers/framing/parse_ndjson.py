"""Parser of newline-delimited JSON: it splits chunks of bytes into lines.

A line ends only at a line feed, because JSON strings may hold U+2028 and similar characters. The interface is the same
as of `providers.framing.parse_sse.SSEParser`; the events have no name.
"""

from collections.abc import Iterator

from providers.framing.parse_sse import MAX_EVENT, EventTooLarge


class NDJSONParser:
    """Splits chunks of any size into complete lines, without blank lines. Each stream has its own parser.

    `_rest` is the line whose end has not arrived. It only grows in place, so that a long line in small chunks costs
    linear time.
    """

    __slots__ = ("_cap", "_rest")

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._cap = cap
        self._rest = bytearray()

    def only(self, chunk: bytes) -> tuple[str, bytes] | None:
        """Return the line of a chunk that is exactly one line, if no earlier line is pending. For any other chunk
        return `None`, and do not consume it."""
        end = len(chunk) - 1
        if chunk.find(b"\n") != end or self._rest or end > self._cap:
            return None
        line = chunk.strip()
        return ("", line) if line else None

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the lines that `chunk` completes, in order. Raises EventTooLarge."""
        *lines, tail = chunk.split(b"\n")
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
        """Yield the last line if the body ended without its line feed."""
        line = bytes(self._rest).strip()
        self._rest.clear()
        if line:
            yield "", line

    def _check_cap(self, size: int) -> None:
        if size > self._cap:
            raise EventTooLarge(f"an event of more than {self._cap} bytes")
