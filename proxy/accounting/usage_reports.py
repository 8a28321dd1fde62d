"""Reports of usage and the state of the ledger, for operators and teams that ask over HTTP.

A process has one reader, which one thread at a time uses, and each asker one report at a time: reports of one team do
not take the place of another's for longer than one of them may run.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.accounting.ledger_reader import Opener, SharedLedgerReader
from proxy.background_tasks import SharedTask
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState
from proxy.ledger.ledger_store import LedgerReader
from proxy.ledger.open_ledger import open_reader
from proxy.ledger.usage_query import UsageQuery
from proxy.ledger.usage_report import UsageAnswer, asked_over_http, refused, rows_unloaded, usage_json, usage_report

LONGEST: Final = 10.0
"""Seconds that a report may take; after them it is interrupted."""

LOOK: Final = 1.0
"""Seconds that the state of the ledger is waited for; without it the rest of the status is shown."""

PATIENCE: Final = 30.0
"""Seconds that an asker waits, for others and for the report."""

MOST_ASKING: Final = 16
"""Askers at a time."""

NO_LEDGER: Final = refused(
    404, "This gateway has no ledger: a table without teams has one if it says where (server.ledger)."
)
BUSY: Final = refused(503, "Another report is being made: try again shortly.")
AWAY: Final = refused(503, "The ledger cannot be read now.")
NO_ANSWER: Final = "the database does not answer"
TOO_LONG: Final = refused(503, "The report took too long: ask for a shorter time (since), or for fewer sums (by).")


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


class UsageReports:
    """Answers by the ledger of `settings`; None where the table has none. `wall` returns unix seconds, `unwritten` how
    many rows are only in memory, since the journal cannot be written."""

    def __init__(
        self,
        settings: LedgerSettings | None,
        wall: Callable[[], float] = time.time,
        longest: float = LONGEST,
        opener: Opener = open_reader,
    ) -> None:
        self._settings = settings
        self._wall = wall
        self._longest = longest
        self._reading = None if settings is None else SharedLedgerReader(settings, opener)
        self.unwritten: Callable[[], int] = lambda: 0
        self._askers: dict[str, SharedTask] = {}

    async def answer(self, query_string: str, own: str | None = None) -> UsageAnswer:
        """Return the answer of `GET /usage`. `own` is the team whose key asks, None for the operator."""
        settings, reading = self._settings, self._reading
        if settings is None or reading is None:
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
                made.append(await self._report(reading, settings, query))
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
        settings, reading = self._settings, self._reading
        if settings is None or reading is None:
            return None
        waiting = None if reading.taken else await self._waiting(reading, settings)
        waiting = None if waiting is None else waiting + state.unwritten
        trouble = state.trouble or (NO_ANSWER if reading.silent else None)
        return LedgerNow(settings.place, state.lag(self._wall()), waiting, state.dropped, trouble)

    async def aclose(self) -> None:
        """End the reports under way, and let go of the database."""
        self._longest = 0.0
        for report in tuple(self._askers.values()):
            await report.aclose()
        if self._reading is not None:
            await self._reading.aclose()

    async def _report(self, reading: SharedLedgerReader, settings: LedgerSettings, query: UsageQuery) -> UsageAnswer:
        def report(reader: LedgerReader) -> bytes:
            return usage_json(usage_report(reader, query, rows_unloaded(reader, settings) + self.unwritten()))

        try:
            return UsageAnswer(200, await reading.read(report, self._longest))
        except LedgerError:
            return AWAY
        except TimeoutError:
            return TOO_LONG

    async def _waiting(self, reading: SharedLedgerReader, settings: LedgerSettings) -> int | None:
        try:
            return await reading.read(lambda reader: rows_unloaded(reader, settings), min(self._longest, LOOK))
        except (LedgerError, TimeoutError):
            return None
