"""The files of the journal: their names, and the locks by which a loader knows that a file is finished.

Each process appends to its own file and holds a lock on it. The kernel releases the lock at the end of the process,
however it ends. A process that gets the lock of a file knows that no process appends to it. While the disk of the
journals cannot be written, new files are in a folder in memory. The same loader reads this spare folder.
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
"""The lock file held by the one process that loads the journals of a folder."""

UNREADABLE: Final = "unreadable.lines"
"""The file to which unreadable lines are moved."""

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - each folder in it is checked for its owner
"""Linux's file system in memory. Its files outlive processes, and are lost when the machine or container restarts."""

_NAME: Final = re.compile(r"ledger\.([A-Za-z0-9_-]{1,64})\.([0-9]{1,12})\.jsonl", re.ASCII)


class JournalFile(NamedTuple):
    """A file of one process. `number` counts the files of the process."""

    process: str
    number: int
    path: Path


def fresh_process_name() -> str:
    """Return a name that no other process of any gateway has. It consists of the time and random digits."""
    return f"{int(time.time()):x}-{os.urandom(5).hex()}"


def journal_file(folder: Path, process: str, number: int) -> JournalFile:
    """Return the file with this number. Raises ValueError if the name of the process cannot be part of a file name."""
    path = folder / f"ledger.{process}.{number}.jsonl"
    if _NAME.fullmatch(path.name) is None:
        raise ValueError(f"{process!r} cannot name a process of the ledger")
    return JournalFile(process, number, path)


def spare_folder(folder: Path) -> Path:
    """Return the folder in memory for the journals of `folder`. It belongs to this user and need not exist."""
    place = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    return SHARED_MEMORY / f"dragoman-{os.geteuid()}-{place}"


def make_spare(folder: Path) -> Path:
    """Return the existing spare folder of `folder`, and make it if necessary. Raises OSError if it cannot be made or
    may belong to another user, because any user may create a folder in shared memory first."""
    spare = spare_folder(folder)
    with suppress(FileExistsError):
        spare.mkdir(mode=0o700)
    if not _is_own(spare):
        raise PermissionError(errno.EPERM, "the spare folder is not this user's alone", os.fspath(spare))
    return spare


def remove_spare(folder: Path) -> None:
    """Remove the spare folder of `folder` if it exists and is empty."""
    with suppress(OSError):
        spare_folder(folder).rmdir()


def _is_own(spare: Path) -> bool:
    """Return whether the path is a folder that only this user may use."""
    try:
        found = spare.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def journal_files(folder: Path) -> list[JournalFile]:
    """Return all journal files, including the ones in the spare folder. The files of one process are in the order in
    which they were written. The list is empty if there is no folder."""
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
    """Return the total size of all journals in bytes."""
    return _bytes_of(journal_files(folder))


def spare_bytes(folder: Path) -> int:
    """Return the total size of the journals in the spare folder in bytes."""
    return _bytes_of(_files_of(spare_folder(folder)))


def _bytes_of(files: Iterable[JournalFile]) -> int:
    total = 0
    for each in files:
        try:
            total += each.path.stat().st_size
        except FileNotFoundError:  # It was loaded in the meantime.
            continue
    return total


def try_lock(descriptor: int) -> bool:
    """Take the lock of an open file, and return whether no other process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def share_lock(descriptor: int) -> None:
    """Hold the lock of a finished file as a shared lock, so that `has_finished_file` still finds it."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def has_finished_file(folder: Path) -> bool:
    """Return whether there is a file to which no process appends. Such a file has not been loaded yet, or is being
    loaded. The short shared lock may delay a loader until its next pass."""
    for each in journal_files(folder):
        try:
            descriptor = os.open(each.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # It was loaded in the meantime, or belongs to another user.
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
    """Create and lock a file and return its descriptor, `None` if another process holds the lock. Closing the
    descriptor, or the end of the process, releases the lock. The file stays."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if try_lock(descriptor):
            return descriptor
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def create_locked(folder: Path, process: str, number: int) -> tuple[int, int]:
    """Create and lock the next file of a process, from `number` on, and return its descriptor and number."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        path = journal_file(folder, process, number).path
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            number += 1
            continue
        try:
            # A loader may have run between the two calls. It takes the empty file for a finished one and deletes it.
            if try_lock(descriptor) and os.fstat(descriptor).st_nlink:
                return descriptor, number
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        number += 1
