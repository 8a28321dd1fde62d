"""The ledger in a process that serves: its journal, and what the ledger says that teams have spent."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from config.load_config import Loaded
from proxy.ledger.journal import Journal
from proxy.ledger.ledger_row import TagsJson, written_tags
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState, ledger_settings
from proxy.ledger.open_ledger import open_reader
from proxy.ledger.spent_totals import SpentNews, SpentTotals
from proxy.limits.limit import Period
from proxy.limits.limit_book import LimitBook
from proxy.request_record import UNKNOWN_TEAM, RequestRecord
from proxy.routing.snapshot import Snapshot

READ_EVERY: Final = 1.0
"""Seconds between two looks at what has been loaded."""

MAKING: Final = 5.0
"""Seconds for which a database that cannot be read is not spoken of: it may just be being made."""


def settings_of(loaded: Loaded) -> LedgerSettings | None:
    """Return where a table's ledger is, None where it has none."""
    return None if loaded.ledger is None else ledger_settings(loaded.ledger, loaded.config.server.timezone)


class LedgerService:
    """Writes the row of each request whose team is known, and keeps a process's limits up with what all processes
    wrote. What was answered without asking a deployment (lists of models, usage, stored answers) has no row, and no
    limit counts it."""

    def __init__(
        self, settings: LedgerSettings, state: LedgerState, book: LimitBook, wall: Callable[[], float] = time.time
    ) -> None:
        self.state = state
        self._read = False
        self._settings = settings
        self._book = book
        self._wall = wall
        self._journal = Journal(settings.journals, self.state)
        self._tags: Mapping[str, TagsJson] = {}
        self._spends = False
        self._totals: SpentTotals[Period] | None = None
        self._failing: float | None = None
        self._said = ""
        self._log = logging.getLogger("dragoman")

    def use(self, snapshot: Snapshot) -> None:
        """Write the tags, and read what is spent, of the teams of a table from now on."""
        self._tags = {name: written_tags(team.tags) for name, team in snapshot.teams.items() if team.tags}
        quotas = any(limits.quotas for limits in snapshot.scopes.values())
        self._spends = quotas or any(team.limits.budgets for team in snapshot.teams.values())

    def unread(self) -> bool:
        """Return whether requests of teams with a budget are refused, since nobody knows yet what was spent."""
        return self._settings.refuses_unread and not self._read

    def settling(self) -> None:
        """Number what is settled next as the row that follows."""
        self._book.notes.mark = self._journal.sequence + 1

    def append(self, record: RequestRecord) -> None:
        """Write a request that has ended."""
        if record.team != UNKNOWN_TEAM and (record.attempts or record.outcome != "ok" or record.from_cache):
            self._journal.append(record, record.user, self._tags.get(record.team))

    def start(self) -> None:
        """Begin to write."""
        self._journal.start()

    def close(self) -> None:
        """Write every row. Blocks for as long as the disk does."""
        self._journal.close()
        if self._totals is not None:
            self._totals.reader.close()

    async def run(self) -> None:
        """Read what has been spent until cancelled."""
        while True:
            if self._spends:
                await self._read_spent()
            await asyncio.sleep(READ_EVERY)

    async def _read_spent(self) -> None:
        """Read what has changed, and hand it to the limits."""
        periods = self._book.periods(self._wall())
        try:
            news = await asyncio.to_thread(self._news, periods)
        except LedgerError as error:
            self._complain(str(error) if self._failing_long() else "")
            return
        except Exception as error:  # a fault of ours: requests are served without what was spent
            if not self._said:
                self._log.exception("ledger: a fault while reading")
            self._complain(type(error).__name__)
            return
        self._complain("")
        self._failing = None
        mark = news.loaded.get(self._journal.process, 0)
        for period, sums in news.sums.items():
            self._book.load(period, periods[period][0], sums, mark)
        self._read = True

    def _news(self, periods: Mapping[Period, tuple[int, int]]) -> SpentNews[Period]:
        if self._totals is None:
            self._totals = SpentTotals(open_reader(self._settings))
        return self._totals.refresh(periods, int(self._wall()))

    def _failing_long(self) -> bool:
        """Return whether the database could not be read for MAKING seconds."""
        now = asyncio.get_running_loop().time()
        if self._failing is None:
            self._failing = now
        return now - self._failing >= MAKING

    def _complain(self, trouble: str) -> None:
        """Log a change of what keeps the ledger from being read."""
        if trouble == self._said:
            return
        self._said = trouble
        if trouble:
            self._log.warning("ledger: what was spent cannot be read: %s", trouble)
        else:
            self._log.info("ledger: what was spent is read")
