"""Entries of the answer cache as they are kept: sealed, with the time at which they were made. Pure.

The seal is a keyed hash over the entry's key, its time and its data. What was changed, moved to another key, cut, or
written by somebody without the secret, does not open.
"""

import math
import struct
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

_SEAL: Final = 16
_TIME: Final = struct.Struct(">d")
_DATA: Final = _SEAL + _TIME.size

AHEAD: Final = 5.0
"""Seconds by which the clock that made an entry may be ahead of the one that reads it."""


def seal(secret: bytes, key: str, made: float, data: bytes) -> bytes:
    """Return an entry that was made at `made`, in unix seconds."""
    rest = _TIME.pack(made) + data
    return _hash(secret, key, rest) + rest


def open_sealed(secret: bytes, key: str, entry: bytes, most: int) -> tuple[float, bytes] | None:
    """Return when an entry was made, and its data; None for one that is not sealed, or whose data exceed `most`."""
    if not _DATA <= len(entry) <= _DATA + most:
        return None
    told, rest = entry[:_SEAL], entry[_SEAL:]
    if not compare_digest(told, _hash(secret, key, rest)):
        return None
    return _TIME.unpack_from(rest)[0], rest[_TIME.size :]


def age_at(made: float, now: float) -> float:
    """Return the age of an entry in seconds; infinite where it was made in the future, since a clock was set back."""
    age = now - made
    return math.inf if age < -AHEAD else max(age, 0.0)


def _hash(secret: bytes, key: str, rest: bytes) -> bytes:
    return blake2b(rest, digest_size=_SEAL, key=secret, person=b"answer", salt=bytes.fromhex(key[:32])).digest()
