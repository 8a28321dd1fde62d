"""The objects that a configuration's tracing settings create, and their end."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from config.sections.tracing_section import TracingSection
from proxy.request_record import RequestRecord
from proxy.trace_context import Trace
from proxy.tracing import export_queue, tracing_service
from proxy.tracing.begin_trace import TraceStarter
from proxy.tracing.export_queue import Exporter
from proxy.tracing.gen_ai_metrics import GenAiMetrics
from proxy.tracing.semantic_conventions import CalledDeployments
from proxy.tracing.span_values import FinishedRequest
from proxy.tracing.tracing_service import TracingService
from tests.proxy.kit.tables import snapshot
from tests.proxy.tracing.kit.finished import record, trace

TABLE = snapshot("vendors: {mock: {}}\nmodels: {mock/echo: {}}\n")
ON = TracingSection(endpoint="http://127.0.0.1:9", sample=0.5)


@dataclass
class Gateway:
    traces: TraceStarter | None = None

    def trace(self, traces: TraceStarter | None) -> None:
        self.traces = traces


@dataclass
class StoringExporter:
    """An exporter that stores the requests it gets."""

    metrics: GenAiMetrics | None
    requests: list[FinishedRequest] = field(default_factory=list)
    closed: bool = False

    def export(self, requests: Sequence[FinishedRequest]) -> str | None:
        self.requests += requests
        return None

    def export_metrics(self) -> str | None:
        return None

    def metrics_due(self) -> bool:
        return False

    def stop_repeating(self) -> None:
        """Do nothing: this exporter repeats nothing."""

    def close(self) -> str | None:
        self.closed = True
        return None


@dataclass
class Rig:
    gateway: Gateway
    service: TracingService
    made: list[StoringExporter]


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(export_queue, "EXPORT_EVERY", 0.005)
    made: list[StoringExporter] = []

    def make(settings: TracingSection, called: CalledDeployments, metrics: GenAiMetrics | None) -> Exporter:
        made.append(StoringExporter(metrics))
        return made[-1]

    gateway = Gateway()
    return Rig(gateway, TracingService(gateway.trace, make), made)


UNSAMPLED = Trace(f"{1:032x}", "", "POST")


def sampled() -> RequestRecord:
    of = trace()
    return record(trace=of, sampled=of)


async def test_off_there_is_neither_a_thread_nor_a_trace_nor_a_metric(rig: Rig) -> None:
    await rig.service.use(None, TABLE)
    rig.service.finished(sampled(), None)
    await rig.service.aclose()
    assert (rig.gateway.traces, rig.made, [*rig.service.families()]) == (None, [], [])


async def test_sampled_requests_are_exported_with_what_they_cost(rig: Rig) -> None:
    await rig.service.use(ON, TABLE)
    assert rig.gateway.traces is not None
    for each in (sampled(), record(trace=UNSAMPLED)):
        rig.service.finished(each, 0.25)
    rig.service.finished(record(), None)
    await rig.service.aclose()
    ((got,),) = ([*rig.made[0].requests],)
    assert (got.cost, got.trace.flags, rig.made[0].closed) == (0.25, 1, True)
    assert {each.name: each.samples[0][1] for each in rig.service.families()} == {
        "dragoman_tracing_exported": 1.0,
        "dragoman_tracing_dropped": 0.0,
        "dragoman_tracing_export_failures": 0.0,
    }


async def test_metrics_count_every_request_that_is_part_of_a_trace(rig: Rig) -> None:
    await rig.service.use(ON.model_copy(update={"metrics": "on"}), TABLE)
    for each in (sampled(), record(trace=UNSAMPLED)):
        rig.service.finished(each, None)
    metrics = rig.made[0].metrics
    await rig.service.aclose()
    assert metrics is not None
    assert sum(sum(each.counts) for each in metrics.values() if each.name.endswith("duration")) == 2


async def test_the_same_settings_go_on_and_others_begin_anew(rig: Rig) -> None:
    await rig.service.use(ON, TABLE)
    starter = rig.gateway.traces
    await rig.service.use(ON.model_copy(), TABLE)
    assert (rig.gateway.traces, len(rig.made)) == (starter, 1)
    rig.service.finished(sampled(), None)
    await rig.service.use(ON.model_copy(update={"sample": 0.1}), TABLE)
    rig.service.finished(sampled(), None)
    await rig.service.use(None, TABLE)
    assert rig.gateway.traces is None
    await rig.service.aclose()
    for made in rig.made:
        while not made.closed:
            pass
    assert [len(made.requests) for made in rig.made] == [1, 1]


async def test_a_library_that_is_missing_is_told_and_requests_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing_service, "extra_hint", lambda extra, need: f"{need} an extra: pip install {extra.name}")
    gateway = Gateway()
    service = TracingService(gateway.trace)
    with caplog.at_level(logging.ERROR, "dragoman"):
        await service.use(ON, TABLE)
    await service.aclose()
    assert gateway.traces is None
    assert "nothing is traced: tracing needs an extra: pip install otel" in caplog.text
