"""The metrics of the current configuration: the available targets of each name, and the expiry of keys and the
certificate.

The names and times are looked up once for each configuration; the states of deployments are read whenever metrics are
rendered.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from proxy.telemetry.merged_metrics import Key, MetricFamily

MOST_KEYS: Final = 1000
"""The most keys whose expiry is shown, namely the keys that expire first. A configuration may have ten thousand
teams."""

CLOSED: Final = 0
"""The state of a closed circuit, which lets every request through."""

TARGETS: Final = "dragoman_targets_available"
CERTIFICATE: Final = "dragoman_certificate_expiry_timestamp_seconds"
KEY: Final = "dragoman_key_expiry_timestamp_seconds"


@dataclass(frozen=True, slots=True)
class ExpiringKey:
    """A key of a team and its end in unix seconds, infinite if it does not expire."""

    team: str
    label: str
    ends: float


class ConfigurationFamilies:
    """Yields the metrics of the last configuration that was passed to `use`. `states` returns the circuit state of each
    deployment that was called."""

    def __init__(self, states: Callable[[], Iterable[tuple[str, int]]]) -> None:
        self._states = states
        self._targets: Mapping[str, tuple[str, ...]] = {}
        self._expiries: tuple[MetricFamily, ...] = ()

    def use(
        self, targets: Mapping[str, tuple[str, ...]], keys: Iterable[ExpiringKey], certificate: float | None
    ) -> None:
        """Show another configuration: the deployments of each of its names, its teams' keys, and the end of its
        listener's certificate in unix seconds (`None` without TLS)."""
        first = nsmallest(MOST_KEYS, (key for key in keys if key.ends < math.inf), key=lambda key: key.ends)
        ends: dict[Key, float] = {}
        for key in first:
            ends.setdefault((KEY, (("team", key.team), ("key", key.label))), key.ends)
        listener = () if certificate is None else (((CERTIFICATE, ()), certificate),)
        self._expiries = (
            MetricFamily(CERTIFICATE, "gauge", "When the public listener's certificate expires.", listener),
            MetricFamily(KEY, "gauge", "When a team's key expires, of those that do.", tuple(ends.items())),
        )
        self._targets = targets

    def __call__(self) -> Iterator[MetricFamily]:
        """Yield the families with their current values; may be called in another thread."""
        unavailable = {label for label, state in self._states() if state != CLOSED}
        samples = tuple(
            ((TARGETS, (("model", name),)), float(sum(label not in unavailable for label in labels)))
            for name, labels in self._targets.items()
        )
        yield MetricFamily(TARGETS, "gauge", "Targets of a model or route whose circuit is closed.", samples)
        yield from self._expiries
