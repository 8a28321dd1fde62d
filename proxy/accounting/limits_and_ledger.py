"""The composition of limits, budgets and the ledger in a process that serves.

Logs what happens to limits: budgets that come to a step, and a wall clock that was set back.

A gateway of several processes says it once for each.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from config.load_config import Loaded
from proxy.accounting.ledger_service import LedgerService, settings_of
from proxy.accounting.limit_shares_file import ShareFile, read_or_say
from proxy.accounting.limits_coordinator import Siblings, lease_book
from proxy.accounting.loader_process import loading
from proxy.accounting.usage_reports import UsageReports
from proxy.background_tasks import Work
from proxy.ledger.ledger_settings import LedgerState
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.limit import ScopeBudget, budget_words
from proxy.limits.limit_registry import LimitRegistry
from proxy.loop_clock import loop_clock
from proxy.routing.snapshot import Snapshot
from proxy.shared_state.redis_eviction import EvictionWatch, eviction_warning
from proxy.shared_state.redis_sync import SharedState
from proxy.teams.team_limiter import TeamLimiter

LOOK_EVERY: Final = 1.0
"""Seconds between two looks."""

_THEN: Final = {"warn": "", "reject": "; its requests are refused"}


class LimitEvents:
    """Logs the events of a process's limits. `wall` returns unix seconds."""

    def __init__(self, book: LimitRegistry, wall: Callable[[], float], log: logging.Logger) -> None:
        self._book = book
        self._wall = wall
        self._log = log
        self._set_back = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY)

    def look(self) -> None:
        """Log what happened since the last look."""
        reached = self._book.notes.reached
        while reached:
            self._log.warning("%s", reached_words(*reached.popleft()))
        before, self._set_back = self._set_back, self._book.set_back(self._wall())
        if self._set_back and not before:
            self._log.warning(
                "limits: the clock was set back: quotas and budgets stay in the later period until it ends"
            )


def reached_words(scope: str, budget: ScopeBudget) -> str:
    """Return the line that says what a team has come to."""
    then = f"; its requests are answered by {budget.route}" if budget.then == "route" else _THEN[budget.then]
    return f"{scope} has come to {budget.at:.0%} of its budget of {budget_words(budget)}{then}"


SHARES: Final = "shares.{}.json"
"""The file beside the journals with a process's last shares of the limits that gateways share: that of each one, since
the parts of all must not add up to more than a limit when they start again without Redis."""

ANSWERS_WITHIN: Final = 0.2
ASK_AGAIN: Final = 5.0
"""Seconds in which Redis ordinarily answers, before the ledger is asked instead, and between two questions to it."""


@dataclass(frozen=True, slots=True)
class LimitsAndLedger:
    """The limits of teams and of deployments, the ledger (None: the table has none), what has to run beside, and what
    answers who asks for usage."""

    team: TeamLimiter
    ledger: LedgerService | None
    services: Sequence[Callable[[], Work]]
    reports: UsageReports
    eviction: EvictionWatch | None = None

    @property
    def evicting(self) -> str:
        """What to do about a Redis that may throw limits away, empty where it does not, or another process asks."""
        return eviction_warning(self.eviction.policy) if self.eviction is not None and self.eviction.policy else ""

    @property
    def ledger_state(self) -> LedgerState | None:
        """What became of the rows of this process; None without a ledger."""
        return None if self.ledger is None else self.ledger.state

    @property
    def book(self) -> LimitRegistry:
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
    kept = None if settings is None or shared is None else settings.journals / SHARES.format(siblings.number)
    shares = {} if kept is None else await asyncio.to_thread(read_or_say, kept)
    book = LimitRegistry(clock, time.time, leases, shares)
    team = TeamLimiter(book, clock, time.time, random.random)
    events = LimitEvents(book, time.time, logging.getLogger("dragoman"))
    services: list[Callable[[], Work]] = [events.run]
    reports = UsageReports(settings)
    if leases is not None:
        services.append(leases.run)
        if kept is not None:
            services.append(ShareFile(kept, book.shares).keep)
    eviction = None
    if shared is not None and siblings.number == 1:
        eviction = EvictionWatch(shared.command)
        services.append(partial(eviction.run, logging.getLogger("dragoman")))
    state = LedgerState()
    reports.unwritten = lambda: state.unwritten
    loaded_here = settings if siblings.source is None else None
    async with loading(loaded_here, state, loaded.config.server.log.form):
        if settings is None:
            made = LimitsAndLedger(team, None, services, reports, eviction)
            made.use(snapshot)
            yield made
            return
        ledger = LedgerService(settings, state, book, clock=clock)
        team.settling, team.unread = ledger.settling, ledger.unread
        users = team.users
        users.known, users.learn, users.gone = ledger.knows_user, ledger.users.learn, ledger.forget_user
        users.refuses_unread, ledger.unknown = settings.refuses_unread, users.unknown
        services += [ledger.run, ledger.users.run]
        if leases is not None and leases.guessed:
            services.append(lambda: _count_writers(ledger, leases))
        made = LimitsAndLedger(team, ledger, services, reports, eviction)
        made.use(snapshot)
        ledger.start()
        try:
            await ledger.catch_up()
            yield made
        finally:
            await reports.aclose()
            await ledger.aclose()


async def _count_writers(ledger: LedgerService, leases: LeaseRegistry) -> None:
    """Expect as many processes as write to a ledger that gateways share, unless whoever counts answers first."""
    await asyncio.sleep(ANSWERS_WITHIN)
    while leases.guessed:
        if (writers := await ledger.writers()) is not None:
            leases.expect(writers)
            return
        await asyncio.sleep(ASK_AGAIN)
