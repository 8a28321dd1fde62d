"""Parses server-sent events: pieces of bytes in, `(event name, data)` pairs out.

Accepts what vendors send (LF, CRLF or CR line ends, `data:` with and without a space, comments, multi-line data,
unknown fields, a byte order mark at the start, and where streams were put together also later, a line of JSON without
its field's name) after the WHATWG HTML standard's event stream section; an event that
grows past the cap is an error, because an endless event would otherwise be an endless buffer.
"""

import re
from collections.abc import Iterator

MAX_EVENT = 16 * 1024 * 1024
"""The most bytes of one event; larger than any image or embedding answer seen, far below a worker's memory."""

_BOM = b"\xef\xbb\xbf"
_JUNK = b" \t\0\xef\xbb\xbf"
"""Bytes around the name `data` that make it another field by the standard: what it holds would be lost without a word.
"""

_LF, _SPACE = b"\n "
_LINE_ENDS = b"\r\n\r\n"
_BEGIN = re.compile(rb"(?:id:[^\r\n]{0,64}\r?\n)?(?:event: ?([^\r\n]{1,64})\r?\n)?data:(?: |(?=[^ \r\n]))")
"""How an event with its data on one line begins."""


class EventTooLarge(ValueError):
    """One event exceeded the cap."""


class SSEParser:
    """Splits pieces of any size into whole events. One per stream.

    `_head` holds the stream's first bytes while they may still be a byte order mark, None after that. `_rest` is the
    line whose end has not arrived; it only ever grows in place, so that a long line in small pieces costs linear time.
    `_begin` is how the last event that was a piece of its own began, with the first byte of the data where no space is
    before it, `_data_at` where its data did, and `_name` its name.
    """

    __slots__ = ("_begin", "_cap", "_data", "_data_at", "_event", "_head", "_name", "_rest", "_skip_lf")

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._cap = cap
        self._head: bytes | None = b""
        self._rest = bytearray()
        self._data: bytes | bytearray | None = None
        self._event = b""
        self._skip_lf = False
        self._begin, self._data_at, self._name = b"data: ", 6, ""

    def only(self, piece: bytes) -> tuple[str, bytes] | None:
        """Return the event of a piece that is exactly one with its data on one line, where nothing of another is
        pending; None for every other piece, which is unread then. Nearly all events come this way."""
        if not piece.startswith(self._begin) and not self._begins(piece):
            return None
        start, end = self._data_at, len(piece) - 2
        last = piece.find(b"\n", start)
        if last != end:
            end -= 2
            if last != end + 1 or not piece.endswith(_LINE_ENDS) or piece.find(b"\r", start) != end:
                return None
        elif piece[-1] != _LF or piece.find(b"\r", start) >= 0:
            return None
        if self._rest or self._event or self._head or self._data is not None or end > self._cap:
            return None
        self._head, self._skip_lf = None, False
        return self._name, piece[start:end]

    def _begins(self, piece: bytes) -> bool:
        """Return whether a piece begins as an event may, and learn it."""
        found = _BEGIN.match(piece)
        if found is None:
            return False
        start, name = found.end(), found[1]
        self._begin = piece[:start] if piece[start - 1] == _SPACE else piece[: start + 1]
        self._data_at, self._name = start, "" if name is None else name.strip().decode("utf-8", "replace")
        return True

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Return the events completed by `piece`, in order. Raises EventTooLarge."""
        if self._is_one_event(piece):
            self._head, self._skip_lf = None, False
            yield "", piece[6:-2]
            return
        if self._head is not None:
            piece = self._without_mark(self._head + piece)
        lines = self._unified(piece).split(b"\n")
        tail = lines.pop()
        if lines and self._rest:
            self._rest += lines[0]
            lines[0] = bytes(self._rest)
            self._rest.clear()
        for line in lines:
            if line:
                self._line(line)
            elif self._data is not None:
                yield self._take(self._data)
            else:
                self._event = b""
        if tail:
            self._rest += tail
            self._check_cap(len(self._rest))

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Return the last event, when the body ended without its blank line, which some servers omit."""
        if self._rest:
            self._line(bytes(self._rest))
            self._rest.clear()
        if self._data is not None:
            yield self._take(self._data)

    def begun(self, most: int) -> bytes | None:
        """Return what has come of the next event's first line; None where anything else is pending, or more than `most`
        bytes of it."""
        if self._data is not None or self._event or self._skip_lf or self._head is not None:
            return None
        return bytes(self._rest) if len(self._rest) <= most else None

    def forget(self) -> None:
        """Leave out what has come of the next event's first line: somebody else has read it."""
        self._rest.clear()

    def _is_one_event(self, piece: bytes) -> bool:
        """Return whether the piece is exactly one `data: …` and its blank line, with nothing pending, as most pieces
        are."""
        end = len(piece) - 2
        return (
            piece.find(b"\n") == end > 5
            and piece.startswith(b"data: ")
            and piece.endswith(b"\n\n")
            and b"\r" not in piece
            and self._data is None
            and not (self._rest or self._event or self._head)
            and end <= self._cap
        )

    def _without_mark(self, start: bytes) -> bytes:
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._head = start
            return b""
        self._head = None
        return start.removeprefix(_BOM)

    def _unified(self, piece: bytes) -> bytes:
        """Return the piece with LF for every line end; a CRLF cut in two is one end."""
        if self._skip_lf and piece:
            self._skip_lf = False
            piece = piece.removeprefix(b"\n")
        if b"\r" not in piece:
            return piece
        self._skip_lf = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value[1:] if value[:1] == b" " else value
            if self._data is None:
                self._data = value
            else:
                if isinstance(self._data, bytes):
                    self._data = bytearray(self._data)
                # Not a list: to join millions of empty lines takes 80 bytes for each.
                self._data += b"\n"
                self._data += value
            self._check_cap(0)
        elif name == b"event":
            self._event = value.strip()
        elif line[:1] == b"{":
            self._line(b"data:" + line)
        elif name and name.strip(_JUNK).lower() == b"data":
            self._line(b"data:" + value)

    def _check_cap(self, unfinished: int) -> None:
        # With the end of each line, also the last one's.
        held = 0 if self._data is None else len(self._data) + 1
        if held + unfinished > self._cap:
            raise EventTooLarge(f"an event of more than {self._cap} bytes")

    def _take(self, data: bytes | bytearray) -> tuple[str, bytes]:
        event = self._event.decode("utf-8", "replace") if self._event else ""
        self._data = None
        self._event = b""
        return event, bytes(data)


class DataLines:
    """A parser for servers that end an event with its line and send no blank one: each `data` line is a whole event.

    Right for every stream whose data is on one line, as JSON without line ends is.
    """

    __slots__ = ("_lines",)

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._lines = SSEParser(cap)

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Return the events completed by `piece`, in order. Raises EventTooLarge."""
        return self._lines.feed(piece.replace(b"\n", b"\n\n"))

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Return the last event, when the body ended without its line end."""
        return self._lines.finish()
