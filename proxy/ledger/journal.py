"""The journal of one process: every request's row is on disk within a tick, whatever becomes of the database.

`append` only keeps the line; a thread writes all lines of a tick in one call, so that a slow disk delays no request. It
sleeps while there is nothing to write. A process that is killed loses at most the rows of one tick: what was written
belongs to the kernel. While nothing can be written, the newest rows are kept in memory and each one that had to go is
counted.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from errno import EDQUOT, EIO, ENOSPC
from pathlib import Path
from typing import Final

from proxy.ledger.journal_files import create_locked, fresh_process_name, journal_bytes
from proxy.ledger.ledger_row import TagsJson, read_line, row_line
from proxy.ledger.ledger_settings import LedgerState
from proxy.request_record import RequestRecord

TICK: Final = 0.1
"""Seconds between two writes."""

MOST_ROWS: Final = 65_536
"""Rows that are kept in memory while they cannot be written."""

FILE_BYTES: Final = 8 << 20
"""Size from which on the next file is begun: loaded files are deleted whole."""

FILE_SECONDS: Final = 3600.0

FOLDER_BYTES: Final = 1 << 30
"""Of all journals of a folder, about 4.6 M rows; each process may pass it by one file."""

WRITE_BYTES: Final = 1 << 20

SILENCE: Final = 60.0
"""Seconds between two lines in the log about the same trouble."""


class Journal:
    """The rows of this process, from `start` to `close`. To be made after a fork: children would hold its lock."""

    def __init__(
        self,
        folder: Path,
        state: LedgerState | None = None,
        process: str | None = None,
        clock: Callable[[], float] = time.monotonic,
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
        self._size = 0
        self._torn = False
        self._measured: tuple[float, int] | None = None
        self._said = -SILENCE
        self._failing = False
        self._log = logging.getLogger("dragoman")

    def append(self, record: RequestRecord, user: str | None = None, tags: TagsJson = None) -> int:
        """Keep the row of a request that has just ended, and return its number among the rows of this process."""
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
        """Rows that are only in memory."""
        return len(self._lines)

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread.start()

    def close(self) -> None:
        """Write every row and end the thread. Blocks for as long as the disk does."""
        self._ending.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.write()
        if lost := len(self._lines):
            self.state.dropped += lost
            self._lines.clear()
            self._log.error("ledger: %d rows are lost at the end: the journal cannot be written", lost)
        self._leave_file()

    def write(self) -> None:
        """Write what is kept, as far as the disk takes it. Called by one thread at a time."""
        if not self._lines:
            return
        try:
            while self._lines:
                self._write_some(self._file())
        except OSError as error:
            self._fail(error)
        else:
            if self._failing:
                self._failing, self.state.trouble = False, None
                self.state.unwritten, self.state.oldest = 0, None
                self._log.warning("ledger: the journal in %s is written again", self._folder)

    def _run(self) -> None:
        while not self._ending.wait(TICK):
            try:
                self.write()
            except Exception:  # a fault of ours: the rows that are left must not wait for the process's end
                self._log.exception("ledger: the journal could not be written")
            if not self._lines:
                self._sleep()

    def _sleep(self) -> None:
        """Wait until there is something to write."""
        self._wake.clear()
        self._idle = True
        # What was appended before that woke nobody.
        if not self._lines and not self._ending.is_set():
            self._wake.wait()
        self._idle = False

    def _drop_oldest(self) -> None:
        try:
            self._lines.popleft()
        except IndexError:  # written meanwhile
            return
        self.state.dropped += 1

    def _file(self) -> int:
        """Return the file to write to, which is the next one when the last is large, old, or gone."""
        descriptor, now = self._descriptor, self._clock()
        if descriptor is not None:
            fits = self._size < FILE_BYTES and now - self._began < FILE_SECONDS
            if fits and os.fstat(descriptor).st_nlink:
                return descriptor
            self._leave_file()
        self._require_room(now)
        descriptor, number = create_locked(self._folder, self.process, self._number)
        self._descriptor, self._number, self._began, self._size = descriptor, number + 1, now, 0
        return descriptor

    def _require_room(self, now: float) -> None:
        """Raise OSError while the journals of the folder are as large as they may get; measured once a second."""
        if self._measured is None or now - self._measured[0] >= 1:
            self._measured = now, journal_bytes(self._folder)
        if self._measured[1] >= FOLDER_BYTES:
            raise OSError(EDQUOT, f"the journals are at their limit of {FOLDER_BYTES >> 20} MiB")

    def _oldest(self) -> float | None:
        """Return the unix time of the first row that waits."""
        try:
            return read_line(self._lines[0], self.process).row.time / 1000
        except (IndexError, ValueError):  # dropped meanwhile, or mended beyond reading
            return self.state.oldest

    def _leave_file(self) -> None:
        """Close the file, which releases it to the loader."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor, self._torn = None, False

    def _write_some(self, descriptor: int) -> None:
        """Write many lines in one call. Those that did not fit stay, and half a line on disk is ended by the next
        write's first byte."""
        batch: list[bytes] = []
        size = 0
        while self._lines and size < WRITE_BYTES:
            batch.append(self._lines.popleft())
            size += len(batch[-1])
        head = b"\n" if self._torn else b""
        data = head + b"".join(batch)
        try:
            written = os.write(descriptor, data)
        except OSError:
            self._lines.extendleft(reversed(batch))
            raise
        self._size += written
        if not written:
            self._lines.extendleft(reversed(batch))
            raise OSError(EIO, "nothing could be written")
        whole = data.count(b"\n", len(head), written) if written > len(head) else 0
        self.state.written += whole
        if written < len(data):
            self._lines.extendleft(reversed(batch[whole:]))
            self._torn = data[written - 1 : written] != b"\n"
        else:
            self._torn = False

    def _fail(self, error: OSError) -> None:
        state, now = self.state, self._clock()
        state.write_errors += 1
        state.trouble = f"the journal cannot be written: {error.strerror}"
        state.unwritten, state.oldest = len(self._lines), self._oldest()
        self._failing = True
        if error.errno not in (ENOSPC, EDQUOT) and self._size:  # this file may be at fault
            self._leave_file()
        if now - self._said >= SILENCE:
            self._said = now
            self._log.error(
                "ledger: the journal in %s cannot be written (%s): %d rows wait in memory, %d are lost so far",
                *(self._folder, error.strerror, len(self._lines), state.dropped),
            )
