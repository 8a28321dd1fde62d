"""Spans and metrics in their wire form."""

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from config.sections.tracing_section import TracingSection
from proxy.request_record import Attempt
from proxy.tracing import otlp_exporter
from proxy.tracing.gen_ai_metrics import GenAiMetrics
from proxy.tracing.otlp_exporter import OtlpExporter, resource_of
from tests.proxy.tracing.kit.collector import collecting, said
from tests.proxy.tracing.kit.finished import CALLED, LABEL, finished, record, trace

pytestmark = pytest.mark.smoke


def exporter(url: str, metrics: GenAiMetrics | None = None) -> OtlpExporter:
    return OtlpExporter(TracingSection(endpoint=url, timeout=5.0), CALLED, metrics)


def test_many_requests_are_one_export_with_one_resource() -> None:
    with collecting() as collector:
        made = exporter(collector.url)
        assert made.export([finished(), finished(), finished()]) is None
        made.close()
        (export,) = collector.traces
    assert len(export.resource_spans) == len(export.resource_spans[0].scope_spans) == 1
    of = export.resource_spans[0]
    scope = of.scope_spans[0]
    assert len(scope.spans) == 6
    assert scope.scope.name == "dragoman"
    assert said(of.resource.attributes)["service.name"] == "dragoman"


def test_a_span_keeps_its_place_its_state_and_its_texts() -> None:
    failed = record(
        attempts=[Attempt(LABEL, 1.0, 2.0, "server", 500, "vendor's", name=LABEL)], outcome="upstream_error"
    )
    with collecting() as collector:
        made = exporter(collector.url)
        assert made.export([finished(failed, trace(state="a=b", keeps_content=True, prompt='[{"x":"é"}]'))]) is None
        made.close()
        request, attempt = collector.spans
    assert (request.trace_id.hex(), request.span_id.hex()) == (f"{0xABC:032x}", f"{0x10:016x}")
    assert (request.parent_span_id.hex(), request.trace_state) == (f"{0x99:016x}", "a=b")
    assert (attempt.kind, attempt.status.message) == (Span.SPAN_KIND_CLIENT, "vendor's")
    assert said(request.attributes)["gen_ai.input.messages"] == '[{"x":"é"}]'


def test_odd_texts_of_clients_do_not_cost_the_batch() -> None:
    odd = record(asked="\udcff", path="/\udcff", client="\udcff")
    with collecting() as collector:
        made = exporter(collector.url)
        assert made.export([finished(odd), finished()]) is None
        made.close()
        assert len(collector.spans) == 4


def test_metrics_are_sent_when_they_are_due_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = GenAiMetrics(CALLED)
    metrics.add(record(), "POST")
    with collecting() as collector:
        made = exporter(collector.url, metrics)
        assert not made.metrics_due()
        monkeypatch.setattr(otlp_exporter, "METRICS_EVERY", 0.0)
        assert made.metrics_due()
        assert made.export_metrics() is None
        metrics.add(record(), "POST")
        made.close()
        counts = [
            export.resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points[0].count
            for export in collector.metrics
        ]
    assert counts == [1, 2]


def test_without_metrics_none_are_due() -> None:
    made = exporter("http://127.0.0.1:9")
    assert not made.metrics_due()
    assert (made.export_metrics(), made.close()) == (None, None)


def test_the_table_names_the_resource_and_each_process_is_one() -> None:
    settings = TracingSection(endpoint="http://c", service_name="edge", attributes={"host.name": "a", "team": "b"})
    first, second = resource_of(settings), resource_of(settings)
    assert (first.attributes["service.name"], first.attributes["host.name"], first.attributes["team"]) == (
        "edge",
        "a",
        "b",
    )
    assert first.attributes["service.instance.id"] != second.attributes["service.instance.id"]
