"""A reader of the ledger that one thread at a time uses, and whose reading can be ended or left.

Neither database's driver may close a connection under a thread that reads: Python's `sqlite3` crashes (3.11). So what
takes too long, or is no longer waited for, is interrupted until its thread has ended, and only then is the reader free.
If the database does not answer at all, the thread is left with the reader, which it never shares with the next reading,
and which is closed when the thread ends. No thread keeps the process from ending.
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
"""Seconds between interruptions: one that comes between two statements stops neither."""

GRACE: Final = 0.5
"""Seconds that an interrupted reading has to end, before it is left."""

MOST_LEFT: Final = 4
"""Readings that were left and have not ended; with as many no other begins."""

T = TypeVar("T")

Opener = Callable[[LedgerSettings], LedgerReader]


class SharedLedgerReader:
    """Opens the reader when it is first used, and anew after an error. `silent` says that the last reading was left,
    since the database did not answer."""

    def __init__(self, settings: LedgerSettings, opener: Opener = open_reader) -> None:
        self.silent = False
        self._settings = settings
        self._opener = opener
        self._reader: LedgerReader | None = None
        self._turn = asyncio.Lock()
        self._left: set[object] = set()

    @property
    def taken(self) -> bool:
        """Whether somebody reads."""
        return self._turn.locked()

    async def read(self, work: Callable[[LedgerReader], T], longest: float | None = None) -> T:
        """Run a blocking function that reads in a thread, when it is its turn. Raises what it raises, LedgerError where
        there is nothing to read or no answer comes, and TimeoutError after `longest` seconds of work."""
        async with self._turn:
            if len(self._left) >= MOST_LEFT:
                raise self._no_answer()
            reading = _LedgerReading(self._settings, self._opener, self._reader, work)
            self._reader = None  # it is the thread's until that ends
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
        """Let go of the database, once nobody reads any more."""
        async with self._turn:
            reader, self._reader = self._reader, None
            if reader is not None:
                await _in_thread(reader.close)

    def _no_answer(self) -> LedgerError:
        return LedgerError(f"the ledger at {self._settings.place} does not answer")

    def _settle(self, reading: "_LedgerReading[T]", running: asyncio.Future[None]) -> None:
        """Take the reader back, or leave it to the threads that have not ended."""
        self.silent = not running.done()
        left = {each for each in (running, reading.interrupting) if each is not None and not each.done()}
        if not left:
            self._reader = reading.reader
            return

        def ended(which: asyncio.Future[None]) -> None:
            left.discard(which)
            if left:
                return
            self._left.discard(reading)
            if reading.reader is not None:
                threading.Thread(target=reading.reader.close, name="ledger reader", daemon=True).start()

        self._left.add(reading)
        for each in tuple(left):
            each.add_done_callback(ended)


class _LedgerReading(Generic[T]):
    """One reading: the reader that it has while it runs, the thread that interrupts it, and its result or error."""

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
        """Read, and store the result or the error: an error that is no longer waited for is no fault."""
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
    """Interrupt a reading until it has ended, for GRACE seconds at most. An interruption may take long itself, and one
    that is in flight could end the reader's next reading."""
    now = asyncio.get_running_loop().time
    until = now() + GRACE
    while (left := until - now()) > 0:
        asking, reader = reading.interrupting, reading.reader
        interrupted = asking is None or asking.done()
        if running.done() and interrupted:
            return
        if interrupted and reader is not None:
            reading.interrupting = asking = _in_thread(reader.interrupt)
        waiting = [each for each in (running, asking) if each is not None and not each.done()]
        await asyncio.wait(waiting, timeout=min(left, INTERRUPT_EVERY))


def _in_thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """Run a blocking function in a thread of its own, for which neither the loop's end nor the interpreter's waits."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # the loop has ended, and the future is no longer awaited
                loop.call_soon_threadsafe(partial(_end, done))

    threading.Thread(target=run, name="ledger reader", daemon=True).start()
    return done


def _end(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
