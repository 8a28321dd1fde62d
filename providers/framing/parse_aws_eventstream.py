"""Parser and writer of Amazon's event stream: binary frames with headers and two checksums.

Sources: botocore 1.44.5 `eventstream.py`, with which tests compare both directions; Smithy's page "Amazon Event Stream
Specification", November 2026.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from zlib import crc32

MAX_HEADERS = 128 * 1024
"""The maximum size of one frame's headers in bytes, as in the vendor's own client."""

MAX_PAYLOAD = 24 * 1024 * 1024
"""The maximum size of one frame's payload in bytes, as in the vendor's own client."""

HeaderValue = bool | int | bytes | str
"""The value of a header. Timestamps are milliseconds since 1970; UUIDs are their 16 bytes."""

_LENGTHS = struct.Struct(">II")
_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_SIZE = struct.Struct(">H")
_FRAME_OVERHEAD = _PRELUDE.size + _CRC.size
_CORRUPT = "a frame that does not match its checksum"

_NUMBER_TYPES: Mapping[int, struct.Struct] = {
    2: struct.Struct(">b"),
    3: struct.Struct(">h"),
    4: struct.Struct(">i"),
    5: struct.Struct(">q"),
    8: struct.Struct(">q"),
}
_TRUE, _FALSE, _BYTES, _STRING, _UUID = 0, 1, 6, 7, 9


class FramingError(ValueError):
    """The bytes are not an event stream, or were corrupted. Nothing after them can be used."""


Frame = tuple[Mapping[str, HeaderValue], bytes]
"""The headers and the payload of one message. Frames that repeat the same headers share one object, which cannot be
changed. It is a bare tuple, which is cheap to make, because nearly every token of a stream comes in a frame of its
own."""


class FrameParser:
    """Splits chunks of any size into complete frames. Each stream has its own parser.

    `_rest` holds the frame whose end has not arrived. It only grows in place, so that a large frame in small chunks
    costs linear time. `_total` is the length of that frame once its prelude has been read, and 0 before.
    """

    __slots__ = ("_rest", "_total")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._total = 0

    @property
    def unfinished(self) -> bool:
        """Whether the last frame is incomplete."""
        return bool(self._rest)

    def only(self, chunk: bytes) -> Frame | None:
        """Return the frame of a chunk that is exactly one frame, if no earlier frame is pending. For any other chunk
        return `None`, and do not consume it. Raises FramingError for a frame that does not match its checksum."""
        size = len(chunk)
        if self._rest or size < _FRAME_OVERHEAD:
            return None
        total, headers, checksum = _PRELUDE.unpack_from(chunk)
        # A frame of this size cannot exceed a limit.
        if total != size or size > MAX_HEADERS or crc32(chunk[:8]) != checksum or total < headers + _FRAME_OVERHEAD:
            return None
        # This does the same as `_frame`. It is inlined, because nearly every token of a stream is read here.
        end, body = size - 4, 12 + headers
        if crc32(chunk[:end]) != int.from_bytes(chunk[end:], "big"):
            raise FramingError(_CORRUPT)
        raw = chunk[12:body]
        return _cached_headers(raw) if headers <= _MAX_CACHED_HEADERS else _headers(raw), chunk[body:end]

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield the frames that `chunk` completes, in order. Raises FramingError."""
        if self._rest:
            self._rest += chunk
            if len(self._rest) < max(self._total, _PRELUDE.size):
                return
            chunk = bytes(self._rest)
            self._rest.clear()
        start, self._total = 0, 0
        while len(chunk) - start >= _PRELUDE.size:
            total, headers = _prelude(chunk, start)
            if len(chunk) - start < total:
                self._total = total
                break
            yield _frame(chunk, start, total, headers)
            start += total
        if start < len(chunk):
            self._rest += memoryview(chunk)[start:]


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
    return _cached_headers(raw) if headers <= _MAX_CACHED_HEADERS else _headers(raw), data[body:end]


_MAX_CACHED_HEADERS = 512
"""The maximum size, in bytes, of headers that are cached. A stream repeats a handful of headers, each below a hundred
bytes."""


@lru_cache(maxsize=128)
def _cached_headers(raw: bytes) -> Mapping[str, HeaderValue]:
    return _headers(raw)


def _headers(raw: bytes) -> Mapping[str, HeaderValue]:
    headers: dict[str, HeaderValue] = {}
    position = 0
    try:
        while position < len(raw):
            encoded, position = _read_bytes(raw, position + 1, raw[position])
            name = encoded.decode()
            if name in headers:
                raise FramingError("a header that occurs twice")
            headers[name], position = _value(raw, position + 1, raw[position])
    except (IndexError, struct.error):
        raise FramingError("a header that is cut short") from None
    except UnicodeDecodeError:
        raise FramingError("a header that is not UTF-8") from None
    return MappingProxyType(headers)


def _value(raw: bytes, position: int, kind: int) -> tuple[HeaderValue, int]:
    """Return a header's value and the position of the next header."""
    if kind in (_BYTES, _STRING):
        (size,) = _SIZE.unpack_from(raw, position)
        value, position = _read_bytes(raw, position + _SIZE.size, size)
        return (value.decode() if kind == _STRING else value), position
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, position
    if kind == _UUID:
        return _read_bytes(raw, position, 16)
    number = _NUMBER_TYPES.get(kind)
    if number is None:
        raise FramingError(f"a header of the unknown type {kind}")
    return number.unpack_from(raw, position)[0], position + number.size


def _read_bytes(raw: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if end > len(raw):
        raise FramingError("a header that is cut short")
    return raw[position:end], end


def encode(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one frame. Names may have at most 255 bytes, values at most 65,535. Raises ValueError."""
    raw = b"".join(_encoded(name.encode(), value.encode()) for name, value in headers.items())
    lengths = _LENGTHS.pack(_FRAME_OVERHEAD + len(raw) + len(payload), len(raw))
    message = lengths + _CRC.pack(crc32(lengths)) + raw + payload
    return message + _CRC.pack(crc32(message))


def _encoded(name: bytes, value: bytes) -> bytes:
    if len(name) > 0xFF or len(value) > 0xFFFF:
        raise ValueError("a header's name or value is too long")
    return bytes((len(name),)) + name + bytes((_STRING,)) + _SIZE.pack(len(value)) + value
