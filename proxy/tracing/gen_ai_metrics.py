"""Counts finished requests in the metrics that are sent by OTLP, under OpenTelemetry's names for generative AI
(`proxy.tracing.metric_names`).

Rows are plain numbers, as in `proxy.telemetry.instruments`: they are changed only on the event loop's thread, and
copied before they are sent.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from providers.completion import Usage
from proxy.request_record import RequestRecord
from proxy.tracing.metric_names import OPERATION, SHAPES, Labels, Names, Quantity
from proxy.tracing.semantic_conventions import GENERATING, OTHER_OPERATION, CalledDeployments, operation_of

MOST_SERIES: Final = 1000
"""The most combinations of labels. Requests with further combinations are not counted here."""

_PARTS: Final = (
    (Quantity.CACHE_READ, "prompt_details", "cached_tokens"),
    (Quantity.CACHE_WRITE, "prompt_details", "cache_write_tokens"),
    (Quantity.REASONING, "completion_details", "reasoning_tokens"),
)
"""Parts of a usage that are counted separately, if the vendor reported them."""


@dataclass(frozen=True, slots=True)
class HistogramValues:
    """One series: the observations in each bucket and beyond the last, the smallest and the largest of them, and their
    sum. A counter only has its sum."""

    name: str
    labels: Labels
    counts: tuple[int, ...]
    least: float
    most: float
    sum: float


class _Called(NamedTuple):
    """The labels of a kind of request, and the quantity of its duration. The labels are empty if such requests are not
    measured."""

    labels: Labels
    duration: Quantity


class GenAiMetrics:
    """Counts finished requests since `started`, in unix seconds, under these names."""

    def __init__(self, deployments: CalledDeployments, names: Names = OPERATION) -> None:
        self.started = time.time()
        self._names = names
        self._rows: dict[tuple[str, Labels], list[float]] = {}
        self._called: dict[tuple[str, str, str, str, str], _Called] = {}
        self._deployments = deployments
        self._table = deployments.by_label

    def add(self, record: RequestRecord, method: str) -> None:
        """Count a request for which a deployment was called."""
        if not record.attempts:
            return
        label = record.attempts[-1].deployment
        error = "" if record.outcome == "ok" else record.outcome
        key = (record.path, method, record.model, label, error)
        if self._table is not self._deployments.by_label:
            self._table = self._deployments.by_label
            self._called.clear()
        labels, duration = self._called.get(key) or self._found(key)
        if not labels:
            return
        self._observe(duration, labels, record.finished - record.started)
        if (usage := record.counted) is not None:
            self._add_usage(labels, usage)
        first = record.first_content
        if first is not None:
            self._observe(Quantity.FIRST_TOKEN, labels, first - record.started)
            self._observe(Quantity.FIRST_CHUNK, labels, first - record.started)
            if (more := record.chunks - 1) > 0:
                self._observe(Quantity.CHUNK, labels, (record.finished - first) / more, more)

    def _add_usage(self, labels: Labels, usage: Usage) -> None:
        self._observe(Quantity.INPUT, labels, usage.prompt_tokens)
        self._observe(Quantity.OUTPUT, labels, usage.completion_tokens)
        for quantity, details, name in _PARTS:
            reported: Mapping[str, int] | None = getattr(usage, details)
            if reported and (count := reported.get(name)):
                self._observe(quantity, labels, count)

    def values(self) -> Iterator[HistogramValues]:
        """Yield every series with its current values. This may be called in any thread."""
        for (name, labels), row in self._rows.copy().items():
            *counts, least, most, total = row.copy()
            yield HistogramValues(name, labels, tuple(map(int, counts)), least, most, total)

    def _observe(self, quantity: Quantity, labels: Labels, value: float, times: int = 1) -> None:
        """Add a value `times` times to each metric of a quantity."""
        for name, more in self._names.get(quantity, ()):
            key = (name, (*labels, *more) if more else labels)
            row = self._rows.get(key)
            bounds = SHAPES[name].bounds
            if row is None:
                if len(self._rows) >= MOST_SERIES:
                    continue
                row = self._rows[key] = [*[0.0] * (len(bounds) + 1), math.inf, -math.inf, 0.0]
            row[bisect_left(bounds, value)] += times
            row[-3], row[-2] = min(row[-3], value), max(row[-2], value)
            row[-1] += value * times

    def _found(self, key: tuple[str, str, str, str, str]) -> _Called:
        path, method, model, label, error = key
        operation = operation_of(path, method)
        called = self._deployments.of(label)
        labels: Labels = (
            ("gen_ai.operation.name", operation),
            ("gen_ai.provider.name", called.provider),
            ("gen_ai.request.model", model),
        )
        if called.address:
            labels = (*labels, ("server.address", called.address))
        if error:
            labels = (*labels, ("error.type", error))
        duration = Quantity.INFERENCE if operation in GENERATING else Quantity.OTHER
        found = _Called(() if operation == OTHER_OPERATION else labels, duration)
        if len(self._called) >= MOST_SERIES:
            self._called.clear()
        self._called[key] = found
        return found
