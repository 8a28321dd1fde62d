"""The files of the journal: their names, and the locks by which a loader knows that a file is finished.

Each process appends to a file of its own and holds a lock on it, which the kernel releases at the process's end,
however it ends. Who gets the lock of a file knows that nobody appends to it any more. While the journals' disk takes
nothing, files are in a folder in memory: the spare folder of the journals, which the same loader reads.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

LOADER_LOCK: Final = "loader.lock"
"""Held by the one process that loads the journals of a folder."""

UNREADABLE: Final = "unreadable.lines"
"""Where lines are kept that cannot be read."""

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - each folder in it is checked for its owner
"""Linux's file system in memory, which outlives processes and is emptied by a restart of the machine or container."""

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


def spare_folder(folder: Path) -> Path:
    """Return the folder in memory for the journals of `folder`, of this user. It need not exist."""
    place = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    return SHARED_MEMORY / f"dragoman-{os.geteuid()}-{place}"


def make_spare(folder: Path) -> Path:
    """Return the spare folder of `folder`, which exists then. Raises OSError if it cannot be made, or may be another
    user's: who names a folder in a shared place first owns it."""
    spare = spare_folder(folder)
    with suppress(FileExistsError):
        spare.mkdir(mode=0o700)
    if not _is_own(spare):
        raise PermissionError(errno.EPERM, "the spare folder is not this user's alone", os.fspath(spare))
    return spare


def leave_spare(folder: Path) -> None:
    """Remove the spare folder of `folder` if it is there and empty."""
    with suppress(OSError):
        spare_folder(folder).rmdir()


def _is_own(spare: Path) -> bool:
    """Return whether a folder is one, and of this user alone."""
    try:
        found = spare.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def journal_files(folder: Path) -> list[JournalFile]:
    """Return all, those of a process in the order in which they were written, those of the spare folder among them;
    none if there is no folder."""
    found = [*_files_of(folder)]
    spare = spare_folder(folder)
    if _is_own(spare):
        found += _files_of(spare)
    return sorted(found)


def _files_of(folder: Path) -> Iterator[JournalFile]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        if match := _NAME.fullmatch(name):
            yield JournalFile(match[1], int(match[2]), folder / name)


def journal_bytes(folder: Path) -> int:
    """Return the size of all journals together."""
    return _bytes_of(journal_files(folder))


def spare_bytes(folder: Path) -> int:
    """Return the size of those that are in the spare folder."""
    return _bytes_of(_files_of(spare_folder(folder)))


def _bytes_of(files: Iterable[JournalFile]) -> int:
    total = 0
    for each in files:
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
