"""The file of the payload log: complete lines, each in one write, readable only by its owner, rotated by size.

Several processes may write to one file. Each holds a lock on it (flock) while it writes or rotates, and checks whether
the file is still the one at its path.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

OWNER_ONLY: Final = 0o600
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

MOST_TRIES: Final = 100
"""The most rotations by other processes that one line waits for."""


class PayloadFile:
    """A file that lines are added to. When it has `rotate` bytes or more, a new file is begun. The latest `keep`
    earlier files remain."""

    def __init__(self, path: Path, rotate: int, keep: int) -> None:
        self._path = path
        self._rotate = rotate
        self._keep = keep
        self._descriptor: int | None = None

    def append(self, line: bytes) -> None:
        """Add a line, completely or not at all. Raises OSError."""
        for _ in range(MOST_TRIES):
            with self._locked() as descriptor:
                size = os.fstat(descriptor).st_size
                if self._is_current(descriptor):
                    if not size or size + len(line) <= self._rotate:
                        _write_whole(descriptor, line, size)
                        return
                    self._begin_new()
            self.close()
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        if self._descriptor is None:
            self._descriptor = _opened(self._path)
        descriptor = self._descriptor
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield descriptor
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _is_current(self, descriptor: int) -> bool:
        here = os.fstat(descriptor)
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)

    def _begin_new(self) -> None:
        """Rename the file and the earlier ones; the next line creates a new file."""
        if not self._keep:
            os.remove(self._path)
            return
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._keep + 1))]
        for older, newer in reversed(list(zip(names[1:], names, strict=False))):
            if newer.exists():
                os.replace(newer, older)


def _opened(path: Path) -> int:
    descriptor = os.open(path, _FLAGS, OWNER_ONLY)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if stat.S_IMODE(mode) & ~OWNER_ONLY:
            os.fchmod(descriptor, OWNER_ONLY)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _write_whole(descriptor: int, line: bytes, size: int) -> None:
    """Write a line to the end of a file of `size` bytes. Raises OSError, and leaves no part of the line behind."""
    left = memoryview(line)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise
