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
"""The encoded numbers below LIMIT. They are for code that writes so many numbers that calling `varint` for each one
would cost too much time."""

_WHOLE: Final = 2**64


def varint(value: int) -> bytes:
    """Return an integer encoded with seven bits in each byte. A negative integer is encoded as 64 bits of two's
    complement."""
    return SMALL[value] if 0 <= value < LIMIT else _written(value % _WHOLE)


def field(tag: bytes, body: bytes) -> bytes:
    """Return a field: its tag, the length of its body, and its body."""
    return tag + varint(len(body)) + body
