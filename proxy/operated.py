"""What an operator can learn of the gateway, and the gateway as one process that tells it.

Never how it is asked or shown.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proxy.concurrency_limit import Limited
from proxy.gateway import Gateway
from proxy.last_failures import Noted, latest
from proxy.live import Live
from proxy.logs import timestamp
from proxy.metrics import Metrics
from proxy.snapshot import Snapshot
from proxy.version import VERSION
from proxy.writer import LineWriter


class Operated(Protocol):
    """A running gateway, in however many processes."""

    @property
    def ready(self) -> bool:
        """Whether it takes requests on."""

    async def facts(self) -> dict[str, object]:
        """What the status page shows, by name."""

    async def scrape(self) -> bytes:
        """The metrics' text exposition, at most a second old."""

    async def render(self) -> bytes:
        """The text exposition of this moment."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What one process is about: `left_alone` are the deployments it does not ask, with the seconds until it may,
    `last_failures` how each that failed did so last, `limited` those whose requests at once are limited, and `shared`
    says whether it reaches what it shares with others: off, up or alone."""

    ready: bool
    in_flight: int
    log_lines_dropped: int
    left_alone: Mapping[str, float]
    shared: str = "off"
    last_failures: Mapping[str, Noted] = field(default_factory=dict)
    limited: Mapping[str, Limited] = field(default_factory=dict)


def together(moments: Iterable[Moment]) -> Moment:
    """What several processes are about: ready as soon as one is, each deployment left alone for the longest, limits
    added up where there are some, and up as long as no one is alone."""
    those = list(moments)
    longest: dict[str, float] = {}
    limits: dict[str, Limited] = {}
    for moment in those:
        for name, wait in moment.left_alone.items():
            longest[name] = max(wait, longest.get(name, 0.0))
        for name, limited in moment.limited.items():
            limits[name] = limited.beside(limits[name]) if name in limits else limited
    return Moment(
        any(moment.ready for moment in those),
        sum(moment.in_flight for moment in those),
        sum(moment.log_lines_dropped for moment in those),
        longest,
        next((moment.shared for moment in those if moment.shared != "up"), "up") if those else "off",
        latest(moment.last_failures for moment in those),
        limits,
    )


def facts_of(snapshot: Snapshot, moment: Moment) -> dict[str, object]:
    """The status page's facts."""
    return {
        "version": VERSION,
        "table": snapshot.digest,
        "ready": moment.ready,
        "in_flight": moment.in_flight,
        "log_lines_dropped": moment.log_lines_dropped,
        "teams": sorted(snapshot.teams),
        "routes": sorted(snapshot.routes),
        "deployments": sorted(target.label for target in snapshot.targets()),
        "shared": moment.shared,
        "left_alone": [f"{name}, {wait:.1f} s" for name, wait in sorted(moment.left_alone.items())],
        "last_failures": [
            f"{timestamp(noted.when)} {noted.name}: {noted.what}" for _, noted in sorted(moment.last_failures.items())
        ],
        "limited": [f"{name}, {limited}" for name, limited in sorted(moment.limited.items())],
    }


class OneProcess:
    """The gateway as this process alone."""

    def __init__(self, gateway: Gateway, live: Live, metrics: Metrics, lines: LineWriter) -> None:
        self._gateway = gateway
        self._live = live
        self._metrics = metrics
        self._lines = lines

    @property
    def ready(self) -> bool:
        """See Operated."""
        return self._gateway.ready

    def moment(self) -> Moment:
        """What it is about now."""
        gateway = self._gateway
        standing = (gateway.left_alone(), gateway.shared, gateway.last_failures(), gateway.limited())
        return Moment(gateway.ready, gateway.in_flight, self._lines.dropped, *standing)

    async def facts(self) -> dict[str, object]:
        """See Operated."""
        return facts_of(self._live.snapshot, self.moment())

    async def scrape(self) -> bytes:
        """See Operated."""
        return await asyncio.to_thread(self._metrics.scrape)

    async def render(self) -> bytes:
        """See Operated."""
        return await asyncio.to_thread(self._metrics.render)
