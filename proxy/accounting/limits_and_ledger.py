"""The composition of limits, budgets and the ledger in a process that serves."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from config.load_config import Loaded
from proxy.accounting.budget_warnings import watch_budgets
from proxy.accounting.counting_together import Siblings, lease_book
from proxy.accounting.ledger_service import LedgerService, loading, settings_of
from proxy.background_tasks import Work
from proxy.ledger.ledger_settings import LedgerState
from proxy.limits.lease_book import LeaseBook
from proxy.limits.limit_book import LimitBook
from proxy.limits.share_file import SAVE_EVERY, read_shares, write_shares
from proxy.loop_clock import loop_clock
from proxy.routing.snapshot import Snapshot
from proxy.shared_state.redis_sync import SharedState
from proxy.teams.team_limiter import TeamLimiter

SHARES: Final = "shares.json"
"""The file beside the journals with the last division of the limits. All processes of a gateway write it, whose shares
are alike."""


@dataclass(frozen=True, slots=True)
class LimitsAndLedger:
    """The limits of teams and of deployments, the ledger (None: the table has none), and what has to run beside."""

    team: TeamLimiter
    ledger: LedgerService | None
    services: Sequence[Callable[[], Work]]

    @property
    def book(self) -> LimitBook:
        """All that is counted."""
        return self.team.book

    def use(self, snapshot: Snapshot) -> None:
        """Put a table's limits in force for requests that begin from now on."""
        self.team.use(snapshot)
        if self.ledger is not None:
            self.ledger.use(snapshot)


@asynccontextmanager
async def limits_and_ledger(
    loaded: Loaded, snapshot: Snapshot, shared: SharedState | None, siblings: Siblings
) -> AsyncIterator[LimitsAndLedger]:
    """Count for the block. Of a gateway of one process, journals are loaded into the ledger too; otherwise that is the
    supervisor's work."""
    clock, settings = loop_clock(), settings_of(loaded)
    leases = lease_book(shared, siblings, clock)
    kept = None if settings is None or leases is None else settings.journals / SHARES
    shares = {} if kept is None else await asyncio.to_thread(_read, kept)
    book = LimitBook(clock, time.time, leases, shares)
    team = TeamLimiter(book, clock, time.time, random.random)
    services: list[Callable[[], Work]] = [lambda: watch_budgets(book.notes)]
    if leases is not None:
        services.append(leases.run)
        if kept is not None:
            services.append(lambda: _keep_shares(leases, kept))
    state = LedgerState()
    async with loading(settings if siblings.source is None else None, state):
        if settings is None:
            made = LimitsAndLedger(team, None, services)
            made.use(snapshot)
            yield made
            return
        ledger = LedgerService(settings, state, book)
        team.settling, team.unread = ledger.settling, ledger.unread
        services.append(ledger.run)
        made = LimitsAndLedger(team, ledger, services)
        made.use(snapshot)
        ledger.start()
        try:
            yield made
        finally:
            await asyncio.to_thread(ledger.close)


def _read(path: Path) -> dict[str, tuple[float, int]]:
    try:
        return read_shares(path)
    except OSError as error:
        logging.getLogger("dragoman").warning("limits: %s cannot be read: %s", path, error.strerror)
        return {}


async def _keep_shares(leases: LeaseBook, path: Path) -> None:
    """Write the division of the limits for ever."""
    said = ""
    while True:
        await asyncio.sleep(SAVE_EVERY)
        if shares := leases.shares():
            try:
                await asyncio.to_thread(write_shares, path, shares)
            except OSError as error:
                if said != (said := error.strerror or "failed"):
                    logging.getLogger("dragoman").warning("limits: %s cannot be written: %s", path, said)
