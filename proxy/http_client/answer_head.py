"""Rules for the head of a vendor's response that are stricter than llhttp's: its size limits and the framing of the
body.

Limits: 8 KiB for a value and 256 bytes for its name in each line, 128 fields, 64 KiB in total.
"""

import re
from typing import Final

HEAD_LIMIT: Final = 64 * 1024
LINE_LIMIT: Final = 8192 + 256
FIELD_LIMIT: Final = 128

LENGTH: Final = b"\r\ncontent-length:"
CODING: Final = b"\r\ntransfer-encoding:"

_FINAL: Final = (b"HTTP/1.1 ", b"HTTP/1.0 ")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n")
_IDENTITY: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*identity[ \t]*\r\n")


def within_limits(head: bytes) -> bool:
    """Return whether a head that llhttp accepts is within the size limits, and is the head of a final response in
    HTTP/1.0 or 1.1."""
    return (
        head.startswith(_FINAL)
        and head[9:10] >= b"2"
        and len(head) <= HEAD_LIMIT
        and head.count(b"\r\n") <= FIELD_LIMIT + 2
        and (len(head) <= LINE_LIMIT or max(map(len, head.split(b"\r\n"))) <= LINE_LIMIT)
    )


def is_uncoded(lines: bytes) -> bool:
    """Return whether a head in lower case names the transfer coding `identity`, as old servers do (RFC 2616, 3.6). The
    body then ends with the connection. With a Content-Length as well, the end of the body would be ambiguous."""
    return lines.count(CODING) == 1 and LENGTH not in lines and _IDENTITY.search(lines) is not None


def plainly_chunked(lines: bytes) -> bool:
    """Return whether the only transfer coding in a head in lower case is `chunked`, since no other coding was requested
    (RFC 9112, 6.1 and 7.4)."""
    return lines.count(CODING) == 1 and _CHUNKED.search(lines) is not None
