"""Metrics as values: what one process has counted, as it travels to another, and the sums of several.

Never an instrument, and never a clock.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import add
from typing import Final

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A series: the sample's name and its labels, in the order in which they are shown."""

ADDED_GAUGES: Final = frozenset({"dragoman_inflight_requests", "dragoman_concurrency_limit"})
"""Gauges of which each process has a part. Of the others the largest value is the whole: the worst lag, the worst
state that any process has seen a deployment in."""

LEAST_GAUGES: Final = frozenset({"dragoman_shared_state_up"})
"""Gauges whose least value is the whole: one process that is cut off is worth a look."""

OWN: Final = frozenset({"dragoman_config_reloads", "dragoman_config_last_reload_successful", "dragoman_config_info"})
"""What the process that loads the table knows, and the others only repeat."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its series. `kind` is Prometheus' word: counter, gauge or histogram."""

    name: str
    kind: str
    text: str
    samples: tuple[tuple[Key, float], ...]


def lasting(families: Iterable[Family]) -> list[Family]:
    """What stays true when its process is gone: what was counted. What was measured is no more."""
    return [family for family in families if family.kind != "gauge"]


def merged(own: Sequence[Family], others: Iterable[Sequence[Family]]) -> list[Family]:
    """The families of the process that loads the table and of those that serve, as if one process had them."""
    found: dict[str, tuple[Family, dict[Key, float]]] = {each.name: (each, dict(each.samples)) for each in own}
    for families in others:
        for family in families:
            if family.name in OWN:
                continue
            _, samples = found.setdefault(family.name, (family, {}))
            _add(family, samples)
    return [Family(each.name, each.kind, each.text, tuple(samples.items())) for each, samples in found.values()]


def _add(family: Family, samples: dict[Key, float]) -> None:
    together = _together(family)
    for key, value in family.samples:
        samples[key] = together(samples[key], value) if key in samples else value


def _together(family: Family) -> Callable[[float, float], float]:
    """What two values of one series make."""
    if family.kind != "gauge" or family.name in ADDED_GAUGES:
        return add
    return min if family.name in LEAST_GAUGES else max
