"""A reader of the ledger that one thread at a time uses, and whose reading can be ended.

Neither database's driver may close a connection under a thread that reads: Python's `sqlite3` crashes (3.11). So what
takes too long, or is no longer waited for, is interrupted until its thread has ended, and only then is the reader free.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from proxy.ledger.ledger_settings import LedgerError, LedgerSettings
from proxy.ledger.ledger_store import LedgerReader
from proxy.ledger.open_ledger import open_reader

INTERRUPT_EVERY: Final = 0.1
"""Seconds between interruptions: one that comes between two statements stops neither."""

T = TypeVar("T")

Opener = Callable[[LedgerSettings], LedgerReader]


class ReaderTurns:
    """Opens the reader when it is first used, and anew after an error."""

    def __init__(self, settings: LedgerSettings, opener: Opener = open_reader) -> None:
        self._settings = settings
        self._opener = opener
        self._reader: LedgerReader | None = None
        self._turn = asyncio.Lock()

    @property
    def taken(self) -> bool:
        """Whether somebody reads."""
        return self._turn.locked()

    async def read(self, work: Callable[[LedgerReader], T], longest: float | None = None) -> T:
        """Run a blocking function that reads in a thread, when it is its turn. Raises what it raises, LedgerError where
        there is nothing to read, and TimeoutError after `longest` seconds of work."""
        async with self._turn:
            running = asyncio.get_running_loop().run_in_executor(None, self._run, work)
            try:
                done, _ = await asyncio.wait((running,), timeout=longest)
                if done:
                    return running.result()
            finally:
                # Also when this is cancelled: the reader is the thread's until it ends.
                while not running.done():
                    if (reader := self._reader) is not None:
                        await asyncio.to_thread(reader.interrupt)
                    await asyncio.wait((running,), timeout=INTERRUPT_EVERY)
                if not running.cancelled():
                    running.exception()  # that it was interrupted, or failed, while nobody waited for it
            raise TimeoutError

    async def aclose(self) -> None:
        """Let go of the database, once nobody reads any more."""
        async with self._turn:
            await asyncio.to_thread(self._let_go)

    def _run(self, work: Callable[[LedgerReader], T]) -> T:
        if self._reader is None:
            self._reader = self._opener(self._settings)
        try:
            return work(self._reader)
        except LedgerError:
            self._let_go()
            raise

    def _let_go(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
