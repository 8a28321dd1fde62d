"""The status of the gateway for its operator, whether it runs as one process or as several."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import chain
from typing import Final, Protocol

from config.problem import did_you_mean, shown
from proxy.accounting.limit_report import limit_lines, limits_report, merged_views, most_used, with_unused
from proxy.accounting.limits_and_ledger import LimitsAndLedger
from proxy.accounting.usage_reports import LedgerNow
from proxy.admin.failed_requests import FailedRequest, FailedRequests, newest_of
from proxy.admin.last_hour.hour_counter import HourCounter
from proxy.admin.last_hour.hour_figures import NO_HOUR, HourFigures, hour_of_all
from proxy.admin.recent_requests import NO_USES, RecentRequests, RecentUses, summed
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker import State
from proxy.deployment_health.concurrency_limit import Limited
from proxy.deployment_health.last_failures import Noted, latest
from proxy.discovery.discovered_models import DiscoveredModels, ListState
from proxy.dispatch.single_attempt import Dispatcher
from proxy.gateway.handle_request import Gateway
from proxy.ledger.ledger_settings import LedgerState
from proxy.ledger.usage_report import UsageResponse
from proxy.limits.limit_views import LimitView
from proxy.routing.snapshot import CurrentSnapshot, Snapshot
from proxy.telemetry.cached_exposition import CachedExposition
from proxy.telemetry.log_format import timestamp
from proxy.telemetry.log_writer import LineWriter
from proxy.version import VERSION

MOST_TEAMS: Final = 20
"""Teams that are named where one is asked for that does not exist."""

MOST_NAME: Final = 200
"""Characters of a name that are compared with others."""


class DeploymentState(IntEnum):
    """The circuit of a deployment if it is not closed; the greater the worse. COOLING is a cooldown that the vendor
    requested, OPEN is due to its failures."""

    HALF_OPEN = 1
    COOLING = 2
    OPEN = 3


class StatusSource(Protocol):
    """What the operators' endpoints show of a gateway, in however many processes."""

    @property
    def ready(self) -> bool:
        """Return whether it takes requests."""

    async def view(self) -> "GatewayView":
        """Return what the status page shows."""

    async def limits(self, team: str | None) -> dict[str, object]:
        """Return what is left of the limits that are used most, or of those of a team, as JSON values."""

    async def usage(self, query_string: str) -> UsageResponse:
        """Return the answer of `GET /usage`, of all teams."""

    @property
    def exposition(self) -> CachedExposition:
        """The metrics in Prometheus' text format."""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The status of one process. `unavailable` are its deployments with an open circuit breaker or a cooldown, with the
    seconds until they may be called; `last_failures` the last failure of each deployment that had one; `limited` those
    with a concurrency limit; `shared` the state of its link to the other processes: off, up or alone; `model_lists` the
    vendors' own lists of models that the config file has fetched; `limits` those that are used most, and
    `limits_alone` whether they are divided as was last known, since Redis or the coordinator does not answer;
    `limits_evicted` what to do about a Redis that may evict them; `states` are those of deployments whose circuit is
    not closed; `recent` counts the last minutes; `failed` are the last failed requests,
    newest first; `hour` is the last hour by minute."""

    ready: bool
    in_flight: int
    log_lines_dropped: int
    unavailable: Mapping[str, float]
    shared: str = "off"
    last_failures: Mapping[str, Noted] = field(default_factory=dict)
    limited: Mapping[str, Limited] = field(default_factory=dict)
    model_lists: Mapping[str, ListState] = field(default_factory=dict)
    limits: tuple[LimitView, ...] = ()
    limits_alone: bool = False
    limits_evicted: str = ""
    ledger: LedgerState | None = None
    states: Mapping[str, DeploymentState] = field(default_factory=dict)
    recent: RecentUses = NO_USES
    failed: tuple[FailedRequest, ...] = ()
    hour: HourFigures = NO_HOUR


@dataclass(frozen=True, slots=True)
class WorkerNow:
    """A worker that serves: its name, the digest of its table, and its requests in flight."""

    name: str
    digest: str
    in_flight: int

    def __str__(self) -> str:
        return f"{self.name}, table {self.digest[:12]}, {self.in_flight} in flight"


@dataclass(frozen=True, slots=True)
class GatewayView:
    """What operators see of a gateway at a moment. `since` is when it started and `now` this moment, in unix seconds;
    `workers` are None where one process serves."""

    snapshot: Snapshot
    status: ProcessStatus
    ledger: LedgerNow | None
    since: int
    now: float
    workers: tuple[WorkerNow, ...] | None = None


def combined(statuses: Iterable[ProcessStatus]) -> ProcessStatus:
    """Combine the statuses of several processes: ready as soon as one is, the longest wait of each deployment, the sum
    of its limits, up as long as no process is alone, and of each vendor's list of models the state that is worst.
    Limits that they share are as the process says that knows of most, alone as soon as one counts alone."""
    every = list(statuses)
    longest: dict[str, float] = {}
    limits: dict[str, Limited] = {}
    lists: dict[str, ListState] = {}
    for status in every:
        for name, wait in status.unavailable.items():
            longest[name] = max(wait, longest.get(name, 0.0))
        for name, limited in status.limited.items():
            limits[name] = limited.beside(limits[name]) if name in limits else limited
        for name, listed in status.model_lists.items():
            lists[name] = listed.beside(lists[name]) if name in lists else listed
    return ProcessStatus(
        any(status.ready for status in every),
        sum(status.in_flight for status in every),
        sum(status.log_lines_dropped for status in every),
        longest,
        next((status.shared for status in every if status.shared != "up"), "up") if every else "off",
        latest(status.last_failures for status in every),
        limits,
        lists,
        merged_views(status.limits for status in every),
        any(status.limits_alone for status in every),
        next((status.limits_evicted for status in every if status.limits_evicted), ""),
        together([status.ledger for status in every if status.ledger is not None]),
        _worst_states(status.states for status in every),
        summed(status.recent for status in every),
        newest_of(status.failed for status in every),
        hour_of_all(status.hour for status in every),
    )


def _worst_states(several: Iterable[Mapping[str, DeploymentState]]) -> Mapping[str, DeploymentState]:
    worst: dict[str, DeploymentState] = {}
    for states in several:
        for label, state in states.items():
            worst[label] = max(state, worst.get(label, state))
    return worst


def together(states: Iterable[LedgerState]) -> LedgerState | None:
    """Return the state of several processes' ledger: what they lost together, the longest delay, the first trouble."""
    every = list(states)
    if not every:
        return None
    return LedgerState(
        dropped=sum(state.dropped for state in every),
        behind=max(state.behind for state in every),
        unwritten=sum(state.unwritten for state in every),
        oldest=min((state.oldest for state in every if state.oldest is not None), default=None),
        trouble=next((state.trouble for state in every if state.trouble), None),
    )


