"""Reports of usage, and the state of the ledger, for operators and teams over HTTP.

A process has one reader, which one thread at a time uses. Each client has one report at a time, so the reports of one
team delay another team's by at most the time of one report.
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
from proxy.ledger.usage_report import (
    UsageResponse,
    count_unloaded_rows,
    parse_usage_query,
    usage_json,
    usage_refusal,
    usage_report,
)

REPORT_TIMEOUT: Final = 10.0
"""The most seconds that a report may take. After them it is interrupted."""

STATE_TIMEOUT: Final = 1.0
"""The most seconds to wait for the state of the ledger. After them the rest of the status is shown without it."""

CLIENT_TIMEOUT: Final = 30.0
"""The most seconds that a client waits for its report, including the wait for other reports."""

MAX_CLIENTS: Final = 16
"""The most clients that wait for reports at a time."""

NO_LEDGER: Final = usage_refusal(
    404, "This gateway has no ledger: a configuration without teams needs `server.ledger` for one."
)
BUSY: Final = usage_refusal(503, "Another report is being made: try again shortly.")
AWAY: Final = usage_refusal(503, "The ledger cannot be read now.")
NO_ANSWER: Final = "the database does not answer"
TOO_LONG: Final = usage_refusal(
    503, "The report took too long: ask for a shorter time (since), or for fewer sums (by)."
)


@dataclass(frozen=True, slots=True)
class LedgerNow:
    """The ledger as operators see it. `place` names the database without a secret. `behind` is the age in seconds of
    the oldest row that waits to be loaded, `waiting` the number of waiting rows (`None` if unknown), and `dropped` the
    number of lost rows. `trouble` is the current failure."""

    place: str
    behind: float
    waiting: int | None
    dropped: int
    trouble: str | None

    def line(self) -> str:
        """Return the state as a line of text."""
        waiting = "rows waiting: unknown" if self.waiting is None else f"{self.waiting} rows waiting"
        lost = f", {self.dropped} rows lost" if self.dropped else ""
        trouble = f"; {self.trouble}" if self.trouble else ""
        return f"{self.place}, {self.behind:.1f} s behind, {waiting}{lost}{trouble}"


class UsageReports:
    """Reports by the ledger of `settings`, which is `None` if there is no ledger. `wall` returns unix seconds.
    `unwritten` returns how many rows are only in memory because the journal cannot be written."""

    def __init__(
        self,
        settings: LedgerSettings | None,
        wall: Callable[[], float] = time.time,
        longest: float = REPORT_TIMEOUT,
        opener: Opener = open_reader,
    ) -> None:
        self._settings = settings
        self._wall = wall
        self._longest = longest
        self._reading = None if settings is None else SharedLedgerReader(settings, opener)
        self.unwritten: Callable[[], int] = lambda: 0
        self._askers: dict[str, SharedTask] = {}

    async def answer(self, query_string: str, own: str | None = None) -> UsageResponse:
        """Return the response of `GET /usage`. `own` is the team of the request's key, `None` for the operator."""
        settings, reading = self._settings, self._reading
        if settings is None or reading is None:
            return NO_LEDGER
        query = parse_usage_query(query_string, settings.zone, round(self._wall() * 1000), own)
        if isinstance(query, UsageResponse):
            return query
        asker = "" if own is None else f"team {own}"
        if asker in self._askers or len(self._askers) >= MAX_CLIENTS:
            return BUSY
        made: list[UsageResponse] = []

        async def make() -> None:
            try:
                made.append(await self._report(reading, settings, query))
            finally:
                self._askers.pop(asker, None)

        # A client that disconnects does not end the thread. Its report occupies the client's slot until the thread has
        # ended.
        report = self._askers[asker] = SharedTask(make)
        try:
            async with asyncio.timeout(CLIENT_TIMEOUT):
                await report.run()
        except TimeoutError:
            return BUSY
        return made[0]

    async def now(self, state: LedgerState) -> LedgerNow | None:
        """Return the state of the ledger, `None` if there is no ledger."""
        settings, reading = self._settings, self._reading
        if settings is None or reading is None:
            return None
        waiting = None if reading.busy else await self._waiting(reading, settings)
        waiting = None if waiting is None else waiting + state.unwritten
        trouble = state.trouble or (NO_ANSWER if reading.silent else None)
        return LedgerNow(settings.place, state.lag(self._wall()), waiting, state.dropped, trouble)

    async def aclose(self) -> None:
        """End the reports in progress, and close the database."""
        self._longest = 0.0
        for report in tuple(self._askers.values()):
            await report.aclose()
        if self._reading is not None:
            await self._reading.aclose()

    async def _report(self, reading: SharedLedgerReader, settings: LedgerSettings, query: UsageQuery) -> UsageResponse:
        def report(reader: LedgerReader) -> bytes:
            return usage_json(usage_report(reader, query, count_unloaded_rows(reader, settings) + self.unwritten()))

        try:
            return UsageResponse(200, await reading.read(report, self._longest))
        except LedgerError:
            return AWAY
        except TimeoutError:
            return TOO_LONG

    async def _waiting(self, reading: SharedLedgerReader, settings: LedgerSettings) -> int | None:
        try:
            return await reading.read(
                lambda reader: count_unloaded_rows(reader, settings), min(self._longest, STATE_TIMEOUT)
            )
        except (LedgerError, TimeoutError):
            return None
