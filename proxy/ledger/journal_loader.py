"""Loads the journals of a folder into the database, each row once, whatever ends whichever process when.

A file is read from where the last pass ended, and from its beginning after a restart: rows that are in the database
already are left out there, by their ids. A file is deleted when its process has let go of it and its last line has been
stored. A line that cannot be read is moved aside and never keeps others out; a file of another version stays.
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
    leave_spare,
    locked,
    share_lock,
)
from proxy.ledger.ledger_row import Journaled, OtherVersionError, UnreadableLineError, read_line
from proxy.ledger.ledger_settings import LedgerState
from proxy.ledger.ledger_store import LedgerStore

PIECE: Final = 64 * 1024
"""Bytes that are read, and stored in one transaction: some 280 rows. Larger ones take as much CPU a row (measured up to
256 KiB), and 2 MB more memory."""

LINES_AT_ONCE: Final = 32
"""Lines that are read before the processor is offered to who waits for it: 0.1 ms. Linux lets a process go on for 3 ms
(6.6 and later, by default) before it wakes another on the same core, however nice the first one is."""

ASIDE_BYTES: Final = 16 << 20
"""Of lines that cannot be read; beyond it they are only counted."""


class LoadingCancelledError(Exception):
    """There is no time left to load more."""


class JournalLoader:
    """Loads one folder; to be used by the process that holds the folder's lock.

    `keep` is for how many seconds rows are kept: older ones are not stored, since they may have been dropped already.
    `pause` is called with the seconds that a piece took, to leave the processor to others; it may raise
    LoadingCancelledError.
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
        """Load all whole lines that there are, those in the spare folder too, and return how many rows were new. Raises
        LedgerError, and OSError."""
        files = journal_files(self._folder)
        paths = {each.path for each in files}
        self._offsets = {path: offset for path, offset in self._offsets.items() if path in paths}
        self._foreign &= paths
        new = sum(self._load_file(each, store) for each in files if each.path not in self._foreign)
        self._state.foreign = len(self._foreign)
        self._state.behind = 0.0
        if any(each.path.parent != self._folder for each in files):
            leave_spare(self._folder)
        return new

    def measure(self) -> None:
        """Note how large the journals are, and for how long the oldest row has waited, as far as its file tells."""
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
        """Return the time of the first row of a file that waits, in seconds."""
        try:
            with file.path.open("rb") as reading:
                reading.seek(self._offsets.get(file.path, 0))
                line = reading.readline(PIECE)
            return read_line(line, file.process).row.time / 1000
        except (OSError, ValueError):  # such as half a line
            return None

    def _load_file(self, file: JournalFile, store: LedgerStore) -> int:
        try:
            descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        try:
            finished = locked(descriptor)  # before the reading: afterwards nothing can be added
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
            piece = os.pread(descriptor, PIECE, offset)
            end = piece.rfind(b"\n") + 1
            if not end and len(piece) == PIECE:  # no line is so long
                end = PIECE
            if not end:
                break
            began = time.monotonic()
            rows, read = self._rows(piece[:end], file)
            if rows:
                stored = store.add(rows)
                new += stored
                self._state.loaded += stored
                self._state.repeated += len(rows) - stored
            self._offsets[file.path] = offset + read
            if len(piece) == PIECE:
                self._pause(time.monotonic() - began)
        return new

    def _rows(self, lines: bytes, file: JournalFile) -> tuple[list[Journaled], int]:
        """Return the rows of whole lines, and how many bytes were read: fewer than all up to another version's."""
        rows: list[Journaled] = []
        oldest = round((self._wall() - self._keep) * 1000)
        read = 0
        for number, line in enumerate(lines.splitlines(keepends=True), 1):
            if line != b"\n":
                try:
                    found = read_line(line, file.process)
                except UnreadableLineError:
                    self._put_aside(line)
                except OtherVersionError as error:
                    self._leave(file, str(error))
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

    def _leave(self, file: JournalFile, version: str) -> None:
        self._foreign.add(file.path)
        self._log.warning(
            "ledger: %s is in %s, which this gateway does not know; it is kept until one that does loads it",
            *(file.path, version),
        )

    def _take_rest(self, descriptor: int, path: Path) -> None:
        """Put aside the half line that a process left when it was killed."""
        if rest := os.pread(descriptor, PIECE, self._offsets.get(path, 0)):
            self._put_aside(rest)

    def _put_aside(self, line: bytes) -> None:
        self._state.unreadable += 1
        path = self._folder / UNREADABLE
        try:
            with path.open("ab") as file:
                if file.tell() < ASIDE_BYTES:
                    file.write(line if line.endswith(b"\n") else line + b"\n")
        except OSError as error:
            self._log.warning("ledger: a line that cannot be read is not kept either: %s", error.strerror)
