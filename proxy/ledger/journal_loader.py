"""Loads the journals of a folder into the database, each row exactly once, even if any process ends at any time.

A file is read from the end of the last pass, and from its begin after a restart. Rows that are already in the database
are skipped by their ids. A file is deleted when its process has released it and its last line has been stored. An
unreadable line is moved away and never stops others. A file of another version stays.
"""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from proxy.ledger.journal_files import (
    UNREADABLE,
    JournalFile,
    journal_bytes,
    journal_files,
    remove_spare,
    share_lock,
    try_lock,
)
from proxy.ledger.ledger_row import JournalRow, OtherVersionError, UnreadableLineError, read_line
from proxy.ledger.ledger_settings import LedgerState
from proxy.ledger.ledger_store import LedgerStore

READ_BYTES: Final = 64 * 1024
"""The number of bytes that are read and stored in one transaction: about 280 rows. Larger blocks take as much CPU for
each row (measured up to 256 KiB) and 2 MB more memory."""

LINES_AT_ONCE: Final = 32
"""The number of lines that are read, in 0.1 ms, before the processor is yielded to waiting processes. Linux (6.6 and
later, by default) lets a process run for 3 ms before it wakes another one on the same core, even if the first has a low
priority."""

UNREADABLE_BYTES: Final = 16 << 20
"""The most bytes of unreadable lines in their file. Further ones are only counted."""


class LoadingCancelledError(Exception):
    """The error if there is no time left to load more rows."""


class JournalLoader:
    """A loader of one folder, for the process that holds the folder's lock.

    `keep` is the number of seconds for which the database stores rows. Older rows are not loaded, because they may have
    been dropped already. `pause` is called with the seconds that a block took, to leave the processor to others. It may
    raise LoadingCancelledError.
    """

    def __init__(
        self,
        folder: Path,
        keep: float,
        state: LedgerState,
        pause: Callable[[float], None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._state = state
        self._pause = pause
        self._wall = wall
        self._offsets: dict[Path, int] = {}
        self._foreign: set[Path] = set()
        self._log = logging.getLogger("dragoman")

    def load(self, store: LedgerStore) -> int:
        """Load all whole lines, including the ones in the spare folder, and return how many rows were new. Raises
        LedgerError and OSError."""
        files = journal_files(self._folder)
        paths = {each.path for each in files}
        self._offsets = {path: offset for path, offset in self._offsets.items() if path in paths}
        self._foreign &= paths
        new = sum(self._load_file(each, store) for each in files if each.path not in self._foreign)
        self._state.foreign = len(self._foreign)
        self._state.behind = 0.0
        if any(each.path.parent != self._folder for each in files):
            remove_spare(self._folder)
        return new

    def measure(self) -> None:
        """Measure the size of the journals and how long the oldest row has waited, as far as its file shows it."""
        self._state.journal_bytes = journal_bytes(self._folder)
        oldest = None
        for each in journal_files(self._folder):
            try:
                found = each.path.stat()
            except FileNotFoundError:
                continue
            if found.st_size > self._offsets.get(each.path, 0) and each.path not in self._foreign:
                since = self._oldest_row(each) or found.st_mtime
                oldest = since if oldest is None else min(oldest, since)
        self._state.behind = 0.0 if oldest is None else max(0.0, self._wall() - oldest)

    def _oldest_row(self, file: JournalFile) -> float | None:
        """Return the time of the first waiting row of a file in seconds."""
        try:
            with file.path.open("rb") as reading:
                reading.seek(self._offsets.get(file.path, 0))
                line = reading.readline(READ_BYTES)
            return read_line(line, file.process).row.time / 1000
        except (OSError, ValueError):  # For example, half a line.
            return None

    def _load_file(self, file: JournalFile, store: LedgerStore) -> int:
        try:
            descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        try:
            finished = try_lock(descriptor)  # Before reading: nothing can be added after this.
            if finished:
                share_lock(descriptor)
            new = self._load_lines(descriptor, file, store)
            if finished and file.path not in self._foreign:
                self._take_rest(descriptor, file.path)
                file.path.unlink(missing_ok=True)
                self._offsets.pop(file.path, None)
            return new
        finally:
            os.close(descriptor)

    def _load_lines(self, descriptor: int, file: JournalFile, store: LedgerStore) -> int:
        new = 0
        while file.path not in self._foreign:
            offset = self._offsets.get(file.path, 0)
            data = os.pread(descriptor, READ_BYTES, offset)
            end = data.rfind(b"\n") + 1
            if not end and len(data) == READ_BYTES:  # No valid line has this length.
                end = READ_BYTES
            if not end:
                break
            began = time.monotonic()
            rows, read = self._rows(data[:end], file)
            if rows:
                stored = store.add(rows)
                new += stored
                self._state.loaded += stored
                self._state.repeated += len(rows) - stored
            self._offsets[file.path] = offset + read
            if len(data) == READ_BYTES:
                self._pause(time.monotonic() - began)
        return new

    def _rows(self, lines: bytes, file: JournalFile) -> tuple[list[JournalRow], int]:
        """Return the rows of whole lines and the number of bytes read. Reading ends before a line of another
        version."""
        rows: list[JournalRow] = []
        oldest = round((self._wall() - self._keep) * 1000)
        read = 0
        for number, line in enumerate(lines.splitlines(keepends=True), 1):
            if line != b"\n":
                try:
                    found = read_line(line, file.process)
                except UnreadableLineError:
                    self._move_unreadable(line)
                except OtherVersionError as error:
                    self._skip_foreign(file, str(error))
                    break
                else:
                    if found.row.time < oldest:
                        self._state.expired += 1
                    else:
                        rows.append(found)
            read += len(line)
            if not number % LINES_AT_ONCE:
                os.sched_yield()
        return rows, read

    def _skip_foreign(self, file: JournalFile, version: str) -> None:
        self._foreign.add(file.path)
        self._log.warning(
            "ledger: %s is in %s, which this gateway does not know; it stays until a gateway that knows it loads it",
            *(file.path, version),
        )

    def _take_rest(self, descriptor: int, path: Path) -> None:
        """Move away the half line that a killed process left."""
        if rest := os.pread(descriptor, READ_BYTES, self._offsets.get(path, 0)):
            self._move_unreadable(rest)

    def _move_unreadable(self, line: bytes) -> None:
        self._state.unreadable += 1
        path = self._folder / UNREADABLE
        try:
            with path.open("ab") as file:
                if file.tell() < UNREADABLE_BYTES:
                    file.write(line if line.endswith(b"\n") else line + b"\n")
        except OSError as error:
            self._log.warning("ledger: an unreadable line cannot be stored either: %s", error.strerror)
