"""The ledger in a process that serves: its journal, and what the ledger says that teams have spent."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from config.load_config import Loaded
from proxy.ledger.journal import Journal
from proxy.ledger.ledger_row import TagsJson, written_tags
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, ledger_settings
from proxy.ledger.ledger_state import LedgerState
from proxy.ledger.ledger_store import LedgerReader, SpendChanges
from proxy.ledger.loading import LedgerLoading
from proxy.ledger.open_ledger import open_reader
from proxy.ledger.period_sums import PeriodSums
from proxy.limits.limit import Period
from proxy.limits.limit_book import LimitBook
from proxy.request_record import UNKNOWN_TEAM, RequestRecord
from proxy.routing.snapshot import Snapshot

READ_EVERY: Final = 1.0
"""Seconds between two looks at what has been loaded."""


def settings_of(loaded: Loaded) -> LedgerSettings | None:
    """Return where a table's ledger is, None where it has none."""
    return None if loaded.ledger is None else ledger_settings(loaded.ledger, loaded.config.server.timezone)


class LedgerService:
    """Writes the row of each request whose team is known, and keeps a process's limits up with what all processes
    wrote."""

    def __init__(self, settings: LedgerSettings, book: LimitBook, wall: Callable[[], float] = time.time) -> None:
        self.state = LedgerState()
        self._read = False
        self._settings = settings
        self._book = book
        self._wall = wall
        self._journal = Journal(settings.journals, self.state)
        self._tags: Mapping[str, TagsJson] = {}
        self._sums = PeriodSums(frozenset())
        self._reader: LedgerReader | None = None
        self._failed = False
        self._said = ""
        self._log = logging.getLogger("dragoman")

    def use(self, snapshot: Snapshot) -> None:
        """Write the tags, and read what is spent, of the teams of a table from now on."""
        self._tags = {name: written_tags(team.tags) for name, team in snapshot.teams.items() if team.tags}
        quotas = (scope for scope, limits in snapshot.scopes.items() if limits.quotas)
        budgets = (f"team {name}" for name, team in snapshot.teams.items() if team.limits.budgets)
        wanted = frozenset((*quotas, *budgets))
        if wanted != self._sums.wanted:
            self._sums = PeriodSums(wanted)

    def unread(self) -> bool:
        """Return whether requests of teams with a budget are refused, since nobody knows yet what was spent."""
        return self._settings.refuses_unread and not self._read

    def settling(self) -> None:
        """Number what is settled next as the row that follows."""
        self._book.notes.mark = self._journal.sequence + 1

    def append(self, record: RequestRecord) -> None:
        """Write a request that has ended."""
        if record.team != UNKNOWN_TEAM:
            self._journal.append(record, record.user, self._tags.get(record.team))

    def start(self) -> None:
        """Begin to write."""
        self._journal.start()

    def close(self) -> None:
        """Write every row. Blocks for as long as the disk does."""
        self._journal.close()
        if self._reader is not None:
            self._reader.close()

    async def run(self) -> None:
        """Read what has been spent until cancelled."""
        while True:
            if self._sums.wanted:
                await self._read_spent()
            await asyncio.sleep(READ_EVERY)

    async def _read_spent(self) -> None:
        """Read what has changed, and hand it to the limits."""
        sums, periods = self._sums, self._book.periods(self._wall())
        try:
            changes = await asyncio.to_thread(self._changes, sums, periods)
        except LedgerError as error:
            # The first time, the database may just be being made.
            self._complain(str(error) if self._failed else "")
            self._failed = True
            return
        self._complain("")
        self._failed = False
        found = sums.add(changes, periods, self._wall())
        if found is None:
            return
        mark = changes.loaded.get(self._journal.process, 0)
        for (period, start), amounts in found.items():
            self._book.load(period, start, amounts, mark)
        self._read = True

    def _changes(self, sums: PeriodSums, periods: Mapping[Period, tuple[int, int]]) -> SpendChanges:
        if self._reader is None:
            self._reader = open_reader(self._settings)
        return self._reader.spent_since(sums.first_slot(periods), sums.batch)

    def _complain(self, trouble: str) -> None:
        """Log a change of what keeps the ledger from being read."""
        if trouble == self._said:
            return
        self._said = trouble
        if trouble:
            self._log.warning("ledger: what was spent cannot be read: %s", trouble)
        else:
            self._log.info("ledger: what was spent is read")


@asynccontextmanager
async def loading(settings: LedgerSettings | None) -> AsyncIterator[LedgerState | None]:
    """Load journals into the database for the block, and all that is left at its end."""
    if settings is None:
        yield None
        return
    loads = LedgerLoading(settings)
    loads.start()
    try:
        yield loads.state
    finally:
        await asyncio.to_thread(loads.stop)
