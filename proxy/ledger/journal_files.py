"""The files of the journal: their names, and the locks by which a loader knows that a file is finished.

Each process appends to a file of its own and holds a lock on it, which the kernel releases at the process's end,
however it ends. Who gets the lock of a file knows that nobody appends to it any more.
"""

import errno
import fcntl
import os
import re
import time
from pathlib import Path
from typing import Final, NamedTuple

LOADER_LOCK: Final = "loader.lock"
"""Held by the one process that loads the journals of a folder."""

UNREADABLE: Final = "unreadable.lines"
"""Where lines are kept that cannot be read."""

_NAME: Final = re.compile(r"ledger\.([A-Za-z0-9_-]{1,64})\.([0-9]{1,12})\.jsonl", re.ASCII)


class JournalFile(NamedTuple):
    """A file of one process; `number` counts them."""

    process: str
    number: int
    path: Path


def fresh_process_name() -> str:
    """Return a name that no other process of any gateway has: the time, and random digits."""
    return f"{int(time.time()):x}-{os.urandom(5).hex()}"


def journal_file(folder: Path, process: str, number: int) -> JournalFile:
    """Return the file with this number. Raises ValueError where the process's name is no part of a file name."""
    path = folder / f"ledger.{process}.{number}.jsonl"
    if _NAME.fullmatch(path.name) is None:
        raise ValueError(f"{process!r} cannot name a process of the ledger")
    return JournalFile(process, number, path)


def journal_files(folder: Path) -> list[JournalFile]:
    """Return all, those of a process in the order in which they were written; none where there is no folder."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = [(match, name) for name in names if (match := _NAME.fullmatch(name))]
    return sorted(JournalFile(match[1], int(match[2]), folder / name) for match, name in found)


def journal_bytes(folder: Path) -> int:
    """Return the size of all journals together."""
    total = 0
    for each in journal_files(folder):
        try:
            total += each.path.stat().st_size
        except FileNotFoundError:  # loaded meanwhile
            continue
    return total


def locked(descriptor: int) -> bool:
    """Take the lock of an open file if nobody holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def share_lock(descriptor: int) -> None:
    """Hold the lock of a file, which nobody appends to any more, so that `left_behind` still finds it."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def left_behind(folder: Path) -> bool:
    """Return whether there is a file to which nobody appends any more: it has not been loaded yet, or is just being
    loaded. A shared lock that is taken for a moment keeps a loader from it until its next pass, at worst."""
    for each in journal_files(folder):
        try:
            descriptor = os.open(each.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # loaded meanwhile, or somebody else's
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            return True
        finally:
            os.close(descriptor)
    return False


def lock_file(path: Path) -> int | None:
    """Create and lock a file and return its descriptor; None while another process holds it. Closing it, or the
    process's end, releases the lock; the file stays."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if locked(descriptor):
            return descriptor
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def create_locked(folder: Path, process: str, number: int) -> tuple[int, int]:
    """Create the next file of a process, from `number` on, with its lock, and return its descriptor and number."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        path = journal_file(folder, process, number).path
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            number += 1
            continue
        try:
            # A loader may have come between the two calls; it takes the empty file for a finished one and deletes it.
            if locked(descriptor) and os.fstat(descriptor).st_nlink:
                return descriptor, number
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        number += 1