def status_facts(snapshot: Snapshot, status: ProcessStatus, ledger: LedgerNow | None = None) -> dict[str, object]:
    """Return what the status page shows of a snapshot, a status and a ledger, by name."""
    return {
        "version": VERSION,
        "table": snapshot.digest,
        "ready": status.ready,
        "in_flight": status.in_flight,
        "log_lines_dropped": status.log_lines_dropped,
        "teams": sorted(snapshot.teams),
        "routes": sorted(snapshot.routes),
        "deployments": sorted(target.label for target in snapshot.targets()),
        "out_of_service": sorted(snapshot.out_of_service),
        "shared": status.shared,
        "unavailable": [f"{name}, {wait:.1f} s" for name, wait in sorted(status.unavailable.items())],
        "last_failures": [
            f"{timestamp(noted.when)} {noted.name}: {noted.text}" for _, noted in sorted(status.last_failures.items())
        ],
        "limited": [f"{name}, {limited}" for name, limited in sorted(status.limited.items())],
        "model_lists": [f"{name}, {listed}" for name, listed in sorted(status.model_lists.items())],
        "limits": limit_lines(status.limits),
        "limits_alone": status.limits_alone,
        "limits_evicted": status.limits_evicted,
        "ledger": "none" if ledger is None else ledger.line(),
    }


