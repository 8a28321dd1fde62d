"""Exports spans and metrics by OTLP over HTTP with OpenTelemetry's own SDK (1.45). Only this module uses the library.
Loading it takes 0.3 s, so this module is loaded only if the configuration enables tracing.

The SDK's types and its encoder of metrics are used; its tracers, processors and exporters are not. Spans are built from
the record of a finished request, in a thread, and directly written as bytes (`proxy.tracing.span_bytes`), in 20 us a
request; the SDK's spans and their encoder take 100 us. Encoding a complete batch without a pause would hold the
interpreter's lock, and block the event loop.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from config.sections.tracing_section import TracingSection
from providers.vendor_credential import reveal
from proxy.trace_context import NoteValue
from proxy.tracing.collector_link import CollectorLink
from proxy.tracing.gen_ai_metrics import GenAiMetrics
from proxy.tracing.metric_names import SHAPES
from proxy.tracing.semantic_conventions import CalledDeployments
from proxy.tracing.span_bytes import export_bytes, resource_bytes, scope_bytes, span_bytes
from proxy.tracing.span_values import FinishedRequest, spans_of
from proxy.version import VERSION

METRICS_EVERY: Final = 30.0
"""Seconds between two exports of metrics."""

SCOPE: Final = "dragoman"
_NANO: Final = 1_000_000_000

LOCK_PAUSE: Final = 0.0001
REQUESTS_PER_PAUSE: Final = 32
"""After REQUESTS_PER_PAUSE encoded requests this thread pauses for LOCK_PAUSE seconds, in which the event loop's thread
gets the interpreter's lock. Without a pause, the exporter's thread would take the lock back before the event loop's
thread has woken."""


class OtlpExporter:
    """Exports to the collector of the configuration, as described by `proxy.tracing.export_queue.Exporter`."""

    def __init__(
        self,
        settings: TracingSection,
        deployments: CalledDeployments,
        metrics: GenAiMetrics | None,
        worker: int | None = None,
    ) -> None:
        headers = {name: reveal(value) for name, value in settings.headers.items()}
        self._link = CollectorLink(settings.endpoint, headers, settings.timeout)
        self._deployments = deployments
        self._resource = resource_of(settings, worker)
        self._metrics = metrics
        self._resource_bytes = resource_bytes(cast(Mapping[str, NoteValue], self._resource.attributes))
        self._scope = scope_bytes(SCOPE, VERSION)
        self._sent_metrics = time.monotonic()

    def export(self, requests: Sequence[FinishedRequest]) -> str | None:
        """Send the spans of requests. Return the reason why they were not accepted; `None` if they were accepted."""
        spans: list[bytes] = []
        for number, request in enumerate(requests, 1):
            spans += map(span_bytes, spans_of(request, self._deployments))
            if not number % REQUESTS_PER_PAUSE:
                time.sleep(LOCK_PAUSE)
        return self._link.post("/v1/traces", export_bytes(self._resource_bytes, self._scope, spans))

    def metrics_due(self) -> bool:
        """Return whether the last export of metrics was METRICS_EVERY seconds ago."""
        return self._metrics is not None and time.monotonic() - self._sent_metrics >= METRICS_EVERY

    def export_metrics(self) -> str | None:
        """Send the metrics. Return the reason why they were not accepted; `None` if they were accepted."""
        self._sent_metrics = time.monotonic()
        if self._metrics is None:
            return None
        data = encode_metrics(metrics_data(self._metrics, self._resource))
        return self._link.post("/v1/metrics", data.SerializeToString())

    def stop_repeating(self) -> None:
        """Repeat no failed export from now on."""
        self._link.stop_repeating()

    def close(self) -> str | None:
        """Send the metrics for the last time, and close the connection."""
        trouble = self.export_metrics()
        self._link.close()
        return trouble


def resource_of(settings: TracingSection, worker: int | None = None) -> Resource:
    """Return the origin of all spans of this process; attributes of the configuration take precedence. `worker` is its
    number among the workers of a gateway with several workers."""
    own: dict[str, str | int] = {
        "service.name": settings.service_name,
        "service.version": VERSION,
        "service.instance.id": str(uuid.uuid4()),
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.language": "python",
    }
    if worker is not None:
        own["dragoman.worker"] = worker
    return Resource({**own, **settings.attributes})


def metrics_data(metrics: GenAiMetrics, resource: Resource) -> MetricsData:
    """Return the current histograms and counters. They count from the time at which the gateway began to count."""
    scope = ScopeMetrics(InstrumentationScope(SCOPE, VERSION), [*_series(metrics)], "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _series(metrics: GenAiMetrics) -> Iterator[Metric]:
    start, now = int(metrics.started * _NANO), time.time_ns()
    points: dict[str, list[HistogramDataPoint]] = {}
    counts: dict[str, list[NumberDataPoint]] = {}
    for each in metrics.values():
        if not SHAPES[each.name].bounds:
            counts.setdefault(each.name, []).append(NumberDataPoint(dict(each.labels), start, now, int(each.sum)))
            continue
        point = HistogramDataPoint(
            attributes=dict(each.labels),
            start_time_unix_nano=start,
            time_unix_nano=now,
            count=sum(each.counts),
            sum=each.sum,
            bucket_counts=each.counts,
            explicit_bounds=SHAPES[each.name].bounds,
            min=each.least,
            max=each.most,
        )
        points.setdefault(each.name, []).append(point)
    for name, found in points.items():
        shape = SHAPES[name]
        yield Metric(name, shape.text, shape.unit, Histogram(found, AggregationTemporality.CUMULATIVE))
    for name, counted in counts.items():
        shape = SHAPES[name]
        total = Sum(counted, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        yield Metric(name, shape.text, shape.unit, total)
