"""Spans and metrics by OTLP over HTTP, through OpenTelemetry's own SDK (1.45): the only user of the library. It takes
0.3 s to load, and this module is loaded when a table asks for it.

The SDK's types and its encoder are used, its tracers, processors and exporters are not: spans are made after the fact,
in a thread, of a request's record, and encoded request by request. A batch that is encoded at once would hold the
interpreter's lock for as long as it takes, 6 ms for 64 requests, and the event loop with it.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from config.sections.tracing_section import TracingSection
from providers.vendor_credential import reveal
from proxy.trace_context import SAMPLED, Trace
from proxy.tracing.collector_link import CollectorLink
from proxy.tracing.gen_ai_metrics import SHAPES, GenAiMetrics
from proxy.tracing.gen_ai_words import CalledDeployments
from proxy.tracing.span_values import FinishedRequest, Side, SpanValues, spans_of
from proxy.version import VERSION

METRICS_EVERY: Final = 30.0
"""Seconds between two exports of metrics."""

SCOPE: Final = "dragoman"
_NANO: Final = 1_000_000_000

BREATH: Final = 0.0001
"""Seconds between two requests that are encoded, in which the event loop's thread gets the interpreter's lock. Without
a pause this thread would take it back before the other one has woken."""


class OtlpExporter:
    """See proxy.tracing.export_queue.Exporter."""

    def __init__(self, settings: TracingSection, deployments: CalledDeployments, metrics: GenAiMetrics | None) -> None:
        headers = {name: reveal(value) for name, value in settings.headers.items()}
        self._link = CollectorLink(settings.endpoint, headers, settings.timeout)
        self._deployments = deployments
        self._resource = resource_of(settings)
        self._metrics = metrics
        self._sent_metrics = time.monotonic()

    def export(self, requests: Sequence[FinishedRequest]) -> str | None:
        """See Exporter."""
        whole = ExportTraceServiceRequest()
        for request in requests:
            # Of those that are added to the first, the spans alone are taken.
            resource = NOBODY if whole.resource_spans else self._resource
            spans = [readable(values, resource) for values in spans_of(request, self._deployments)]
            encoded = encode_spans(spans)
            if not whole.resource_spans:
                whole.MergeFrom(encoded)
            else:
                whole.resource_spans[0].scope_spans[0].spans.extend(encoded.resource_spans[0].scope_spans[0].spans)
            time.sleep(BREATH)
        return self._link.post("/v1/traces", whole.SerializeToString())

    def metrics_due(self) -> bool:
        """See Exporter."""
        return self._metrics is not None and time.monotonic() - self._sent_metrics >= METRICS_EVERY

    def export_metrics(self) -> str | None:
        """See Exporter."""
        self._sent_metrics = time.monotonic()
        if self._metrics is None:
            return None
        data = encode_metrics(metrics_data(self._metrics, self._resource))
        return self._link.post("/v1/metrics", data.SerializeToString())

    def hurry(self) -> None:
        """See Exporter."""
        self._link.hurry()

    def close(self) -> str | None:
        """See Exporter."""
        trouble = self.export_metrics()
        self._link.close()
        return trouble


class OwnResource(Resource):
    """A resource that is equal to none but itself: the encoder compares that of each span with that of the others, and
    the library's own comparison writes both as JSON each time."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same object."""
        return self is other


NOBODY: Final = OwnResource({})


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
    return OwnResource({**own, **settings.attributes})


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
