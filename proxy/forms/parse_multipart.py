"""Parses `multipart/form-data`: pieces of bytes in, heads and contents of parts out, whatever the cuts.

Contents come out byte for byte, heads as `part_heads` reads them. Source: RFC 2046, 5.1; RFC 7578.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from proxy.forms.part_heads import BadHead, PartHead, read_head

MAX_HEAD: Final = 4096
"""Bytes of the header lines of one part; browsers and SDKs send about 150."""

MAX_PARTS: Final = 128
"""Parts of one form. OpenAI's transcriptions have nine fields, of which some may be repeated."""


class NotMultipart(ValueError):
    """Bytes that are no acceptable form. The message is a predicate, such as "ends within a part"."""


class _State(Enum):
    DELIMITER = auto()
    HEAD = auto()
    CONTENT = auto()
    END = auto()


class MultipartParser:
    """Parses one form. What it holds back is shorter than the longest head and delimiter together."""

    def __init__(self, boundary: str) -> None:
        self._delimiter = b"\r\n--" + boundary.encode("ascii", "replace")
        # The first delimiter may begin the body.
        self._held = b"\r\n"
        self._state = _State.DELIMITER
        self._parts = 0
        # The end of a head's last line stands before its part's content, and may begin the next delimiter.
        self._skip = 0

    @property
    def complete(self) -> bool:
        """Whether the last delimiter has come; what follows it means nothing."""
        return self._state is _State.END

    def feed(self, data: bytes) -> Iterator[PartHead | bytes]:
        """Yield the head of each part, and after it the pieces of its content. Raises NotMultipart."""
        self._held += data
        going = True
        while going:
            match self._state:
                case _State.DELIMITER:
                    going = self._pass_delimiter()
                case _State.HEAD:
                    head = self._take_head()
                    going = head is not None
                    if head is not None:
                        yield head
                case _State.CONTENT:
                    going, content = self._take_content()
                    if content:
                        yield content
                case _State.END:
                    self._held, going = b"", False

    def _pass_delimiter(self) -> bool:
        """Pass the line of a delimiter, with what stands before it; returns whether it is whole."""
        start = self._held.find(self._delimiter)
        if start < 0:
            # A preamble is nothing that a form has, but RFC 2046 allows one.
            self._held = self._held[-len(self._delimiter) :]
            return False
        rest = start + len(self._delimiter)
        if self._held.startswith(b"--", rest):
            self._state = _State.END
            return True
        line_end = self._held.find(b"\r\n", rest)
        begun = line_end < 0
        padding = self._held[rest : None if begun else line_end].strip(b" \t")
        if b"\n" in padding:
            raise NotMultipart("has a boundary whose line ends in a bare line feed")
        if padding not in ((b"", b"-", b"\r") if begun else (b"",)) or (begun and len(self._held) - rest > MAX_HEAD):
            raise NotMultipart("has a line that begins like its boundary and goes on differently")
        if begun:
            self._held = self._held[start:]
            return False
        # The line's end may be that of the empty line after a head without lines.
        self._held = self._held[line_end:]
        self._state = _State.HEAD
        return True

    def _take_head(self) -> PartHead | None:
        end = self._held.find(b"\r\n\r\n")
        if end > MAX_HEAD or (end < 0 and len(self._held) > MAX_HEAD + 4):
            raise NotMultipart(f"has a part with more than {MAX_HEAD} bytes of headers")
        if end < 0:
            return None
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise NotMultipart(f"has more than {MAX_PARTS} parts")
        try:
            head = read_head(self._held[2:end])
        except BadHead as bad:
            raise NotMultipart(f"is no form that is taken: its part {self._parts} {bad}") from None
        # The content may be empty: its delimiter then begins with the end of the head.
        self._held = self._held[end + 2 :]
        self._state = _State.CONTENT
        self._skip = 2
        return head

    def _take_content(self) -> tuple[bool, bytes]:
        """Return whether the part has ended, and the next piece of its content."""
        start = self._held.find(self._delimiter)
        if start < 0:
            kept = len(self._delimiter) - 1
            if len(self._held) - kept <= self._skip:
                return False, b""
            content, self._held = self._held[self._skip : -kept], self._held[-kept:]
            self._skip = 0
            return False, content
        content, self._held = self._held[self._skip : start], self._held[start:]
        self._state = _State.DELIMITER
        return True, content
