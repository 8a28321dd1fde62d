"""A reader of the ledger for one thread at a time, whose reading can be interrupted or abandoned.

No driver may close a connection while a thread reads: Python's `sqlite3` crashes (3.11). So a reading that takes too
long, or is no longer waited for, is interrupted until its thread has ended. Only then is the reader free. If the
database does not respond at all, the thread is abandoned together with the reader. The next reading never shares that
reader, which is closed when its thread ends. No thread keeps the process from ending.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Generic, TypeVar

from proxy.ledger.ledger_settings import LedgerError, LedgerSettings
from proxy.ledger.ledger_store import LedgerReader
from proxy.ledger.open_ledger import open_reader

INTERRUPT_EVERY: Final = 0.1
"""Seconds between two interruptions: one that arrives between two statements has no effect."""

END_TIMEOUT: Final = 0.5
"""Seconds within which an interrupted reading must end before it is abandoned."""

MAX_ABANDONED: Final = 4
"""The most abandoned readers whose threads have not ended. While there are more, no new reading begins."""

T = TypeVar("T")

Opener = Callable[[LedgerSettings], LedgerReader]


class SharedLedgerReader:
    """A reader that is opened on first use, and anew after an error. `silent` means that the last reading was
    abandoned, because the database did not respond."""

    def __init__(self, settings: LedgerSettings, opener: Opener = open_reader) -> None:
        self.silent = False
        self._settings = settings
        self._opener = opener
        self._reader: LedgerReader | None = None
        self._lock = asyncio.Lock()
        self._abandoned: set[object] = set()

    @property
    def busy(self) -> bool:
        """Whether a reading is in progress."""
        return self._lock.locked()

    async def read(self, work: Callable[[LedgerReader], T], longest: float | None = None) -> T:
        """Run the blocking function `work` in a thread, after the earlier readings. Raises its errors, LedgerError if
        the ledger cannot be read or the database does not respond, and TimeoutError after `longest` seconds of work."""
        async with self._lock:
            if len(self._abandoned) >= MAX_ABANDONED:
                raise self._no_answer()
            reading = _LedgerReading(self._settings, self._opener, self._reader, work)
            self._reader = None  # The reader belongs to the thread until the thread ends.
            running = _in_thread(reading.run)
            try:
                await asyncio.wait((running,), timeout=longest)
                late = not running.done()
            finally:
                try:
                    await _interrupt(reading, running)
                finally:
                    self._settle(reading, running)
            if not running.done():
                raise self._no_answer()
            if late:
                raise TimeoutError
            return reading.found()

    async def aclose(self) -> None:
        """Close the database after the last reading."""
        async with self._lock:
            reader, self._reader = self._reader, None
            if reader is not None:
                await _in_thread(reader.close)

    def _no_answer(self) -> LedgerError:
        return LedgerError(f"the ledger at {self._settings.place} does not answer")

    def _settle(self, reading: "_LedgerReading[T]", running: asyncio.Future[None]) -> None:
        """Take the reader back, or abandon it to its threads if they have not ended."""
        self.silent = not running.done()
        left = {each for each in (running, reading.interrupting) if each is not None and not each.done()}
        if not left:
            self._reader = reading.reader
            return

        def ended(which: asyncio.Future[None]) -> None:
            left.discard(which)
            if left:
                return
            self._abandoned.discard(reading)
            if reading.reader is not None:
                threading.Thread(target=reading.reader.close, name="ledger reader", daemon=True).start()

        self._abandoned.add(reading)
        for each in tuple(left):
            each.add_done_callback(ended)


class _LedgerReading(Generic[T]):
    """One reading: its reader while it runs, the thread that interrupts it, and its result or error."""

    def __init__(
        self, settings: LedgerSettings, opener: Opener, reader: LedgerReader | None, work: Callable[[LedgerReader], T]
    ) -> None:
        self.reader = reader
        self.interrupting: asyncio.Future[None] | None = None
        self._settings = settings
        self._opener = opener
        self._work = work
        self._found: list[T] = []
        self._error: Exception | None = None

    def run(self) -> None:
        """Read, and store the result or the error. An error that is no longer waited for is not a bug."""
        try:
            if self.reader is None:
                self.reader = self._opener(self._settings)
            self._found.append(self._work(self.reader))
        except Exception as error:
            self._error = error
            reader = self.reader
            if isinstance(error, LedgerError) and reader is not None:
                self.reader = None
                reader.close()

    def found(self) -> T:
        """Return the result of the reading. Raises its error."""
        if self._error is not None:
            raise self._error
        return self._found[0]


async def _interrupt(reading: "_LedgerReading[T]", running: asyncio.Future[None]) -> None:
    """Interrupt a reading until it has ended, for END_TIMEOUT seconds at most. An interruption may take long itself,
    and one that is still running could hit the reader's next reading."""
    now = asyncio.get_running_loop().time
    until = now() + END_TIMEOUT
    while (left := until - now()) > 0:
        interruption, reader = reading.interrupting, reading.reader
        interrupted = interruption is None or interruption.done()
        if running.done() and interrupted:
            return
        if interrupted and reader is not None:
            reading.interrupting = interruption = _in_thread(reader.interrupt)
        waiting = [each for each in (running, interruption) if each is not None and not each.done()]
        await asyncio.wait(waiting, timeout=min(left, INTERRUPT_EVERY))


def _in_thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """Run a blocking function in its own daemon thread, which delays the end of neither the event loop nor the
    interpreter."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # The loop has ended, and the future is no longer awaited.
                loop.call_soon_threadsafe(partial(_end, done))

    threading.Thread(target=run, name="ledger reader", daemon=True).start()
    return done


def _end(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
