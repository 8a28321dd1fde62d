"""The wire format of Protocol Buffers, as far as exports by OTLP need it: numbers, and fields with a length.

It imports no library, so that the process that writes the payload log may use it. Source: "Protocol Buffers: Encoding"
(protobuf.dev, November 2026): a field begins with its number * 8 + 0 for a varint, 1 for 64 bits, 2 for a field with a
length, 5 for 32 bits.
"""

from typing import Final


def _written(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


LIMIT: Final = 2048
SMALL: Final = tuple(map(_written, range(LIMIT)))
"""The encoded numbers below LIMIT, for code that writes so many that calling `varint` for each would cost too much."""

_WHOLE: Final = 2**64


def varint(value: int) -> bytes:
    """Return an integer as seven bits a byte; a negative one as 64 bits of two's complement."""
    return SMALL[value] if 0 <= value < LIMIT else _written(value % _WHOLE)


def field(tag: bytes, body: bytes) -> bytes:
    """Return a field with its length."""
    return tag + varint(len(body)) + body
