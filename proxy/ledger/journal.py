"""The journal of one process. Each request's row is on disk within a tick, even if the database is unavailable.

`append` only stores the line in memory. A thread writes all lines of a tick in one call, so a slow disk delays no
request. It sleeps while there is nothing to write. A process that is killed loses at most the rows of one tick, because
the kernel owns the written ones.

If the disk is full, a new file is begun. The loader deletes the old file once its rows are in the database, which frees
space. If the new file cannot be written either, other programs have filled the disk. Rows then go to a spare folder in
memory, from which the same loader loads them. If nothing can be written there, the newest rows stay in this process,
and each lost row is counted.
"""

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from errno import EDQUOT, EIO, ENOSPC
from pathlib import Path
from typing import Final

from proxy.ledger.journal_files import create_locked, fresh_process_name, journal_bytes, journal_file, spare_bytes
from proxy.ledger.ledger_row import TagsJson, read_line, row_line
from proxy.ledger.ledger_settings import LedgerState
from proxy.request_record import RequestRecord

WRITE_EVERY: Final = 0.1
"""Seconds between two writes."""

MOST_ROWS: Final = 65_536
"""The most rows that are held in memory while they cannot be written."""

FILE_BYTES: Final = 8 << 20
"""The size of a file after which the next one is begun. Loaded files are deleted as a whole."""

FILE_SECONDS: Final = 3600.0

FOLDER_BYTES: Final = 1 << 30
"""The most bytes of all journals of a folder, about 4.6 M rows. Each process may exceed it by one file."""

SPARE_BYTES: Final = 64 << 20
"""The most bytes of the journals in the spare folder, about 280,000 rows. They occupy memory."""

SPARE_SECONDS: Final = 10.0
"""Seconds for which rows go to the spare folder before the disk is tried again."""

FULL: Final = (ENOSPC, EDQUOT)

LEAST_LEFT_BYTES: Final = 4096
LEAVE_EVERY: Final = 1.0
"""On a full disk, a file is left only if it has LEAST_LEFT_BYTES of rows, or was begun LEAVE_EVERY seconds ago.
Otherwise there would be a file for each tick while space returns byte by byte."""

LOADER_WAIT: Final = 3.0
"""Seconds for which rows wait in memory for the loader to delete a file that was left on a full disk. After that they
go to the spare folder. The loader runs each second."""

IDLE_SECONDS: Final = 60.0
"""Seconds without a new row after which the file is left. By then its rows are in the database, and other programs may
need the space."""

WRITE_TARGETS: Final = 3
"""The writes that the last rows may need: to the current file, to a new one, and to one in the spare folder."""

WRITE_BYTES: Final = 1 << 20

LOG_PAUSE: Final = 60.0
"""Seconds between two log lines about the same failure."""


