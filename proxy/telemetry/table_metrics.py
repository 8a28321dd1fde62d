"""The metrics of the table in force: how many targets each of its names has left, and what in it expires when.

The names and times are looked up once for each table; whenever metrics are rendered the states of deployments are new.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from proxy.telemetry.merged_metrics import Key, MetricFamily

MOST: Final = 1000
"""Keys whose expiry is shown: those that expire first. A table may have ten thousand teams."""

CLOSED: Final = 0
"""The state of a deployment's circuit breaker that lets every request through."""

TARGETS: Final = "dragoman_targets_available"
CERTIFICATE: Final = "dragoman_certificate_expiry_timestamp_seconds"
KEY: Final = "dragoman_key_expiry_timestamp_seconds"


@dataclass(frozen=True, slots=True)
class ExpiringKey:
    """A key of a team and its end in unix seconds, infinite for one that does not expire."""

    team: str
    label: str
    ends: float


class TableFamilies:
    """Yields the metrics of the table that `use` was called with last. `states` returns the circuit breaker's state of
    each deployment that was asked."""

    def __init__(self, states: Callable[[], Iterable[tuple[str, int]]]) -> None:
        self._states = states
        self._targets: Mapping[str, tuple[str, ...]] = {}
        self._expiries: tuple[MetricFamily, ...] = ()

    def use(
        self, targets: Mapping[str, tuple[str, ...]], keys: Iterable[ExpiringKey], certificate: float | None
    ) -> None:
        """Show another table: the deployments of each of its names, its teams' keys, and the end of its listener's
        certificate (None without TLS)."""
        first = nsmallest(MOST, (key for key in keys if key.ends < math.inf), key=lambda key: key.ends)
        ends: dict[Key, float] = {}
        for key in first:
            ends.setdefault((KEY, (("team", key.team), ("key", key.label))), key.ends)
        own = () if certificate is None else (((CERTIFICATE, ()), certificate),)
        self._expiries = (
            MetricFamily(CERTIFICATE, "gauge", "When the public listener's certificate expires.", own),
            MetricFamily(KEY, "gauge", "When a team's key expires, of those that do.", tuple(ends.items())),
        )
        self._targets = targets

    def __call__(self) -> Iterator[MetricFamily]:
        """Yield the families as they are now; may be called in another thread."""
        unavailable = {label for label, state in self._states() if state != CLOSED}
        samples = tuple(
            ((TARGETS, (("model", name),)), float(sum(label not in unavailable for label in labels)))
            for name, labels in self._targets.items()
        )
        yield MetricFamily(TARGETS, "gauge", "Targets of a model or route whose circuit is closed.", samples)
        yield from self._expiries
