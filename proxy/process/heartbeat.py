"""The heartbeat of a serving process: the number of ticks of its event loop, and the last request that it began. They
are in memory that can be read without the help of the process.

`proxy.process.freeze_watchdog` uses it to detect a frozen loop.
"""

import mmap
import os
import struct
import tempfile
from typing import Final, Self

from proxy.request_record import RequestRecord

_BEATS: Final = struct.Struct("=Q")

REQUEST_BYTES: Final = 248
"""Bytes of the text about the last request; a longer text is cut."""

MEMORY_BYTES: Final = _BEATS.size + REQUEST_BYTES
"""Bytes of the shared memory: the number of ticks, then the text, padded with zeros."""


class Heartbeat:
    """The writing and the reading end of the shared memory of one process. Only the loop's thread writes."""

    __slots__ = ("_memory", "_written")

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._written = 0

    @classmethod
    def private(cls) -> Self:
        """Return a heartbeat for a reader in the same process."""
        return cls(mmap.mmap(-1, MEMORY_BYTES))

    @classmethod
    def shared(cls, descriptor: int) -> Self:
        """Return a heartbeat on the file of `shared_file`, which another process may also have open."""
        return cls(mmap.mmap(descriptor, MEMORY_BYTES))

    def beat(self) -> None:
        """Count a tick of the loop."""
        self._written += 1
        _BEATS.pack_into(self._memory, 0, self._written)

    def begin(self, record: RequestRecord) -> None:
        """Store the id, path and team of a request that begins. Values of headers, queries and content are never
        stored."""
        text = f"{record.request_id} on {record.path} of team {record.team}".encode("utf-8", "replace")
        self._memory[_BEATS.size :] = text[:REQUEST_BYTES].ljust(REQUEST_BYTES, b"\0")

    @property
    def beats(self) -> int:
        """The number of ticks so far; 0 before the first."""
        return int(_BEATS.unpack_from(self._memory)[0])

    @property
    def last_request(self) -> str:
        """The id, path and team of the last request that began; the text `none` before the first."""
        text = self._memory[_BEATS.size :].rstrip(b"\0").decode("utf-8", "replace")
        return text or "none"


def shared_file() -> int:
    """Return the descriptor of a new file for `Heartbeat.shared`, in memory or without a name. Raises OSError."""
    try:
        descriptor = os.memfd_create("dragoman-pulse")
    except (AttributeError, OSError):  # another system than Linux, or a sandbox
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, MEMORY_BYTES)
    return descriptor
