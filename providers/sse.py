"""Server-sent events: bytes in, `(event name, data)` pairs out, whatever the cuts.

Never knows JSON or a dialect.

Tolerates what vendors send (LF, CRLF or CR line ends, `data:` with and without a space, comments, multi-line data, unknown
fields) after the WHATWG HTML standard's event stream section; an event that grows past the cap is an error, because an
endless event would otherwise be an endless buffer.
"""

from collections.abc import Iterator

MAX_EVENT = 16 * 1024 * 1024
"""Bytes of one event; larger than any image or embedding answer seen, far below a worker's memory."""


class EventTooLarge(ValueError):
    """One event passed the cap."""


class SSEParser:
    """Incremental splitter; feed it pieces, get whole events. One per stream."""

    __slots__ = ("_cap", "_data", "_event", "_rest", "_size", "_skip_lf")

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._cap = cap
        self._rest = b""
        self._data: list[bytes] = []
        self._event = b""
        self._size = 0
        self._skip_lf = False

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Events completed by `piece`, in order. Raises EventTooLarge."""
        if self._skip_lf and piece[:1] == b"\n":
            piece = piece[1:]
        self._skip_lf = False
        if not self._rest and not self._data and b"\r" not in piece and piece[-2:] == b"\n\n":
            block: list[bytes] = piece.split(b"\n")
        else:
            buffer = self._rest + piece
            if b"\r" in buffer:
                self._skip_lf = buffer[-1:] == b"\r"
                buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            block = buffer.split(b"\n")
        self._rest = block.pop()
        for line in block:
            if not line:
                if self._data:
                    yield self._take()
                else:
                    self._event = b""
                continue
            self._line(line)
        if len(self._rest) + self._size > self._cap:
            raise EventTooLarge(f"an event of more than {self._cap} bytes")

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """The body ended: an event whose blank line never came still counts, since some servers omit the last one."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        if self._data:
            yield self._take()

    def _line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value[1:] if value[:1] == b" " else value
            self._data.append(value)
            self._size += len(value)
        elif name == b"event":
            self._event = value.strip()

    def _take(self) -> tuple[str, bytes]:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        event = self._event.decode("utf-8", "replace") if self._event else ""
        self._data = []
        self._event = b""
        self._size = 0
        return event, data
