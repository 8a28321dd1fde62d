"""Parse `multipart/form-data` incrementally: chunks of bytes go in; heads and contents of parts come out. Chunk
boundaries do not matter.

Contents come out byte for byte. Heads are read by `part_heads`. Source: RFC 2046, 5.1; RFC 7578.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from proxy.forms.part_heads import BadHead, PartHead, read_head

MAX_HEAD: Final = 4096
"""The maximum bytes of the header lines of one part. Browsers and SDKs send about 150."""

MAX_PARTS: Final = 128
"""The maximum number of parts of one form. OpenAI's transcriptions have nine fields, some of which may be repeated."""


class NotMultipart(ValueError):
    """The bytes are not an acceptable form. The message is a predicate, such as "ends within a part"."""


class _State(Enum):
    DELIMITER = auto()
    HEAD = auto()
    CONTENT = auto()
    END = auto()


class MultipartParser:
    """Parses one form. It buffers at most the longest head and one delimiter."""

    def __init__(self, boundary: str) -> None:
        self._delimiter = b"\r\n--" + boundary.encode("ascii", "replace")
        # The body may begin with the first delimiter.
        self._held = b"\r\n"
        self._state = _State.DELIMITER
        self._parts = 0
        # The line end of the last header precedes the content, and may be the beginning of the next delimiter.
        self._skip = 0

    @property
    def complete(self) -> bool:
        """Whether the last delimiter has arrived. Bytes after it are ignored."""
        return self._state is _State.END

    def feed(self, data: bytes) -> Iterator[PartHead | bytes]:
        """Yield the head of each part, and then the chunks of its content. Raises NotMultipart."""
        self._held += data
        advanced = True
        while advanced:
            match self._state:
                case _State.DELIMITER:
                    advanced = self._pass_delimiter()
                case _State.HEAD:
                    head = self._take_head()
                    advanced = head is not None
                    if head is not None:
                        yield head
                case _State.CONTENT:
                    advanced, content = self._take_content()
                    if content:
                        yield content
                case _State.END:
                    self._held, advanced = b"", False

    def _pass_delimiter(self) -> bool:
        """Consume the line of a delimiter and everything before it. Return whether the line is complete."""
        start = self._held.find(self._delimiter)
        if start < 0:
            # RFC 2046 permits a preamble. A form has none, so it is discarded.
            self._held = self._held[-len(self._delimiter) :]
            return False
        rest = start + len(self._delimiter)
        if self._held.startswith(b"--", rest):
            self._state = _State.END
            return True
        line_end = self._held.find(b"\r\n", rest)
        incomplete = line_end < 0
        padding = self._held[rest : None if incomplete else line_end].strip(b" \t")
        if b"\n" in padding:
            raise NotMultipart("has a boundary whose line ends in a bare line feed")
        if padding not in ((b"", b"-", b"\r") if incomplete else (b"",)) or (
            incomplete and len(self._held) - rest > MAX_HEAD
        ):
            raise NotMultipart("has a line that begins like its boundary and goes on differently")
        if incomplete:
            self._held = self._held[start:]
            return False
        # The line end may also be the empty line that ends a head without lines.
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
            raise NotMultipart(f"is not an acceptable form: its part {self._parts} {bad}") from None
        # The content may be empty. Its delimiter then begins with the line end of the head.
        self._held = self._held[end + 2 :]
        self._state = _State.CONTENT
        self._skip = 2
        return head

    def _take_content(self) -> tuple[bool, bytes]:
        """Return whether the part has ended, and the next chunk of its content."""
        start = self._held.find(self._delimiter)
        if start < 0:
            overlap = len(self._delimiter) - 1
            if len(self._held) - overlap <= self._skip:
                return False, b""
            content, self._held = self._held[self._skip : -overlap], self._held[-overlap:]
            self._skip = 0
            return False, content
        content, self._held = self._held[self._skip : start], self._held[start:]
        self._state = _State.DELIMITER
        return True, content
