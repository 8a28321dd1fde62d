"""What finished requests add to the histograms that are sent by OTLP, under OpenTelemetry's names for generative AI.

Source: the metrics of the conventions for generative AI as released with semantic-conventions 1.37 to 1.41, which
dashboards know, with their buckets; what semantic-conventions-genai has instead (November 2026) is in development.

Rows are plain numbers, changed on the event loop's thread alone and copied by whoever sends them, as those of
`proxy.telemetry.instruments`.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from proxy.request_record import RequestRecord
from proxy.tracing.gen_ai_words import OTHER_OPERATION, CalledDeployments, operation_of

TOKENS: Final = "gen_ai.client.token.usage"
DURATION: Final = "gen_ai.client.operation.duration"
FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"  # noqa: S105 - a metric's name

MOST_SERIES: Final = 1000
"""Combinations of labels; more are not counted here."""


@dataclass(frozen=True, slots=True)
class HistogramShape:
    """A metric: its unit, its meaning and the bounds of its buckets."""

    unit: str
    text: str
    bounds: tuple[float, ...]


SHAPES: Final[Mapping[str, HistogramShape]] = {
    TOKENS: HistogramShape("{token}", "Tokens of a request.", tuple(float(4**power) for power in range(14))),
    DURATION: HistogramShape("s", "Duration of a request.", tuple(0.01 * 2**power for power in range(14))),
    FIRST_TOKEN: HistogramShape(
        "s",
        "Time to the first content of a stream.",
        (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    ),
}

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HistogramValues:
    """One series: how many observations are in each bucket and beyond the last, the least and the largest of them, and
    their sum."""

    name: str
    labels: Labels
    counts: tuple[int, ...]
    least: float
    most: float
    sum: float


class GenAiMetrics:
    """Counts finished requests since `started`, in unix seconds."""

    def __init__(self, deployments: CalledDeployments) -> None:
        self.started = time.time()
        self._rows: dict[tuple[str, Labels], list[float]] = {}
        self._labels: dict[tuple[str, str, str, str, str], Labels] = {}
        self._deployments = deployments
        self._table = deployments.by_label

    def add(self, record: RequestRecord, method: str) -> None:
        """Count a request for which a deployment was asked."""
        if not record.attempts:
            return
        label = record.attempts[-1].deployment
        error = "" if record.outcome == "ok" else record.outcome
        key = (record.path, method, record.model, label, error)
        if self._table is not self._deployments.by_label:
            self._table = self._deployments.by_label
            self._labels.clear()
        labels = self._labels.get(key) or self._found(key)
        if not labels:
            return
        self._observe(DURATION, labels, record.finished - record.started)
        if (usage := record.counted) is not None:
            self._observe(TOKENS, (*labels, ("gen_ai.token.type", "input")), usage.prompt_tokens)
            self._observe(TOKENS, (*labels, ("gen_ai.token.type", "output")), usage.completion_tokens)
        if record.first_content is not None:
            self._observe(FIRST_TOKEN, labels, record.first_content - record.started)

    def values(self) -> Iterator[HistogramValues]:
        """Yield every series as it is now. May be called in any thread."""
        for (name, labels), row in self._rows.copy().items():
            *counts, least, most, total = row.copy()
            yield HistogramValues(name, labels, tuple(map(int, counts)), least, most, total)

    def _observe(self, name: str, labels: Labels, value: float) -> None:
        row = self._rows.get((name, labels))
        bounds = SHAPES[name].bounds
        if row is None:
            if len(self._rows) >= MOST_SERIES:
                return
            row = self._rows[name, labels] = [*[0.0] * (len(bounds) + 1), math.inf, -math.inf, 0.0]
        row[bisect_left(bounds, value)] += 1
        row[-3], row[-2] = min(row[-3], value), max(row[-2], value)
        row[-1] += value

    def _found(self, key: tuple[str, str, str, str, str]) -> Labels:
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
        found = () if operation == OTHER_OPERATION else labels
        if len(self._labels) >= MOST_SERIES:
            self._labels.clear()
        self._labels[key] = found
        return found