class Journal:
    """The rows of this process, from `start` to `close`. Create it after a fork, because child processes would hold its
    lock.

    `spare` makes the spare folder of a folder, and may raise OSError. Without it there is no spare folder.
    """

    def __init__(
        self,
        folder: Path,
        state: LedgerState | None = None,
        process: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        spare: Callable[[Path], Path] | None = None,
    ) -> None:
        self.process = process or fresh_process_name()
        self.state = state or LedgerState()
        self.sequence = 0
        self._folder = folder
        self._clock = clock
        self._lines: deque[bytes] = deque()
        self._idle = False
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger journal", daemon=True)
        self._descriptor: int | None = None
        self._number = 1
        self._began = 0.0
        self._size = self._line_bytes = 0
        self._half_line = False
        self._path = folder
        self._left_file: tuple[Path, float] | None = None
        self._make_spare = spare
        self._spare_until = -math.inf
        self._in_spare = self._spare_logged = False
        self._measured: tuple[float, int] | None = None
        self._logged_at = -LOG_PAUSE
        self._failing = False
        self._log = logging.getLogger("dragoman")

    def append(self, record: RequestRecord, user: str | None = None, tags: TagsJson = None) -> int:
        """Store the row of a request that has just ended, and return its number among the rows of this process."""
        self.sequence = sequence = self.sequence + 1
        lines = self._lines
        lines.append(row_line(record, sequence, time.time_ns() // 1_000_000, user, tags))
        if len(lines) > MOST_ROWS:
            self._drop_oldest()
        if self._idle:
            self._idle = False
            self._wake.set()
        return sequence

    @property
    def waiting(self) -> int:
        """The rows that are only in memory."""
        return len(self._lines)

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread.start()

    def close(self) -> None:
        """Write every row and end the thread. Blocks as long as the disk does."""
        self._ending.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        for _ in range(WRITE_TARGETS):
            self.write()
        if lost := len(self._lines):
            self.state.dropped += lost
            self._lines.clear()
            self._log.error("ledger: %d rows are lost at the end: the journal cannot be written", lost)
        self._leave_file()

    def write(self) -> None:
        """Write the stored lines that fit on the disk. Call it from one thread at a time."""
        if not self._lines:
            return
        try:
            while self._lines:
                self._write_some(self._file())
        except OSError as error:
            self._fail(error)
            self._choose_target(error)
        else:
            if self._failing:
                self._recover()

    def _run(self) -> None:
        while not self._ending.wait(WRITE_EVERY):
            try:
                self.write()
            except Exception:  # A bug of the gateway: the remaining rows must not wait for the end of the process.
                self._log.exception("ledger: the journal could not be written")
            if not self._lines:
                self._sleep()

    def _sleep(self) -> None:
        """Wait until there is something to write."""
        self._wake.clear()
        self._idle = True
        # A line appended before `_idle` was set has woken no thread.
        if not self._lines and not self._ending.is_set() and not self._wake.wait(IDLE_SECONDS):
            self._leave_file()
            self._wake.wait()
        self._idle = False

    def _drop_oldest(self) -> None:
        try:
            self._lines.popleft()
        except IndexError:  # It was written in the meantime.
            return
        self.state.dropped += 1

    def _file(self) -> int:
        """Return the file to write to. It is a new file if the last one is large, old, or deleted."""
        descriptor, now = self._descriptor, self._clock()
        if descriptor is not None:
            longest = SPARE_SECONDS if self._in_spare else FILE_SECONDS
            fits = self._size < FILE_BYTES and now - self._began < longest
            if fits and os.fstat(descriptor).st_nlink:
                return descriptor
            self._leave_file()
        self._require_room(now)
        folder = self._next_folder(now)
        descriptor, number = create_locked(folder, self.process, self._number)
        self._path = journal_file(folder, self.process, number).path
        self._descriptor, self._number, self._began = descriptor, number + 1, now
        self._size = self._line_bytes = 0
        return descriptor

    def _next_folder(self, now: float) -> Path:
        """Return the folder of the next file. Raises OSError if the spare folder cannot be used."""
        self._in_spare = self._make_spare is not None and now < self._spare_until
        if self._make_spare is None or not self._in_spare:
            return self._folder
        spare = self._make_spare(self._folder)
        if spare_bytes(self._folder) >= SPARE_BYTES:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        return spare

    def _require_room(self, now: float) -> None:
        """Raise OSError while the journals of the folder have reached their largest size. The size is measured once a
        second."""
        if self._measured is None or now - self._measured[0] >= 1:
            self._measured = now, journal_bytes(self._folder)
        if self._measured[1] >= FOLDER_BYTES:
            raise OSError(EDQUOT, f"the journals are at their limit of {FOLDER_BYTES >> 20} MiB")

    def _oldest(self) -> float | None:
        """Return the unix time of the first waiting row."""
        try:
            return read_line(self._lines[0], self.process).row.time / 1000
        except (IndexError, ValueError):  # It was dropped in the meantime, or its repaired line is unreadable.
            return self.state.oldest

    def _leave_file(self) -> None:
        """Close the file, which releases it to the loader, and cut off a half line at its end. That row is written
        again. A file without a row is removed."""
        if self._descriptor is None:
            return
        with suppress(OSError):  # The loader moves the half line away, or deletes the empty file.
            if self._half_line:
                os.ftruncate(self._descriptor, self._line_bytes)
            if not self._line_bytes:
                self._path.unlink()
        os.close(self._descriptor)
        self._descriptor, self._half_line = None, False

    def _choose_target(self, error: OSError) -> None:
        """Choose the next file after a failed write. It is a new file in the same folder once the loader has this one.
        If not even a new file could be written, it is one in the spare folder, or in the journal folder if the spare
        folder failed."""
        now = self._clock()
        if self._descriptor is None or not self._line_bytes:
            self._leave_file()
            if self._in_spare:
                self._spare_until = -math.inf
            elif not self._awaits_loader(now):
                self._spare_until = now + SPARE_SECONDS
        elif error.errno not in FULL or self._line_bytes >= LEAST_LEFT_BYTES or now - self._began >= LEAVE_EVERY:
            self._leave_file()
            self._left_file = self._path, now

    def _awaits_loader(self, now: float) -> bool:
        """Return whether the loader may still delete a left file, which frees space. While closing, return false."""
        if self._left_file is None or self._ending.is_set():
            return False
        path, at = self._left_file
        return now - at < LOADER_WAIT and path.exists()

    def _recover(self) -> None:
        """Note that rows are written again. In the spare folder the failure continues, but no row waits in this
        process."""
        self.state.unwritten, self.state.oldest = 0, None
        if not self._in_spare:
            self._failing, self._spare_logged, self.state.trouble = False, False, None
            self._log.info("ledger: the journal in %s is written again", self._folder)
        elif not self._spare_logged:
            self._spare_logged = True
            self._log.warning("ledger: rows are written to %s, in memory, until the disk has room", self._path.parent)

    def _write_some(self, descriptor: int) -> None:
        """Write many lines in one call. Lines that did not fit stay. A half line is cut off before the next write.
        Raises OSError, possibly after some lines were written."""
        if self._half_line:
            os.ftruncate(descriptor, self._line_bytes)
            self._size, self._half_line = self._line_bytes, False
        batch: list[bytes] = []
        size = 0
        while self._lines and size < WRITE_BYTES:
            batch.append(self._lines.popleft())
            size += len(batch[-1])
        data = b"".join(batch)
        try:
            written = os.write(descriptor, data)
            if not written:
                raise OSError(EIO, "nothing could be written")
        except OSError:
            self._lines.extendleft(reversed(batch))
            raise
        whole = data.count(b"\n", 0, written)
        self.state.written += whole
        self._line_bytes = self._size + data.rfind(b"\n", 0, written) + 1
        self._size += written
        if written < len(data):
            self._lines.extendleft(reversed(batch[whole:]))
            self._half_line = self._line_bytes < self._size
            # Another try at once would cut off and write the same half line for ever.
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    def _fail(self, error: OSError) -> None:
        state, now = self.state, self._clock()
        state.write_errors += 1
        state.trouble = f"the journal cannot be written: {error.strerror}"
        state.unwritten, state.oldest = len(self._lines), self._oldest()
        self._failing = True
        if now - self._logged_at >= LOG_PAUSE:
            self._logged_at = now
            self._log.error(
                "ledger: the journal in %s cannot be written (%s): %d rows wait in memory, %d are lost so far",
                *(self._folder, error.strerror, len(self._lines), state.dropped),
            )
