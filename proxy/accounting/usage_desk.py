"""Reports of usage and the state of the ledger, for operators and teams that ask over HTTP.

A process has one reader, which one thread at a time uses, and each asker one report at a time: reports of one team do
not take the place of another's for longer than one of them may run.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from proxy.background_tasks import SharedTask
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState
from proxy.ledger.ledger_store import LedgerReader
from proxy.ledger.open_ledger import open_reader
from proxy.ledger.usage_query import UsageQuery
from proxy.ledger.usage_report import UsageAnswer, answered_over_http, asked_over_http, refused, rows_unloaded

LONGEST: Final = 10.0
"""Seconds that a report may take; after them it is interrupted."""

PATIENCE: Final = 30.0
"""Seconds that an asker waits, for others and for the report."""

MOST_ASKING: Final = 16
"""Askers at a time."""

INTERRUPT_EVERY: Final = 0.25
"""Seconds between interruptions of a report that is too long: one that comes between two statements stops neither."""

NO_LEDGER: Final = refused(
    404, "This gateway has no ledger: a table without teams has one if it says where (server.ledger)."
)
BUSY: Final = refused(503, "Another report is being made: try again shortly.")
TOO_LONG: Final = refused(503, "The report took too long: ask for a shorter time (since), or for fewer sums (by).")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LedgerNow:
    """The ledger as operators see it: the database in words that hold no secret, the age in seconds of the oldest row
    that waits to be loaded, how many wait (None: not known), how many were lost, and what does not work now."""

    place: str
    behind: float
    waiting: int | None
    dropped: int
    trouble: str | None

    def line(self) -> str:
        """Return it as a line."""
        waiting = "rows waiting: unknown" if self.waiting is None else f"{self.waiting} rows waiting"
        lost = f", {self.dropped} rows lost" if self.dropped else ""
        trouble = f"; {self.trouble}" if self.trouble else ""
        return f"{self.place}, {self.behind:.1f} s behind, {waiting}{lost}{trouble}"


class UsageDesk:
    """Answers by the ledger of `settings`; None where the table has none. `wall` returns unix seconds."""

    def __init__(
        self,
        settings: LedgerSettings | None,
        wall: Callable[[], float] = time.time,
        longest: float = LONGEST,
        opener: Callable[[LedgerSettings], LedgerReader] = open_reader,
    ) -> None:
        self._settings = settings
        self._wall = wall
        self._longest = longest
        self._opener = opener
        self._reader: LedgerReader | None = None
        self._turn = asyncio.Lock()
        self._askers: dict[str, SharedTask] = {}

    async def answer(self, query_string: str, own: str | None = None) -> UsageAnswer:
        """Return the answer of `GET /usage`. `own` is the team whose key asks, None for the operator."""
        settings = self._settings
        if settings is None:
            return NO_LEDGER
        query = asked_over_http(query_string, settings.zone, round(self._wall() * 1000), own)
        if isinstance(query, UsageAnswer):
            return query
        asker = "" if own is None else f"team {own}"
        if asker in self._askers or len(self._askers) >= MOST_ASKING:
            return BUSY
        made: list[UsageAnswer] = []

        async def make() -> None:
            try:
                made.append(await self._in_turn(partial(self._report, settings, query), TOO_LONG))
            finally:
                self._askers.pop(asker, None)

        # A client that leaves does not end the thread: its report keeps the asker's place until then.
        report = self._askers[asker] = SharedTask(make)
        try:
            async with asyncio.timeout(PATIENCE):
                await report.run()
        except TimeoutError:
            return BUSY
        return made[0]

    async def now(self, state: LedgerState) -> LedgerNow | None:
        """Return the state of the ledger; None where there is none."""
        settings = self._settings
        if settings is None:
            return None
        waiting = None if self._turn.locked() else await self._in_turn(partial(self._waiting, settings), None)
        return LedgerNow(settings.place, state.behind, waiting, state.dropped, state.trouble)

    async def aclose(self) -> None:
        """End the reports under way, and let go of the database."""
        self._longest = 0.0
        for report in tuple(self._askers.values()):
            await report.aclose()
        async with self._turn:
            await asyncio.to_thread(self._let_go)

    async def _in_turn(self, work: Callable[[], T], too_long: T) -> T:
        """Run a blocking function that reads, alone; interrupt one that takes too long."""
        async with self._turn:
            running = asyncio.get_running_loop().run_in_executor(None, work)
            try:
                done, _ = await asyncio.wait((running,), timeout=self._longest)
                if done:
                    return running.result()
            finally:
                # Also when this is cancelled: the reader is the thread's until it ends.
                while not running.done():
                    if (reader := self._reader) is not None:
                        await asyncio.to_thread(reader.interrupt)
                    await asyncio.wait((running,), timeout=INTERRUPT_EVERY)
            return too_long

    def _report(self, settings: LedgerSettings, query: UsageQuery) -> UsageAnswer:
        try:
            reader = self._open(settings)
            waiting = rows_unloaded(reader, settings)
        except LedgerError:
            self._let_go()
            return refused(503, "The ledger cannot be read now.")
        made = answered_over_http(reader, query, waiting)
        if made.status != 200:
            self._let_go()
        return made

    def _waiting(self, settings: LedgerSettings) -> int | None:
        try:
            return rows_unloaded(self._open(settings), settings)
        except LedgerError:
            self._let_go()
            return None

    def _open(self, settings: LedgerSettings) -> LedgerReader:
        if self._reader is None:
            self._reader = self._opener(settings)
        return self._reader

    def _let_go(self) -> None:
        """Close the reader: the next one opens the database anew."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
