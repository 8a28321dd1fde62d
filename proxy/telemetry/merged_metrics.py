"""Metrics as values, so that the counts of one process can be sent to another process, and the counts of several
processes can be merged."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Final

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A series: the name of the sample, and its labels in the order in which they are rendered."""

ADDED_GAUGES: Final = frozenset(
    {
        "dragoman_inflight_requests",
        "dragoman_concurrency_limit",
        "dragoman_cache_answers",
        "dragoman_cache_bytes",
        "dragoman_kept_turns",
        "dragoman_kept_turns_bytes",
        "dragoman_kept_responses",
        "dragoman_kept_responses_bytes",
    }
)
"""Gauges that are merged by their sum. Other gauges are merged by their largest value, for example the worst lag, or
the worst state of a deployment in any process."""

LEAST_GAUGES: Final = frozenset({"dragoman_shared_state_up", "dragoman_targets_available"})
"""Gauges that are merged by their smallest value, so that a single disconnected process, or one without an available
target, stays visible."""

PROCESS: Final = "process_"
"""The name prefix of the families that measure one process; they are not merged."""

SINGLE_SOURCE: Final = frozenset(
    {"dragoman_config_reloads", "dragoman_config_last_reload_successful", "dragoman_config_info"}
)
"""Families that are taken only from the process that loads the configuration; the other processes report only copies of
them."""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric with its series. `kind` is Prometheus' type: counter, gauge or histogram."""

    name: str
    kind: str
    text: str
    samples: tuple[tuple[Key, float], ...]


def lasting(families: Iterable[MetricFamily]) -> list[MetricFamily]:
    """Return the families that stay valid after the process has ended: the counters and histograms."""
    return [family for family in families if family.kind != "gauge" and not family.name.startswith(PROCESS)]


def of_worker(number: int, families: Iterable[MetricFamily]) -> list[MetricFamily]:
    """Return the families of a worker. The families that measure the worker's process get the worker's number as a
    label."""
    own = ("worker", str(number))
    return [
        replace(each, samples=tuple(((name, (*labels, own)), value) for (name, labels), value in each.samples))
        if each.name.startswith(PROCESS)
        else each
        for each in families
    ]


class WorkerCounts:
    """The metrics of one process from all its reports so far, which may arrive out of order. The larger of two values
    of a counter is the later one; of a gauge, the value of the last report is used."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[MetricFamily, dict[Key, float]]] = {}

    def update(self, families: Iterable[MetricFamily]) -> None:
        """Add a report: all metrics, or only the changed ones."""
        for family in families:
            samples = dict(family.samples)
            if family.kind != "gauge" and family.name in self._found:
                _, before = self._found[family.name]
                for key, value in samples.items():
                    before[key] = max(value, before.get(key, value))
            else:
                self._found[family.name] = family, samples

    def families(self) -> list[MetricFamily]:
        return [replace(family, samples=tuple(samples.items())) for family, samples in self._found.values()]


def merged(own: Sequence[MetricFamily], others: Iterable[Sequence[MetricFamily]]) -> list[MetricFamily]:
    """Merge the families of the process that loads the configuration with the families of the processes that serve."""
    found: dict[str, tuple[MetricFamily, dict[Key, float]]] = {each.name: (each, dict(each.samples)) for each in own}
    for families in others:
        for family in families:
            if family.name in SINGLE_SOURCE:
                continue
            _, samples = found.setdefault(family.name, (family, {}))
            combine = _combination(family)
            for key, value in family.samples:
                samples[key] = combine(samples[key], value) if key in samples else value
    return [MetricFamily(each.name, each.kind, each.text, tuple(samples.items())) for each, samples in found.values()]


def _combination(family: MetricFamily) -> Callable[[float, float], float]:
    if family.kind != "gauge" or family.name in ADDED_GAUGES:
        return add
    return min if family.name in LEAST_GAUGES else max
