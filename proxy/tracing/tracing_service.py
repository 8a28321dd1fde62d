"""Tracing in a process that serves: chooses the trace of each request, and exports it when the request has ended.

Nothing here waits for a collector. If the configuration has no `server.tracing`, a request has no tracing hook. If it
has, a request that is not sampled costs ten more function calls (in addition to 308). A sampled request costs sixteen
more calls on the event loop's thread, and 20 to 25 us on the exporter's thread (`python -m tests.bench.tracing`).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from config.sections.tracing_section import TracingSection
from proxy.loop_clock import loop_clock
from proxy.optional_libraries import OTEL, extra_hint
from proxy.request_record import RequestRecord
from proxy.routing.snapshot import Snapshot
from proxy.telemetry.merged_metrics import MetricFamily
from proxy.tracing.begin_trace import TraceStarter
from proxy.tracing.export_queue import Exporter, ExportQueue, ExportState
from proxy.tracing.gen_ai_metrics import GenAiMetrics
from proxy.tracing.metric_names import BY_SETTING
from proxy.tracing.semantic_conventions import CalledDeployments, called_deployments
from proxy.tracing.span_values import FinishedRequest

FLUSH_TIMEOUT: Final = 3.0
"""The most seconds for which the end of the process waits for the last exports."""

ExporterMaker = Callable[[TracingSection, CalledDeployments, GenAiMetrics | None], Exporter]


TraceSetter = Callable[[TraceStarter | None], None]
"""A function that sets the starter of the traces of later requests; `None` means that requests are not traced."""


@dataclass(frozen=True, slots=True)
class _Running:
    """The queue and the metrics of one configuration's settings."""

    settings: TracingSection
    queue: ExportQueue
    metrics: GenAiMetrics | None


class TracingService:
    """The traces of a process. `set_traces` receives the starter of traces; `worker` is the number of the process among
    the workers of a gateway with several workers. Use it on the event loop's thread."""

    def __init__(self, set_traces: TraceSetter, make: ExporterMaker | None = None, worker: int | None = None) -> None:
        self.state = ExportState()
        self._set_traces = set_traces
        self._make = make
        self._worker = worker
        self._now = loop_clock()
        self._running: _Running | None = None
        self._called = CalledDeployments()
        self._log = logging.getLogger("dragoman")

    async def use(self, settings: TracingSection | None, snapshot: Snapshot) -> None:
        """Trace by the settings of a configuration from now on. Requests collected for a previous collector are still
        sent there."""
        self._called.by_label = called_deployments(snapshot.targets())
        before = self._running
        if settings == (None if before is None else before.settings):
            return
        running = None if settings is None else await self._start(settings)
        self._running = running
        on = None if running is None else running.settings
        self._set_traces(None if on is None else TraceStarter(on.sample, content=on.content))
        if before is not None:
            before.queue.end(before.settings.timeout)

    def finished(self, record: RequestRecord, cost: float | None) -> None:
        """Queue a request that has ended. This only appends the request to a queue and counts it."""
        running, trace = self._running, record.trace
        if running is None or trace is None:
            return
        if running.metrics is not None:
            running.metrics.add(record, trace.method)
        if (sampled := record.sampled) is not None:
            running.queue.put(FinishedRequest(record, sampled, sampled.notes, cost, time.time() - self._now()))

    async def aclose(self) -> None:
        """Send the remaining requests, for at most FLUSH_TIMEOUT seconds."""
        running, self._running = self._running, None
        self._set_traces(None)
        if running is not None:
            running.queue.end(FLUSH_TIMEOUT)
            if not await asyncio.to_thread(running.queue.join, FLUSH_TIMEOUT):
                self._log.warning("tracing: the collector is too slow; requests that it has not accepted are lost")

    def families(self) -> Iterator[MetricFamily]:
        """Yield the metrics of exports; nothing if tracing was never enabled."""
        if self._running is not None or self.state.exported or self.state.dropped:
            yield from export_families(self.state)()

    async def _start(self, settings: TracingSection) -> _Running | None:
        names = BY_SETTING[settings.metric_names]
        metrics = GenAiMetrics(self._called, names) if settings.metrics == "on" else None
        if self._make is None:
            if hint := extra_hint(OTEL, "tracing needs"):
                self._log.error("nothing is traced: %s", hint)
                return None
            self._make = await asyncio.to_thread(_load, self._worker)
        queue = ExportQueue(self._make(settings, self._called, metrics), self.state, self._changed)
        queue.start()
        return _Running(settings, queue, metrics)

    def _changed(self, what: str, trouble: str | None) -> None:
        """Log that exports begin to fail, or succeed again. This is called in the exporter's thread."""
        if trouble is not None:
            self._log.warning("tracing: %s are not exported: %s", what, trouble)
        else:
            self._log.info("tracing: %s are exported", what)


def _load(worker: int | None) -> ExporterMaker:
    # The module is imported here, only if the configuration enables tracing, because the import takes 0.3 s.
    from proxy.tracing.otlp_exporter import OtlpExporter

    return partial(OtlpExporter, worker=worker)


def export_families(state: ExportState) -> Callable[[], Iterator[MetricFamily]]:
    """Return a function that yields the metrics of exports."""

    def families() -> Iterator[MetricFamily]:
        yield _counter("tracing_exported", "Traced requests that the collector accepted.", state.exported)
        yield _counter("tracing_dropped", "Traced requests whose spans were lost.", state.dropped)
        yield _counter("tracing_export_failures", "Exports of spans or metrics that failed.", state.failures)

    return families


def _counter(name: str, text: str, count: int) -> MetricFamily:
    return MetricFamily(f"dragoman_{name}", "counter", text, (((f"dragoman_{name}_total", ()), float(count)),))
