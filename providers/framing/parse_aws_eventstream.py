"""Parses and writes Amazon's event stream: binary frames with headers and two checksums.

Sources: botocore 1.44.5 `eventstream.py`, with which tests compare both directions; Smithy's page "Amazon Event Stream
Specification", November 2026.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from zlib import crc32

MAX_HEADERS = 128 * 1024
"""The most bytes of one frame's headers, as in the vendor's own client."""

MAX_PAYLOAD = 24 * 1024 * 1024
"""The most bytes of one frame's payload, as in the vendor's own client."""

HeaderValue = bool | int | bytes | str
"""Timestamps are milliseconds since 1970, and UUIDs their 16 bytes."""

_LENGTHS = struct.Struct(">II")
_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_SIZE = struct.Struct(">H")
_FRAME_OVERHEAD = _PRELUDE.size + _CRC.size
_CORRUPT = "a frame that does not match its checksum"

_NUMBERS: Mapping[int, struct.Struct] = {
    2: struct.Struct(">b"),
    3: struct.Struct(">h"),
    4: struct.Struct(">i"),
    5: struct.Struct(">q"),
    8: struct.Struct(">q"),
}
_TRUE, _FALSE, _BYTES, _STRING, _UUID = 0, 1, 6, 7, 9


class FramingError(ValueError):
    """The bytes are no event stream, or were corrupted; nothing after them can be used."""


Frame = tuple[Mapping[str, HeaderValue], bytes]
"""Headers and payload of one message; the headers are the same object in frames that repeat them, and cannot be
changed. A bare tuple, since nearly every token of a stream comes in a frame of its own."""


class FrameParser:
    """Splits pieces of any size into whole frames. One per stream.

    `_rest` holds the frame whose end has not arrived. It only ever grows in place, so that a large frame in small
    pieces costs linear time; `_total` is that frame's length once its prelude was read, 0 before.
    """

    __slots__ = ("_rest", "_total")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._total = 0

    @property
    def unfinished(self) -> bool:
        """Whether the last frame is incomplete."""
        return bool(self._rest)

    def only(self, piece: bytes) -> Frame | None:
        """Return the frame of a piece that is exactly one, where nothing of another is pending; None for every other
        piece, which is unread then. Raises FramingError for a frame that does not match its checksum."""
        size = len(piece)
        if self._rest or size < _FRAME_OVERHEAD:
            return None
        total, headers, checksum = _PRELUDE.unpack_from(piece)
        # A frame this small can exceed no limit.
        if total != size or size > MAX_HEADERS or crc32(piece[:8]) != checksum or total < headers + _FRAME_OVERHEAD:
            return None
        # As `_frame`, without its call: nearly every token of a stream passes here.
        end, body = size - 4, 12 + headers
        if crc32(piece[:end]) != int.from_bytes(piece[end:], "big"):
            raise FramingError(_CORRUPT)
        raw = piece[12:body]
        return _known_headers(raw) if headers <= _SMALL else _headers(raw), piece[body:end]

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Return the frames completed by `piece`, in order. Raises FramingError."""
        if self._rest:
            self._rest += piece
            if len(self._rest) < max(self._total, _PRELUDE.size):
                return
            piece = bytes(self._rest)
            self._rest.clear()
        start, self._total = 0, 0
        while len(piece) - start >= _PRELUDE.size:
            total, headers = _prelude(piece, start)
            if len(piece) - start < total:
                self._total = total
                break
            yield _frame(piece, start, total, headers)
            start += total
        if start < len(piece):
            self._rest += memoryview(piece)[start:]


def _prelude(data: bytes, start: int) -> tuple[int, int]:
    """Return the lengths of a frame and of its headers."""
    total, headers, checksum = _PRELUDE.unpack_from(data, start)
    if crc32(data[start : start + _LENGTHS.size]) != checksum:
        raise FramingError("a frame whose lengths do not match their checksum")
    if headers > MAX_HEADERS:
        raise FramingError(f"a frame with more than {MAX_HEADERS} bytes of headers")
    if total - headers - _FRAME_OVERHEAD > MAX_PAYLOAD:
        raise FramingError(f"a frame with more than {MAX_PAYLOAD} bytes of payload")
    if total < headers + _FRAME_OVERHEAD:
        raise FramingError("a frame that is shorter than its headers")
    return total, headers


def _frame(data: bytes, start: int, total: int, headers: int) -> Frame:
    first, end = start + _PRELUDE.size, start + total - _CRC.size
    (checksum,) = _CRC.unpack_from(data, end)
    if crc32(data[start:end]) != checksum:
        raise FramingError(_CORRUPT)
    body = first + headers
    raw = data[first:body]
    return _known_headers(raw) if headers <= _SMALL else _headers(raw), data[body:end]


_SMALL = 512
"""The most bytes of headers that are cached: a stream repeats a handful of them, each below a hundred bytes."""


@lru_cache(maxsize=128)
def _known_headers(raw: bytes) -> Mapping[str, HeaderValue]:
    return _headers(raw)


def _headers(raw: bytes) -> Mapping[str, HeaderValue]:
    headers: dict[str, HeaderValue] = {}
    at = 0
    try:
        while at < len(raw):
            encoded, at = _taken(raw, at + 1, raw[at])
            name = encoded.decode()
            if name in headers:
                raise FramingError("a header that is there twice")
            headers[name], at = _value(raw, at + 1, raw[at])
    except (IndexError, struct.error):
        raise FramingError("a header that is cut short") from None
    except UnicodeDecodeError:
        raise FramingError("a header that is not UTF-8") from None
    return MappingProxyType(headers)


def _value(raw: bytes, at: int, kind: int) -> tuple[HeaderValue, int]:
    """Return a header's value and where the next header begins."""
    if kind in (_BYTES, _STRING):
        (size,) = _SIZE.unpack_from(raw, at)
        value, at = _taken(raw, at + _SIZE.size, size)
        return (value.decode() if kind == _STRING else value), at
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind == _UUID:
        return _taken(raw, at, 16)
    number = _NUMBERS.get(kind)
    if number is None:
        raise FramingError(f"a header of the unknown type {kind}")
    return number.unpack_from(raw, at)[0], at + number.size


def _taken(raw: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(raw):
        raise FramingError("a header that is cut short")
    return raw[at:end], end


def encode(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one frame; names of at most 255 bytes, values of at most 65,535. Raises ValueError."""
    raw = b"".join(_encoded(name.encode(), value.encode()) for name, value in headers.items())
    lengths = _LENGTHS.pack(_FRAME_OVERHEAD + len(raw) + len(payload), len(raw))
    message = lengths + _CRC.pack(crc32(lengths)) + raw + payload
    return message + _CRC.pack(crc32(message))


def _encoded(name: bytes, value: bytes) -> bytes:
    if len(name) > 0xFF or len(value) > 0xFFFF:
        raise ValueError("a header's name or value is too long")
    return bytes((len(name),)) + name + bytes((_STRING,)) + _SIZE.pack(len(value)) + value
