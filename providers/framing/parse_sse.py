"""Parser of server-sent events: it splits chunks of bytes into `(event name, data)` pairs.

It follows the event stream section of the WHATWG HTML standard and accepts the variants that vendors send: LF, CRLF or
CR line ends; `data:` with and without a space; comments; multi-line data; unknown fields; a byte order mark at the
start or later, in streams that were joined; and a line of JSON without its field name. An event above the size limit is
an error, because an endless event would otherwise need an endless buffer.
"""

import re
from collections.abc import Iterator

MAX_EVENT = 16 * 1024 * 1024
"""The maximum size of one event in bytes. This is larger than any image or embedding response seen, and far below a
worker's memory."""

_BOM = b"\xef\xbb\xbf"
_JUNK = b" \t\0\xef\xbb\xbf"
"""Bytes around the field name `data`. By the standard they make it the name of another field, whose value would be lost
silently."""

_LF, _SPACE = b"\n "
_LINE_ENDS = b"\r\n\r\n"
_BEGIN = re.compile(rb"(?:id:[^\r\n]{0,64}\r?\n)?(?:event: ?([^\r\n]{1,64})\r?\n)?data:(?: |(?=[^ \r\n]))")
"""The start of an event whose data are on one line."""


class EventTooLarge(ValueError):
    """An event that exceeds the size limit."""


class SSEParser:
    """Splits chunks of any size into complete events. Each stream has its own parser.

    `_head` holds the stream's first bytes while they may still be a byte order mark, and is `None` after that. `_rest`
    is the line whose end has not arrived. It only grows in place, so that a long line in small chunks costs linear
    time.

    The last event that was exactly one chunk is remembered. `_begin` is the start of that chunk up to its data, with
    the first byte of the data if no space is before it. `_data_at` is the position of its data, and `_name` its name.
    """

    __slots__ = ("_begin", "_cap", "_data", "_data_at", "_event", "_first_bytes", "_name", "_rest", "_skip_lf")

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._cap = cap
        self._first_bytes: bytes | None = b""
        self._rest = bytearray()
        self._data: bytes | bytearray | None = None
        self._event = b""
        self._skip_lf = False
        self._begin, self._data_at, self._name = b"data: ", 6, ""

    def only(self, chunk: bytes) -> tuple[str, bytes] | None:
        """Return the event of a chunk that is exactly one event with its data on one line, if no earlier event is
        pending. For any other chunk return `None`, and do not consume it. Nearly all events are read here."""
        if not chunk.startswith(self._begin) and not self._begins(chunk):
            return None
        start, end = self._data_at, len(chunk) - 2
        last = chunk.find(b"\n", start)
        if last != end:
            end -= 2
            if last != end + 1 or not chunk.endswith(_LINE_ENDS) or chunk.find(b"\r", start) != end:
                return None
        elif chunk[-1] != _LF or chunk.find(b"\r", start) >= 0:
            return None
        if self._rest or self._event or self._first_bytes or self._data is not None or end > self._cap:
            return None
        self._first_bytes, self._skip_lf = None, False
        return self._name, chunk[start:end]

    def _begins(self, chunk: bytes) -> bool:
        """Return whether a chunk begins as an event may, and remember its beginning."""
        found = _BEGIN.match(chunk)
        if found is None:
            return False
        start, name = found.end(), found[1]
        self._begin = chunk[:start] if chunk[start - 1] == _SPACE else chunk[: start + 1]
        self._data_at, self._name = start, "" if name is None else name.strip().decode("utf-8", "replace")
        return True

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the events that `chunk` completes, in order. Raises EventTooLarge."""
        if self._is_one_event(chunk):
            self._first_bytes, self._skip_lf = None, False
            yield "", chunk[6:-2]
            return
        if self._first_bytes is not None:
            chunk = self._without_bom(self._first_bytes + chunk)
        lines = self._with_lf(chunk).split(b"\n")
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
        """Yield the last event if the body ended without its blank line, which some servers omit."""
        if self._rest:
            self._line(bytes(self._rest))
            self._rest.clear()
        if self._data is not None:
            yield self._take(self._data)

    def begun(self, most: int) -> bytes | None:
        """Return the bytes of the next event's first line that have arrived. Return `None` if anything else is pending,
        or if more than `most` bytes have arrived."""
        if self._data is not None or self._event or self._skip_lf or self._first_bytes is not None:
            return None
        return bytes(self._rest) if len(self._rest) <= most else None

    def forget(self) -> None:
        """Discard the arrived bytes of the next event's first line, which the caller has read."""
        self._rest.clear()

    def _is_one_event(self, chunk: bytes) -> bool:
        """Return whether the chunk is exactly one `data: …` line and its blank line, with nothing pending, as most
        chunks are."""
        end = len(chunk) - 2
        return (
            chunk.find(b"\n") == end > 5
            and chunk.startswith(b"data: ")
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
            and self._data is None
            and not (self._rest or self._event or self._first_bytes)
            and end <= self._cap
        )

    def _without_bom(self, start: bytes) -> bytes:
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._first_bytes = start
            return b""
        self._first_bytes = None
        return start.removeprefix(_BOM)

    def _with_lf(self, chunk: bytes) -> bytes:
        """Return the chunk with LF for every line end. A CRLF that is split between two chunks is one line end."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" not in chunk:
            return chunk
        self._skip_lf = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value[1:] if value[:1] == b" " else value
            if self._data is None:
                self._data = value
            else:
                if isinstance(self._data, bytes):
                    self._data = bytearray(self._data)
                # The lines are not collected in a list, because joining millions of empty lines would take 80 bytes for
                # each.
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
        # Line ends are counted too, including the last one.
        data_size = 0 if self._data is None else len(self._data) + 1
        if data_size + unfinished > self._cap:
            raise EventTooLarge(f"an event of more than {self._cap} bytes")

    def _take(self, data: bytes | bytearray) -> tuple[str, bytes]:
        event = self._event.decode("utf-8", "replace") if self._event else ""
        self._data = None
        self._event = b""
        return event, bytes(data)


class DataLines:
    """A parser for servers that end an event with its line and send no blank line. Each `data` line is a complete
    event.

    It is correct for streams whose data are on one line, as JSON without line ends is.
    """

    __slots__ = ("_lines",)

    def __init__(self, cap: int = MAX_EVENT) -> None:
        self._lines = SSEParser(cap)

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the events that `chunk` completes, in order. Raises EventTooLarge."""
        return self._lines.feed(chunk.replace(b"\n", b"\n\n"))

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Yield the last event if the body ended without its line end."""
        return self._lines.finish()
