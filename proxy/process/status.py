"""The status of the gateway for its operator, whether it runs as one process or as several."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proxy.deployment_health.concurrency_limit import Limited
from proxy.deployment_health.last_failures import Noted, latest
from proxy.discovery.discovered_models import DiscoveredModels, ListState
from proxy.dispatch.single_attempt import Dispatcher
from proxy.gateway.handle_request import Gateway
from proxy.routing.snapshot import CurrentSnapshot, Snapshot
from proxy.telemetry.log_format import timestamp
from proxy.telemetry.log_writer import LineWriter
from proxy.telemetry.metrics import CachedExposition, Metrics
from proxy.version import VERSION


class StatusSource(Protocol):
    """What the operators' endpoints show of a gateway, in however many processes."""

    @property
    def ready(self) -> bool:
        """Return whether it takes requests."""

    async def facts(self) -> dict[str, object]:
        """Return what the status page shows, by name."""

    @property
    def exposition(self) -> CachedExposition:
        """The metrics in Prometheus' text format."""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The status of one process. `unavailable` are its deployments with an open circuit breaker or a cooldown, with the
    seconds until they may be called; `last_failures` the last failure of each deployment that had one; `limited` those
    with a concurrency limit; `shared` the state of its link to the other processes: off, up or alone; `model_lists` the
    vendors' own lists of models that the table has fetched."""

    ready: bool
    in_flight: int
    log_lines_dropped: int
    unavailable: Mapping[str, float]
    shared: str = "off"
    last_failures: Mapping[str, Noted] = field(default_factory=dict)
    limited: Mapping[str, Limited] = field(default_factory=dict)
    model_lists: Mapping[str, ListState] = field(default_factory=dict)


def combined(statuses: Iterable[ProcessStatus]) -> ProcessStatus:
    """Combine the statuses of several processes: ready as soon as one is, the longest wait of each deployment, the sum
    of its limits, up as long as no process is alone, and of each vendor's list of models the state that is worst."""
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
    )


def status_facts(snapshot: Snapshot, status: ProcessStatus) -> dict[str, object]:
    """Return what the status page shows of a snapshot and a status, by name."""
    return {
        "version": VERSION,
        "table": snapshot.digest,
        "ready": status.ready,
        "in_flight": status.in_flight,
        "log_lines_dropped": status.log_lines_dropped,
        "teams": sorted(snapshot.teams),
        "routes": sorted(snapshot.routes),
        "deployments": sorted(target.label for target in snapshot.targets()),
        "shared": status.shared,
        "left_alone": [f"{name}, {wait:.1f} s" for name, wait in sorted(status.unavailable.items())],
        "last_failures": [
            f"{timestamp(noted.when)} {noted.name}: {noted.what}" for _, noted in sorted(status.last_failures.items())
        ],
        "limited": [f"{name}, {limited}" for name, limited in sorted(status.limited.items())],
        "model_lists": [f"{name}, {listed}" for name, listed in sorted(status.model_lists.items())],
    }


class OneProcess:
    """The status of a gateway that runs in this process alone."""

    def __init__(
        self,
        gateway: Gateway,
        dispatcher: Dispatcher,
        live: CurrentSnapshot,
        metrics: Metrics,
        lines: LineWriter,
        discovered: DiscoveredModels,
    ) -> None:
        self._gateway = gateway
        self._dispatcher = dispatcher
        self._live = live
        self._lines = lines
        self._discovered = discovered
        self.exposition = CachedExposition(lambda: asyncio.to_thread(metrics.render))

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
            self._lines.dropped,
            dict(deployments.breakers.waits(now)),
            deployments.breakers.shared,
            dict(self._dispatcher.last_failures.noted),
            dict(deployments.limited(now)),
            dict(self._discovered.states()),
        )

    async def facts(self) -> dict[str, object]:
        """See StatusSource."""
        return status_facts(self._live.snapshot, self.status())