def limit_facts(snapshot: Snapshot, status: ProcessStatus, team: str | None, wall: float) -> dict[str, object]:
    """Return the answer of `GET /limits`. `unknown` says so of a team that the table does not have."""
    alone: dict[str, object] = {"alone": status.limits_alone, "zone": str(snapshot.zone), "team": team}
    if status.limits_evicted:
        alone["evicted"] = status.limits_evicted
    if team is not None and team not in snapshot.teams:
        team = team[:MOST_NAME]
        named = did_you_mean(team, snapshot.teams) or _teams(snapshot)
        alone["unknown"] = f"no team {shown(team)}{named}"
    patience = {name: each.limits.patience for name, each in snapshot.teams.items()}
    return limits_report(with_unused(status.limits, snapshot, wall, team), alone, patience)


def _teams(snapshot: Snapshot) -> str:
    """Return a clause with teams of the table."""
    names = [shown(name) for name in sorted(snapshot.teams)[:MOST_TEAMS]]
    more = len(snapshot.teams) - len(names)
    return f"; teams are {', '.join(names)}{f' and {more} more' if more else ''}" if names else "; the table has none"


def _states(breakers: Breakers, now: float) -> Iterator[tuple[str, DeploymentState]]:
    cooling = set(breakers.cooling(now))
    for label, state in breakers.states(now):
        if state is State.OPEN:
            yield label, DeploymentState.COOLING if label in cooling else DeploymentState.OPEN
        elif state is State.HALF_OPEN:
            yield label, DeploymentState.HALF_OPEN


@dataclass(frozen=True, slots=True)
class RequestWatch:
    """What is known of requests of the past: counts, the last hour, failures, and the lines of the log that were
    dropped."""

    recent: RecentRequests
    hour: HourCounter
    failed: FailedRequests
    lines: LineWriter


class OneProcess:
    """The status of a gateway that runs in this process alone."""

    def __init__(
        self,
        gateway: Gateway,
        dispatcher: Dispatcher,
        live: CurrentSnapshot,
        watch: RequestWatch,
        discovered: DiscoveredModels,
        limits: LimitsAndLedger,
    ) -> None:
        self._gateway = gateway
        self._dispatcher = dispatcher
        self._live = live
        self._discovered = discovered
        self._limits = limits
        self._watch = watch
        self.exposition = CachedExposition(lambda: asyncio.to_thread(dispatcher.metrics.render))

    @property
    def ready(self) -> bool:
        """See StatusSource."""
        return self._gateway.ready

    def status(self) -> ProcessStatus:
        """Return the status as of now."""
        gateway, now = self._gateway, self._dispatcher.now()
        deployments = self._dispatcher.deployments
        return ProcessStatus(
            gateway.ready,
            gateway.in_flight,
            self._watch.lines.dropped,
            dict(deployments.breakers.waits(now)),
            deployments.breakers.shared,
            dict(self._dispatcher.last_failures.noted),
            dict(deployments.limited(now)),
            dict(self._discovered.states()),
            limits_alone=self._limits.registry.alone,
            limits_evicted=self._limits.evicting,
            ledger=self._limits.ledger_state,
            states=dict(_states(deployments.breakers, now)),
            failed=self._watch.failed.newest(),
        )

    async def full_status(self, team: str | None = None) -> ProcessStatus:
        """Return the status with what is used of limits, of all or those of a team, and with counts of requests."""
        registry, users, times = self._limits.registry, self._limits.team.users, self._limits.team.times()
        # In a thread: a table may have ten thousand teams, and a thousand deployments.
        used = await asyncio.to_thread(lambda: most_used(chain(registry.views(*times), users.views(*times)), team))
        recent = await asyncio.to_thread(self._watch.recent.uses)
        hour = await asyncio.to_thread(self._watch.hour.taken().figures)
        return replace(self.status(), limits=used, recent=recent, hour=hour)

    async def view(self) -> GatewayView:
        """See StatusSource."""
        status = await self.full_status()
        ledger = None if status.ledger is None else await self._limits.reports.now(status.ledger)
        live = self._live
        return GatewayView(live.snapshot, status, ledger, live.since, live.now())

    async def limits(self, team: str | None) -> dict[str, object]:
        """See StatusSource."""
        return limit_facts(self._live.snapshot, await self.full_status(team), team, time.time())

    async def usage(self, query_string: str) -> UsageResponse:
        """See StatusSource."""
        return await self._limits.reports.answer(query_string)
