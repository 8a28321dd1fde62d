"""Spans and metrics by OTLP over HTTP, through OpenTelemetry's own SDK (1.45): the only user of the library. It takes
0.3 s to load, and this module is loaded when a table asks for it.

The SDK's encoder and its exporters are used; its tracers, its processors and its readers are not: spans are made after
the fact, in a thread, of a request's record.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from config.sections.tracing_section import TracingSection
from proxy.optional_libraries import silence
from proxy.trace_context import SAMPLED, Trace
from proxy.tracing.collector_session import CollectorSession
from proxy.tracing.gen_ai_metrics import SHAPES, GenAiMetrics
from proxy.tracing.gen_ai_words import CalledDeployments
from proxy.tracing.span_values import FinishedRequest, Side, SpanValues, spans_of
from proxy.version import VERSION

METRICS_EVERY: Final = 30.0
"""Seconds between two exports of metrics."""

SCOPE: Final = "dragoman"
_NANO: Final = 1_000_000_000

NOT_TAKEN: Final = "the collector cannot be reached, is too slow, or refuses them"


class OtlpExporter:
    """See proxy.tracing.export_queue.Exporter."""

    def __init__(self, settings: TracingSection, deployments: CalledDeployments, metrics: GenAiMetrics | None) -> None:
        # What it logs quotes what the collector answered.
        silence("opentelemetry.exporter", "opentelemetry.sdk")

        base = settings.endpoint.rstrip("/")
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        self._deployments = deployments
        self._resource = resource_of(settings)
        self._metrics = metrics
        self._sent_metrics = time.monotonic()
        self._spans = OTLPSpanExporter(
            f"{base}/v1/traces",
            headers=headers,
            timeout=settings.timeout,
            compression=Compression.NoCompression,
            session=CollectorSession(),
        )
        self._metric_exporter = OTLPMetricExporter(
            f"{base}/v1/metrics",
            headers=headers,
            timeout=settings.timeout,
            compression=Compression.NoCompression,
            session=CollectorSession(),
        )

    def export(self, requests: Sequence[FinishedRequest]) -> str | None:
        """See Exporter."""

        spans = [
            readable(values, self._resource) for request in requests for values in spans_of(request, self._deployments)
        ]
        return None if self._spans.export(spans) is SpanExportResult.SUCCESS else NOT_TAKEN

    def metrics_due(self) -> bool:
        """See Exporter."""
        return self._metrics is not None and time.monotonic() - self._sent_metrics >= METRICS_EVERY

    def export_metrics(self) -> str | None:
        """See Exporter."""

        self._sent_metrics = time.monotonic()
        if self._metrics is None:
            return None
        data = metrics_data(self._metrics, self._resource)
        return None if self._metric_exporter.export(data) is MetricExportResult.SUCCESS else NOT_TAKEN

    def close(self) -> None:
        """See Exporter."""
        self.export_metrics()
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        self._metric_exporter.shutdown()


def resource_of(settings: TracingSection) -> Resource:
    """Return what all spans of this process come from; what the table says comes before."""
    own: dict[str, str | int] = {
        "service.name": settings.service_name,
        "service.version": VERSION,
        "service.instance.id": str(uuid.uuid4()),
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.language": "python",
    }
    return Resource({**own, **settings.attributes})


def readable(values: SpanValues, resource: Resource) -> ReadableSpan:
    """Return a span as the SDK's encoder takes it."""
    trace = values.trace
    return ReadableSpan(
        values.name,
        _context(trace, values.span_id, remote=False),
        _context(trace, values.parent_id, remote=values.remote) if values.parent_id else None,
        resource,
        values.attributes,
        [Event(event.name, None, event.time) for event in values.events],
        kind=SpanKind.SERVER if values.side is Side.SERVER else SpanKind.CLIENT,
        status=Status(StatusCode.ERROR, values.message) if values.failed else Status(StatusCode.UNSET),
        start_time=values.start,
        end_time=values.end,
        instrumentation_scope=InstrumentationScope(SCOPE, VERSION),
    )


def _context(trace: Trace, span_id: int, *, remote: bool) -> SpanContext:
    state = TraceState.from_header([trace.state]) if trace.state else None
    return SpanContext(trace.trace_id, span_id, remote, TraceFlags(trace.flags | SAMPLED), state)


def metrics_data(metrics: GenAiMetrics, resource: Resource) -> MetricsData:
    """Return the histograms as they are now, counted since the gateway began to count."""
    scope = ScopeMetrics(InstrumentationScope(SCOPE, VERSION), [*_histograms(metrics)], "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _histograms(metrics: GenAiMetrics) -> Iterator[Metric]:
    start, now = int(metrics.started * _NANO), time.time_ns()
    points: dict[str, list[HistogramDataPoint]] = {}
    for each in metrics.values():
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
