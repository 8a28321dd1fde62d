"""The thread that loads the journals every second. It runs in one of the processes that share their folder and serves
no request.

While the database is unavailable, the journals stay, and the database is tried again after growing waits. The log
reports once that the database is unavailable and once that it is available again.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from proxy.ledger.journal_files import LOADER_LOCK, lock_file
from proxy.ledger.journal_loader import JournalLoader, LoadingCancelledError
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState
from proxy.ledger.ledger_store import LedgerStore
from proxy.ledger.open_ledger import open_store

LOAD_EVERY: Final = 1.0
"""Seconds between two passes."""

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 30.0
"""The first and the longest wait in seconds until a database that failed is tried again. Each failure doubles the
wait."""

TIDY_EVERY: Final = 3600.0

STOP_TIMEOUT: Final = 10.0
"""The most seconds for which `stop` waits. Rows that are not loaded by then are loaded after the next start."""

LOG_PAUSE: Final = 60.0
"""Seconds between two log lines about consecutive failures."""

LONGEST_PAUSE: Final = 0.25


class LedgerLoading:
    """A loader that runs from `start` to `stop`, unless another process already loads the journals of the folder."""

    def __init__(
        self,
        settings: LedgerSettings,
        state: LedgerState | None = None,
        opened: Callable[[LedgerSettings], LedgerStore] = open_store,
    ) -> None:
        self.state = state or LedgerState()
        self._settings = settings
        self._open = opened
        self._loader = JournalLoader(settings.journals, settings.keep, self.state, self._pause)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger loader", daemon=True)
        self._lock: int | None = None
        self._store: LedgerStore | None = None
        self._tidied = -TIDY_EVERY
        self._failures = 0
        self._logged_at = -LOG_PAUSE
        self._began: float | None = None
        self._remains = False
        self._deadline: float | None = None
        self._log = logging.getLogger("dragoman")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def look(self) -> None:
        """Measure the backlog while the thread does not, because the database is unavailable or has not responded for
        LOAD_EVERY seconds. Call it regularly from another thread."""
        began = self._began
        if self._failures or (began is not None and time.monotonic() - began >= LOAD_EVERY):
            self._measure()

    def stop(self, seconds: float = STOP_TIMEOUT) -> None:
        """Load all rows within this time, and end. Blocks. Call it when every journal has been closed."""
        self._deadline = time.monotonic() + seconds
        self._ending.set()
        if self._thread.ident is None:
            return
        self._thread.join(seconds)
        if self._thread.is_alive() or self._remains:
            self._log.warning("ledger: not all is loaded; the journals in %s remain", self._settings.journals)

    def _run(self) -> None:
        wait = 0.0
        while not self._ending.wait(wait):
            wait = self._pass()
        self._pass()
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            os.close(self._lock)

    def _pass(self) -> float:
        """Load once, and return the seconds until the next pass."""
        self._began = time.monotonic()
        try:
            return self._load()
        finally:
            self._began = None

    def _load(self) -> float:
        """Load without noting when the pass began, and return the seconds until the next pass."""
        try:
            if not self._is_loader():
                return LOAD_EVERY
            if self._store is None:
                self._store = self._open(self._settings)
            self._loader.load(self._store)
            if time.monotonic() - self._tidied >= TIDY_EVERY:
                self._store.tidy(round(time.time() * 1000))
                self._tidied = time.monotonic()
            self._loader.measure()
        except LoadingCancelledError:
            self._remains = True
            return LOAD_EVERY
        except LedgerError as error:
            return self._failed(str(error))
        except OSError as error:
            return self._failed(f"the journals in {self._settings.journals} cannot be loaded: {error.strerror}")
        except Exception as error:  # A bug of the gateway: it must end neither the thread nor the gateway.
            why = f"the ledger at {self._settings.place} cannot be loaded: {type(error).__name__}"
            if self.state.trouble != why:
                self._log.exception("ledger: a fault while loading")
            return self._failed(why)
        if self._failures:
            self._failures, self.state.trouble = 0, None
            self._log.info("ledger: %s can be used again", self._settings.place)
        self._remains = False
        return LOAD_EVERY

    def _is_loader(self) -> bool:
        """Return whether this process loads."""
        if self._lock is None:
            self._settings.journals.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = lock_file(self._settings.journals / LOADER_LOCK)
            self.state.loading = self._lock is not None
        return self.state.loading

    def _failed(self, why: str) -> float:
        """Note a failure and return the seconds until the next try. The log reports the first failure of a series, and
        later ones with another reason at most once in LOG_PAUSE."""
        state, now = self.state, time.monotonic()
        state.load_errors += 1
        if not self._failures or (state.trouble != why and now - self._logged_at >= LOG_PAUSE):
            self._logged_at = now
            self._log.error("%s; requests stay in the journals in %s", why, self._settings.journals)
        state.trouble = why
        wait = min(FIRST_WAIT * 2.0 ** min(self._failures, 10), LONGEST_WAIT)
        self._failures += 1
        self._measure()
        self._remains = state.behind > 0
        return float(wait)

    def _measure(self) -> None:
        try:
            self._loader.measure()
        except OSError:
            self.state.load_errors += 1

    def _pause(self, took: float) -> None:
        """Pause for as long as a block took, so that other processes get as much time. While the loader stops, do not
        pause, and end at the deadline."""
        if self._deadline is None:
            self._ending.wait(min(took, LONGEST_PAUSE))
        elif time.monotonic() >= self._deadline:
            raise LoadingCancelledError
