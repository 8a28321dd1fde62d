"""The heartbeat of a serving process: how often its event loop has ticked and the last request it began, in memory that
is read without the process's help.

`proxy.process.freeze_watchdog` decides by it that a loop is frozen.
"""

import mmap
import os
import struct
import tempfile
from typing import Final, Self

from proxy.request_record import RequestRecord

_BEATS: Final = struct.Struct("=Q")

REQUEST: Final = 248
"""Bytes of the text about the last request; a longer one is cut."""

SIZE: Final = _BEATS.size + REQUEST
"""Bytes of the shared memory: the number of ticks, then the text, filled up with zeros."""


class Heartbeat:
    """The writing and the reading end of one process's shared memory. The only writer is the loop's thread."""

    __slots__ = ("_memory", "_written")

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._written = 0

    @classmethod
    def private(cls) -> Self:
        """Make one for a reader in the same process."""
        return cls(mmap.mmap(-1, SIZE))

    @classmethod
    def shared(cls, descriptor: int) -> Self:
        """Make one on the file of `shared_file`, which another process may have open too."""
        return cls(mmap.mmap(descriptor, SIZE))

    def beat(self) -> None:
        """Count a tick of the loop."""
        self._written += 1
        _BEATS.pack_into(self._memory, 0, self._written)

    def begin(self, record: RequestRecord) -> None:
        """Note the id, path and team of a request that begins. Never a header's value, a query or content."""
        text = f"{record.request_id} on {record.path} of team {record.team}".encode("utf-8", "replace")
        self._memory[_BEATS.size :] = text[:REQUEST].ljust(REQUEST, b"\0")

    @property
    def beats(self) -> int:
        """Ticks so far; 0 before the first."""
        return int(_BEATS.unpack_from(self._memory)[0])

    @property
    def last_request(self) -> str:
        """Id, path and team of the last request begun; `none` before the first."""
        text = self._memory[_BEATS.size :].rstrip(b"\0").decode("utf-8", "replace")
        return text or "none"


def shared_file() -> int:
    """Return the descriptor of a new file for `Heartbeat.shared`: in memory or without a name. Raises OSError."""
    try:
        descriptor = os.memfd_create("dragoman-pulse")
    except (AttributeError, OSError):  # another system than Linux, or a sandbox
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, SIZE)
    return descriptor
