"""A collector on a real socket: OTLP exports, decoded by OpenTelemetry's own protobuf types."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Plain = str | bool | int | float | list[str]


def plain(value: AnyValue) -> Plain:
    """Return a value as its Python type."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [each.string_value for each in value.array_value.values]
    found: Plain = getattr(value, str(kind))
    return found


def said(pairs: Iterable[KeyValue]) -> dict[str, Plain]:
    """Return attributes by their names."""
    return {pair.key: plain(pair.value) for pair in pairs}


@dataclass(slots=True)
class Collector:
    """The exports received so far. `status` is the status of its responses; a response waits for `open` while it is
    cleared."""

    port: int = 0
    status: int = 200
    bodies: list[bytes] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    logs: list[ExportLogsServiceRequest] = field(default_factory=list)
    asked: int = 0
    open: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def spans(self) -> list[Span]:
        """Return every span, in order of arrival."""
        return [
            span for trace in self.traces for of in trace.resource_spans for s in of.scope_spans for span in s.spans
        ]

    def named(self) -> dict[str, Metric]:
        """Return the metrics of the last export by their names."""
        last = self.metrics[-1]
        return {each.name: each for of in last.resource_metrics for s in of.scope_metrics for each in s.metrics}

    def resource(self) -> dict[str, Plain]:
        """Return the resource of the first export."""
        return said(self.traces[0].resource_spans[0].resource.attributes)

    def take(self, path: str, body: bytes) -> None:
        """Decode an export."""
        self.bodies.append(body)
        if path.endswith("/v1/traces"):
            self.traces.append(ExportTraceServiceRequest.FromString(body))
        elif path.endswith("/v1/logs"):
            self.logs.append(ExportLogsServiceRequest.FromString(body))
        else:
            self.metrics.append(ExportMetricsServiceRequest.FromString(body))


@contextmanager
def collecting(status: int = 200) -> Iterator[Collector]:
    """Run a collector for the duration of the block."""
    collector = Collector(status=status)
    collector.open.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.asked += 1
            collector.headers.append(dict(self.headers.items()))
            collector.open.wait()
            if collector.status == 200:
                collector.take(self.path, body)
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.open.set()
        server.shutdown()
        server.server_close()
        thread.join()
