"""Read the lines of a file or of standard input. A file that grows, is rotated or is truncated can be followed.

Lines are yielded in batches, as they arrive. Lines longer than MAX_LINE are cut.
"""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proxy.cli.terminal import CommandError

MAX_LINE: Final = 1024 * 1024
"""The maximum bytes of a line. The gateway's own log lines have at most 4096 bytes. Entries of the payload log have as
many as the configuration allows."""

READ_BYTES: Final = 64 * 1024
POLL_SECONDS: Final = 0.25
"""The most bytes of one read, and the seconds between two checks of a file that does not grow."""

FIRST_LINES: Final = 10
"""The number of existing lines that are shown when a file is followed from its end."""

Batch = list[bytes]


@dataclass(slots=True)
class LineSplitter:
    """Splits bytes into lines without their newlines."""

    _rest: bytearray = field(default_factory=bytearray)
    _omitted: int = 0

    def feed(self, data: bytes) -> Batch:
        """Return the lines that these bytes complete."""
        *ends, rest = data.split(b"\n")
        # A line between the first and the last newline is complete and no longer than one read, so it need not be cut.
        lines = [self._completed(end) for end in ends[:1]] + ends[1:]
        self._keep(rest)
        return lines

    def end(self) -> Batch:
        """Return the last line if it has no newline."""
        return [self._completed(b"")] if self._rest else []

    def _keep(self, data: bytes) -> None:
        kept = data[: MAX_LINE - len(self._rest)]
        self._rest += kept
        self._omitted += len(data) - len(kept)

    def _completed(self, data: bytes) -> bytes:
        self._keep(data)
        line = bytes(self._rest)
        if self._omitted:
            line += f"... [{self._omitted} bytes more]".encode()
        self._rest.clear()
        self._omitted = 0
        return line


def pause() -> None:
    """Wait before the next check of a file."""
    time.sleep(POLL_SECONDS)


def read_input() -> Iterator[Batch]:
    """Yield the lines of standard input until it ends. Raises CommandError if it is closed or a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        raise CommandError("name the log's file, or pipe the log in: dragoman serve | dragoman logs")
    yield from _to_end(sys.stdin.fileno())


def read_whole(path: Path) -> Iterator[Batch]:
    """Yield the lines of a file. Raises CommandError if it cannot be read."""
    descriptor = _opened(path)
    try:
        yield from _to_end(descriptor)
    finally:
        os.close(descriptor)


def follow_all(path: Path, wait: Callable[[], None] = pause) -> Iterator[Batch]:
    """Yield the lines of a file, and forever the lines that are added. Raises CommandError if it cannot be read."""
    descriptor = _opened(path)
    yield from _follow(path, descriptor, wait)


def follow_end(path: Path, wait: Callable[[], None] = pause) -> Iterator[Batch]:
    """Do the same as `follow_all`, but begin with the last FIRST_LINES lines of the file."""
    descriptor = _opened(path)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        start = max(0, os.fstat(descriptor).st_size - READ_BYTES)
        last = os.pread(descriptor, READ_BYTES, start).split(b"\n")
        whole = last[:-1] if start == 0 else last[1:-1]
        shown = whole[-FIRST_LINES:]
        os.lseek(descriptor, start + sum(len(line) + 1 for line in last[:-1]), os.SEEK_SET)
        yield shown
    yield from _follow(path, descriptor, wait)


def _opened(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CommandError(f"cannot read {path}: it is a folder")
    return descriptor


def _to_end(descriptor: int) -> Iterator[Batch]:
    lines = LineSplitter()
    while data := os.read(descriptor, READ_BYTES):
        yield lines.feed(data)
    yield lines.end()


def _follow(path: Path, descriptor: int, wait: Callable[[], None]) -> Iterator[Batch]:
    lines = LineSplitter()
    try:
        while True:
            if data := os.read(descriptor, READ_BYTES):
                yield lines.feed(data)
                continue
            newer = _newer(path, descriptor)
            if newer is None:
                wait()
                continue
            # Read the lines that were written between the last read and the rotation.
            while data := os.read(descriptor, READ_BYTES):
                yield lines.feed(data)
            yield lines.end()
            os.close(descriptor)
            descriptor = newer
    finally:
        os.close(descriptor)


def _newer(path: Path, descriptor: int) -> int | None:
    """Return a descriptor of the file that is now at the path, from its start. It is another file after a rotation, or
    the same one after it was truncated. Return `None` if neither happened, or if there is no file yet."""
    try:
        there, here = path.stat(), os.fstat(descriptor)
        another = (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)
        if another or (stat.S_ISREG(here.st_mode) and here.st_size < os.lseek(descriptor, 0, os.SEEK_CUR)):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    return None
