"""The composition of limits, budgets and the ledger in a serving process.

It logs events of limits: a budget that reaches a step, and a wall clock that was set back. Each process of a gateway
logs them once.
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
from proxy.accounting.limit_shares_file import ShareFile, read_shares_or_warn
from proxy.accounting.limits_coordinator import Siblings, make_leases
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

CHECK_EVERY: Final = 1.0
"""Seconds between two checks for events."""

_THEN: Final = {"warn": "", "reject": "; its requests are refused"}


class LimitEvents:
    """Logs the events of a process's limits. `wall` returns unix seconds."""

    def __init__(self, registry: LimitRegistry, wall: Callable[[], float], log: logging.Logger) -> None:
        self._registry = registry
        self._wall = wall
        self._log = log
        self._set_back = False

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(CHECK_EVERY)

    def look(self) -> None:
        """Log the events since the last check."""
        reached = self._registry.notes.reached
        while reached:
            self._log.warning("%s", step_message(*reached.popleft()))
        before, self._set_back = self._set_back, self._registry.set_back(self._wall())
        if self._set_back and not before:
            self._log.warning(
                "limits: the clock was set back: quotas and budgets stay in the later period until it ends"
            )


def step_message(scope: str, budget: ScopeBudget) -> str:
    """Return the log message about a team that has reached a step of its budget."""
    then = f"; its requests go to {budget.route}" if budget.then == "route" else _THEN[budget.then]
    return f"{scope} has reached {budget.at:.0%} of its budget of {budget_words(budget)}{then}"


SHARES_FILE: Final = "shares.{}.json"
"""The file beside the journals with a process's last shares of the limits that gateways share. Each process has its
own, because the parts of all must not exceed a limit when they start again without Redis."""

REDIS_REPLY_WITHIN: Final = 0.2
RETRY_EVERY: Final = 5.0
"""Seconds within which Redis usually replies. After them the number of processes is read from the ledger. It is read
again this long after each failure."""


@dataclass(frozen=True, slots=True)
class LimitsAndLedger:
    """The limits of teams and of deployments, the ledger (`None` if there is no ledger), the background tasks, and the
    reports of usage."""

    team: TeamLimiter
    ledger: LedgerService | None
    services: Sequence[Callable[[], Work]]
    reports: UsageReports
    eviction: EvictionWatch | None = None

    @property
    def evicting(self) -> str:
        """The advice about a Redis that may evict limits, empty if it does not, or if another process checks it."""
        return eviction_warning(self.eviction.policy) if self.eviction is not None and self.eviction.policy else ""

    @property
    def ledger_state(self) -> LedgerState | None:
        """The counts of this process's rows, `None` if there is no ledger."""
        return None if self.ledger is None else self.ledger.state

    @property
    def registry(self) -> LimitRegistry:
        """The registry of all limits."""
        return self.team.registry

    def use(self, snapshot: Snapshot) -> None:
        """Apply the limits of a configuration to requests that begin from now on."""
        self.team.use(snapshot)
        if self.ledger is not None:
            self.ledger.use(snapshot)


@asynccontextmanager
async def limits_and_ledger(
    loaded: Loaded, snapshot: Snapshot, shared: SharedState | None, siblings: Siblings
) -> AsyncIterator[LimitsAndLedger]:
    """Run the limits and the ledger for the block. If the gateway is one process, it also loads the journals into the
    ledger. Otherwise the supervisor does that."""
    clock, settings = loop_clock(), settings_of(loaded)
    leases = make_leases(shared, siblings, clock)
    shares_file = (
        None if settings is None or shared is None else settings.journals / SHARES_FILE.format(siblings.number)
    )
    shares = {} if shares_file is None else await asyncio.to_thread(read_shares_or_warn, shares_file)
    registry = LimitRegistry(clock, time.time, leases, shares)
    team = TeamLimiter(registry, clock, time.time, random.random)
    events = LimitEvents(registry, time.time, logging.getLogger("dragoman"))
    services: list[Callable[[], Work]] = [events.run]
    reports = UsageReports(settings)
    if leases is not None:
        services.append(leases.run)
        if shares_file is not None:
            services.append(ShareFile(shares_file, registry.shares).save_changes)
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
        ledger = LedgerService(settings, state, registry, clock=clock)
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
    """Set the expected number of processes to the number that write to a ledger shared by gateways, unless the
    coordinator replies first."""
    await asyncio.sleep(REDIS_REPLY_WITHIN)
    while leases.guessed:
        if (writers := await ledger.writers()) is not None:
            leases.expect(writers)
            return
        await asyncio.sleep(RETRY_EVERY)
