"""Metrics as values: what one process has counted, as it travels to another, and the sums of several.

Never an instrument, and never a clock.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Final

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A series: the sample's name and its labels, in the order in which they are shown."""

ADDED_GAUGES: Final = frozenset({"dragoman_inflight_requests", "dragoman_concurrency_limit"})
"""Gauges of which each process has a part. Of the others the largest value is the whole: the worst lag, the worst
state that any process has seen a deployment in."""

LEAST_GAUGES: Final = frozenset({"dragoman_shared_state_up"})
"""Gauges whose least value is the whole: one process that is cut off is worth a look."""

PROCESS: Final = "process_"
"""How the names of those families begin that measure one process: sums of them would say nothing of any."""

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
    return [family for family in families if family.kind != "gauge" and not family.name.startswith(PROCESS)]


def of_worker(number: int, families: Iterable[Family]) -> list[Family]:
    """One worker's families, in which those that measure its process say which one it is."""
    own = ("worker", str(number))
    return [
        replace(each, samples=tuple(((name, (*labels, own)), value) for (name, labels), value in each.samples))
        if each.name.startswith(PROCESS)
        else each
        for each in families
    ]


class Kept:
    """What one process has counted, by all that it has said so far. Counts only grow, so that of two that were said
    the larger one is the later; what was measured is as it was said last."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Family, dict[Key, float]]] = {}

    def take(self, families: Iterable[Family]) -> None:
        """It has said this: all, or what has changed."""
        for family in families:
            samples = dict(family.samples)
            if family.kind != "gauge" and family.name in self._found:
                _, before = self._found[family.name]
                for key, value in samples.items():
                    before[key] = max(value, before.get(key, value))
            else:
                self._found[family.name] = family, samples

    def families(self) -> list[Family]:
        """All of it."""
        return [replace(family, samples=tuple(samples.items())) for family, samples in self._found.values()]


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
