"""The status of the gateway for its operator, for one process or for several."""

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
"""The most teams that are listed if a request names a team that does not exist."""

MOST_NAME: Final = 200
"""The most characters of a name that are compared with the names of teams."""


class DeploymentState(IntEnum):
    """The circuit of a deployment if it is not closed, in order of severity. COOLING is a cooldown that the vendor
    requested; OPEN is caused by failures of the deployment."""

    HALF_OPEN = 1
    COOLING = 2
    OPEN = 3


class StatusSource(Protocol):
    """The source of the data of the operator's endpoints, for any number of processes."""

    @property
    def ready(self) -> bool:
        """Whether the gateway takes requests."""

    async def view(self) -> "GatewayView":
        """Return the data of the status page."""

    async def limits(self, team: str | None) -> dict[str, object]:
        """Return the remaining amounts of the limits with the highest use, or of the limits of a team, as JSON
        values."""

    async def usage(self, query_string: str) -> UsageResponse:
        """Return the response to `GET /usage` for all teams."""

    @property
    def exposition(self) -> CachedExposition:
        """The metrics in the text format of Prometheus."""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The status of one process.

    `unavailable` has the deployments with an open circuit or a cooldown, and the seconds until they may be called;
    `last_failures` the last failure of each deployment that had one; `states` the deployments whose circuit is not
    closed; `limited` the deployments with a concurrency limit. `shared` is the state of the link to the other
    processes: off, up or alone. `model_lists` are the vendors' own lists of models that were fetched for the config
    file. `limits` are the limits with the highest use. `limits_alone` is true if Redis or the coordinator does not
    respond; the limits are then divided as they were last known. `limits_evicted` contains advice if Redis may evict
    the limits, empty otherwise. `recent` counts the last minutes; `failed` are the last failed requests, newest first;
    `hour` is the last hour by minute.
    """

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
    """A worker that serves: its name, the digest of its configuration, and its requests in flight."""

    name: str
    digest: str
    in_flight: int

    def __str__(self) -> str:
        return f"{self.name}, table {self.digest[:12]}, {self.in_flight} in flight"


@dataclass(frozen=True, slots=True)
class GatewayView:
    """The state of a gateway at one time. `since` is its start and `now` the current time, both in unix seconds;
    `workers` is `None` if the gateway is one process."""

    snapshot: Snapshot
    status: ProcessStatus
    ledger: LedgerNow | None
    since: int
    now: float
    workers: tuple[WorkerNow, ...] | None = None


def combined(statuses: Iterable[ProcessStatus]) -> ProcessStatus:
    """Combine the statuses of several processes. The gateway is ready if one process is ready. Each deployment has its
    longest wait and the sum of its limits. The link is up if no process is alone. Each vendor's list of models has its
    worst state. Limits that the processes share are taken from the process with the most complete counts;
    `limits_alone` is true if it is true of one process."""
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
        combined_ledger([status.ledger for status in every if status.ledger is not None]),
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


def combined_ledger(states: Iterable[LedgerState]) -> LedgerState | None:
    """Return the combined ledger state of several processes: the sum of the losses, the longest delay, the first
    trouble."""
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
    """Return the facts of the status page from a snapshot, a status and a ledger, by name."""
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
    """Return the response to `GET /limits`. The field `unknown` reports a team that is not in the configuration."""
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
    """Return a clause that lists teams of the configuration."""
    names = [shown(name) for name in sorted(snapshot.teams)[:MOST_TEAMS]]
    more = len(snapshot.teams) - len(names)
    return (
        f"; teams are {', '.join(names)}{f' and {more} more' if more else ''}"
        if names
        else "; the configuration has none"
    )


def _states(breakers: Breakers, now: float) -> Iterator[tuple[str, DeploymentState]]:
    cooling = set(breakers.cooling(now))
    for label, state in breakers.states(now):
        if state is State.OPEN:
            yield label, DeploymentState.COOLING if label in cooling else DeploymentState.OPEN
        elif state is State.HALF_OPEN:
            yield label, DeploymentState.HALF_OPEN


@dataclass(frozen=True, slots=True)
class RequestWatch:
    """The records of past requests: counts, the last hour, failures, and the number of dropped log lines."""

    recent: RecentRequests
    hour: HourCounter
    failed: FailedRequests
    lines: LineWriter


class OneProcess:
    """The status of a gateway that consists of this process only."""

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
        """Whether the gateway takes requests."""
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
        """Return the status with the use of limits, of all or of a team, and with counts of requests."""
        registry, users, times = self._limits.registry, self._limits.team.users, self._limits.team.times()
        # In a thread, because a configuration may have ten thousand teams and a thousand deployments.
        used = await asyncio.to_thread(lambda: most_used(chain(registry.views(*times), users.views(*times)), team))
        recent = await asyncio.to_thread(self._watch.recent.uses)
        hour = await asyncio.to_thread(self._watch.hour.taken().figures)
        return replace(self.status(), limits=used, recent=recent, hour=hour)

    async def view(self) -> GatewayView:
        """Return the data of the status page."""
        status = await self.full_status()
        ledger = None if status.ledger is None else await self._limits.reports.now(status.ledger)
        live = self._live
        return GatewayView(live.snapshot, status, ledger, live.since, live.now())

    async def limits(self, team: str | None) -> dict[str, object]:
        """Return the remaining amounts of the limits, of all or of a team."""
        return limit_facts(self._live.snapshot, await self.full_status(team), team, time.time())

    async def usage(self, query_string: str) -> UsageResponse:
        """Return the response to `GET /usage`."""
        return await self._limits.reports.answer(query_string)
