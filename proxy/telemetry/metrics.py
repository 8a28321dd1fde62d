"""The metrics that Prometheus scrapes, with a method for each event of the gateway.

The counts of requests are plain rows, which a scrape turns into prometheus_client's values. The instruments of
prometheus_client take a lock and several calls for each number.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.utils import floatToGoString

from proxy.deployment_health.concurrency_limit import Limited
from proxy.errors import OverloadReason
from proxy.request_outcomes import AFFINITY_OUTCOMES, HEDGE_OUTCOMES
from proxy.request_record import OTHER, UNKNOWN_TEAM, Outcome, RequestRecord
from proxy.telemetry.instruments import (
    CounterInstrument,
    GaugeInstrument,
    HistogramInstrument,
    Instrument,
    Series,
)
from proxy.telemetry.merged_metrics import MetricFamily
from proxy.telemetry.observer_guard import ObserverGuard
from proxy.telemetry.request_counts import RequestCounts
from proxy.version import VERSION

InstrumentT = TypeVar("InstrumentT", bound=Instrument)

MAX_LABEL_SETS = 5_000
"""The most sets of label values counted separately. Rendering so many labelled histograms takes over half a second."""

SHOWN_DIGITS = 9
"""The decimals of a rendered counter: amounts are exact to a billionth of a USD, as in the ledger."""


class StorageSize(Protocol):
    """The size of a storage: its bytes and the number of its entries."""

    size: int

    def __len__(self) -> int: ...


class EvictingStorageSize(StorageSize, Protocol):
    """The size of a storage, and the number of entries that were evicted."""

    evicted: int


class Instruments:
    """Creates instruments and adds them to a registry. The number of their label sets is bounded by MAX_LABEL_SETS;
    further sets are counted as `other`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._label_sets = 0
        self._overflowed = CounterInstrument(
            "dragoman_label_overflows", "Counted as `other`: too many label values.", ("metric",), lambda: False
        )

    def counter(self, name: str, text: str, labels: tuple[str, ...]) -> CounterInstrument:
        """Return a new counter with the prefix `dragoman_`."""
        return self._shown(CounterInstrument(f"dragoman_{name}", text, labels, self._full(f"dragoman_{name}")))

    def histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> HistogramInstrument:
        """Return a new histogram with the prefix `dragoman_`."""
        name = f"dragoman_{name}"
        # prometheus_client does not annotate this function.
        bounds: list[str] = [floatToGoString(each) for each in (*buckets, math.inf)]  # type: ignore[no-untyped-call]
        return self._shown(HistogramInstrument(name, text, labels, self._full(name), bounds))

    def inflight(self) -> GaugeInstrument:
        """Return the gauge of calls in flight. Label sets beyond the bound are counted under a shorter name."""
        name, text = "dragoman_inflight_requests", "Requests in flight at a deployment."
        return self._shown(GaugeInstrument(name, text, ("deployment",), self._full("inflight")))

    def show_overflows(self) -> None:
        """Add the counter of label sets that were counted as `other`."""
        self._shown(self._overflowed)

    def _full(self, name: str) -> Callable[[], bool]:
        return partial(self._is_full, name)

    def _is_full(self, name: str) -> bool:
        if self._label_sets < MAX_LABEL_SETS:
            self._label_sets += 1
            return False
        self._overflowed.series(name).row[0] += 1
        return True

    def _shown(self, instrument: InstrumentT) -> InstrumentT:
        self._registry.register(_FamilyCollector(lambda: [instrument.family()]))
        return instrument


class Metrics:
    """The metrics of one gateway. Call the methods that count only on the event loop's thread. The methods that count
    while a request runs raise nothing: a fault in a metric changes no response, and is counted and logged."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._touched: set[Series] = set()
        self._guard = ObserverGuard(self.observer_failed)
        ProcessCollector(registry=self.registry)
        make = self._make = Instruments(self.registry)
        self._counts = RequestCounts(make)
        self._fallbacks = make.counter(
            "fallbacks", "Requests that continued with another deployment after a failure.", ("model", "reason")
        )
        self._denied = make.counter("retry_budget_denied", "Retries that the retry budget did not permit.", ("model",))
        self._aborts = make.counter("stream_aborts", "Streams that ended early.", ("side", "reason", "model"))
        self._sheds = make.counter("shed", "Requests refused to protect the gateway.", ("reason",))
        self._sheds.started([reason.value for reason in OverloadReason])
        self._keys = make.counter("keys_refused", "Requests whose key is wrong or has expired.", ("reason",))
        self._faults = make.counter(
            "observer_failures", "Faults of observers of requests; responses are not affected.", ("observer",)
        )
        self._limited = make.counter(
            "rate_limited", "Requests refused because of a limit or a budget.", ("team", "limit")
        )
        self._cache = {
            "hit": make.counter("cache_hits", "Requests served from the response cache.", ("model",)),
            "stale": make.counter(
                "cache_stale", "Requests served with an expired cached response in place of an error.", ("model",)
            ),
            "miss": make.counter(
                "cache_misses", "Requests for the response cache that called a deployment.", ("model",)
            ),
            "stored": make.counter("cache_stored", "Responses stored in the response cache.", ("model",)),
        }
        text = "Requests for names with affinity, by outcome: kept means the deployment of the conversation."
        self._affinity = make.counter("affinity", text, ("outcome",)).started(AFFINITY_OUTCOMES)
        text = "Requests whose first attempt was late, by the outcome of the second, or by the reason for having none."
        self._hedges = make.counter("hedges", text, ("outcome",)).started(HEDGE_OUTCOMES)
        self._lag = self._gauge("event_loop_lag_seconds", "The worst lag of the event loop in the last second.", ()).set
        self._reloads = make.counter("config_reloads", "Reloads of the configuration by result.", ("result",))
        self._inflight = make.inflight()
        self._inflight_rows: dict[str, list[float]] = {}  # the number of rows is the number of the instrument's series
        self._states: Callable[[], Iterable[tuple[str, int]]] = tuple
        self._state = self._gauge(
            "deployment_state",
            "The circuit of a deployment that was called: 0 closed, 1 half-open, 2 open.",
            ("deployment",),
        )
        self._limits: Callable[[], Iterable[tuple[str, Limited]]] = tuple
        self._limit = self._gauge(
            "concurrency_limit", "The concurrency limit of a deployment that has one.", ("deployment",)
        )
        self._reload_ok = self._gauge("config_last_reload_successful", "1 when the last reload took effect.", ())
        self._config = self._gauge("config_info", "1; the digest of the current configuration.", ("digest",))
        self._gauge("build_info", "1; the gateway's version.", ("version",)).labels(VERSION).set(1)
        make.show_overflows()
        self._reload_ok.set(1)
        self._rendering = threading.Lock()

    def observe(self, record: RequestRecord, cost: float | None) -> None:
        """Count a finished request and its cost in USD (`None` if unknown)."""
        self._counts.add(record, cost)
        if (outcome := record.affinity) is not None:
            self._add(self._affinity, outcome)
        if record.hedge is not None:
            self._add(self._hedges, record.hedge)

    def inflight(self, deployment: str, change: int) -> None:
        """Count a call of a deployment as begun (1) or ended (-1)."""
        self.inflight_row(deployment)[0] += change

    def inflight_row(self, deployment: str) -> list[float]:
        """Return the row that counts the calls of a deployment in flight, for a caller that counts both the begin and
        the end of each call."""
        row = self._inflight_rows.get(deployment)
        if row is None:
            row = self._guard.call("metrics", "-", self._new_inflight, deployment)
        return [0.0] if row is None else row  # after a fault the caller gets a row that is never rendered

    def _new_inflight(self, deployment: str) -> list[float]:
        series = self._inflight.series(deployment)
        if series.labels[0][1] == deployment:  # otherwise the series is `other`, and each call is an overflow
            self._inflight_rows[deployment] = series.row
        return series.row

    def fallback(self, model: str, reason: str) -> None:
        """Count a request that continues with another deployment; `reason` is the kind of the failure."""
        self._add(self._fallbacks, model, reason)

    def retry_denied(self, model: str) -> None:
        """Count a retry that the retry budget did not permit."""
        self._add(self._denied, model)

    def watch(self, states: Callable[[], Iterable[tuple[str, int]]]) -> None:
        """Call `states`, which returns the state of each deployment's circuit, whenever metrics are rendered."""
        self._states = states

    def watch_limits(self, limits: Callable[[], Iterable[tuple[str, Limited]]]) -> None:
        """Call `limits`, which returns the concurrency limits of deployments, whenever metrics are rendered."""
        self._limits = limits

    def abort(self, side: str, reason: str, model: str) -> None:
        """Count a stream that ended early; `side` is `client`, `upstream` or `gateway`."""
        self._add(self._aborts, side, reason, model)

    def shed(self, reason: OverloadReason) -> None:
        """Count a request that was refused to protect the gateway."""
        self._add(self._sheds, reason.value)

    def shared(self, up: Callable[[], bool]) -> None:
        """Add the gauge of the link between processes; `up` returns whether it works."""
        gauge = self._gauge("shared_state_up", "1 while the state of vendors is shared with other processes.", ())
        gauge.set_function(lambda: float(up()))

    def watch_memory(self, share: Callable[[], float]) -> None:
        """Add the gauge of memory use; `share` returns the used share of the limit."""
        self._gauge("memory_used_ratio", "The used share of the memory limit; 0 without a limit.", ()).set_function(
            share
        )

    def watch_stored_turns(self, storage: StorageSize) -> None:
        """Add the gauges of the turns whose reasoning is stored for clients that do not send it back."""
        self._gauge("kept_turns", "Turns with tool calls whose reasoning is stored.", ()).set_function(
            lambda: len(storage)
        )
        self._gauge("kept_turns_bytes", "Memory of the stored reasoning, in bytes.", ()).set_function(
            lambda: storage.size
        )

    def watch_stored_responses(self, storage: StorageSize) -> None:
        """Add the gauges of the responses that are stored for later turns."""
        count = self._gauge("kept_responses", "Stored responses, and the items in them.", ())
        count.set_function(lambda: len(storage))
        self._gauge("kept_responses_bytes", "Memory of the stored responses, in bytes.", ()).set_function(
            lambda: storage.size
        )

    def cache_used(self, result: Literal["hit", "stale", "miss", "stored"], model: str) -> None:
        """Count the effect of the response cache on a request."""
        self._add(self._cache[result], model)

    def watch_response_cache(self, storage: EvictingStorageSize) -> None:
        """Add the gauges of the response cache, and the counter of entries that were evicted early."""
        self._gauge("cache_answers", "Responses in the response cache.", ()).set_function(lambda: len(storage))
        self._gauge("cache_bytes", "Memory of the response cache, in bytes.", ()).set_function(lambda: storage.size)
        name, text = "dragoman_cache_evicted", "Responses evicted from the response cache before they expired."
        key = (f"{name}_total", ())
        self.watch_families(lambda: [MetricFamily(name, "counter", text, ((key, float(storage.evicted)),))])

    def watch_families(self, families: Callable[[], Iterable[MetricFamily]]) -> None:
        """Render the families that the given function returns; it is called whenever metrics are rendered."""
        self.registry.register(_FamilyCollector(families))

    def observer_failed(self, observer: str) -> None:
        """Count a fault in an observer of requests."""
        self._add(self._faults, observer)

    def key_refused(self, reason: Literal["wrong", "expired"]) -> None:
        """Count a request whose key is wrong or has expired."""
        self._add(self._keys, reason)

    def rate_limited(self, team: str, limit: str) -> None:
        """Count a request that was refused because of a limit or a budget; `team` is empty for a limit of a
        deployment."""
        self._add(self._limited, team, limit)

    def shed_before_parsing(self, surface: str, status: int, reason: OverloadReason, count: int) -> None:
        """Count requests that were refused to protect the gateway before they were parsed."""
        self._add(self._sheds, reason.value, count=count)
        self._add(self._counts.requests, UNKNOWN_TEAM, surface, OTHER, str(status), "false", "shed", count=count)

    def malformed(self, status: int, outcome: Outcome, count: int) -> None:
        """Count input that was not HTTP, by the status and outcome of its response."""
        self._add(self._counts.requests, UNKNOWN_TEAM, OTHER, OTHER, str(status), "false", outcome, count=count)

    def lag(self, seconds: float) -> None:
        """Set the worst lag of the event loop in the last second, in seconds."""
        self._lag(seconds)

    def reloaded(self, digest: str) -> None:
        """Count a reload that took effect."""
        self._add(self._reloads, "success")
        self._reload_ok.set(1)
        self.config(digest)

    def reload_failed(self) -> None:
        """Count a reload that was refused."""
        self._add(self._reloads, "failure")
        self._reload_ok.set(0)

    def config(self, digest: str) -> None:
        """Set the digest of the current configuration."""
        self._config.clear()
        self._config.labels(digest[:12]).set(1)

    content_type = CONTENT_TYPE_LATEST

    def render(self) -> bytes:
        """Return the text exposition. Call it off the event loop: 10,000 series take 60 ms."""
        with self._rendering:
            self._refresh_deployments()
            return generate_latest(self.registry)

    def families(self) -> list[MetricFamily]:
        """Return all metrics as values, for another process. Call it off the event loop, like `render`."""
        with self._rendering:
            self._refresh_deployments()
            return [
                MetricFamily(
                    found.name,
                    found.type,
                    found.documentation,
                    tuple(((each.name, tuple(each.labels.items())), each.value) for each in found.samples),
                )
                for found in self.registry.collect()
            ]

    def touched(self) -> Set[Series]:
        """Return the series counted since the last call, for `changes`. Call it on the event loop's thread."""
        touched, self._touched = self._touched, set()
        return touched | self._counts.touched()

    def changes(self, touched: Set[Series]) -> list[MetricFamily]:
        """Return the given touched series with their current values. It may be called off the event loop."""
        found: dict[Instrument, list[Series]] = {}
        for series in touched:
            found.setdefault(series.instrument, []).append(series)
        return [instrument.family_of(several) for instrument, several in found.items()]

    def worker_metrics(self) -> "WorkerMetrics":
        """Add and return the metrics of a process that has workers."""
        workers = self._gauge("workers", "Processes that take requests.", ())
        text = "Workers that ended unexpectedly and were replaced."
        restarts = self._make.counter("worker_restarts", text, ())
        restarts.start()
        return WorkerMetrics(workers.set, partial(self._add, restarts))

    def _refresh_deployments(self) -> None:
        self._state.clear()
        for deployment, state in self._states():
            self._state.labels(deployment).set(state)
        self._limit.clear()
        for deployment, limited in self._limits():
            self._limit.labels(deployment).set(limited.limit)

    def _add(self, instrument: CounterInstrument, *values: str, count: int = 1) -> None:
        """Add to a counter. Raises nothing."""
        self._guard.call("metrics", "-", self._add_to, instrument, values, count)

    def _add_to(self, instrument: CounterInstrument, values: tuple[str, ...], count: int) -> None:
        self._touched.add(series := instrument.series(*values))
        series.row[0] += count

    def _gauge(self, name: str, text: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(f"dragoman_{name}", text, labels, registry=self.registry)


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """The metrics of workers: `workers` sets the number of processes that take requests; `restarted` counts a replaced
    worker."""

    workers: Callable[[float], None]
    restarted: Callable[[], None]


class _FamilyCollector:
    """Makes a registry show families with the values at the time of rendering."""

    def __init__(self, families: Callable[[], Iterable[MetricFamily]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the families as prometheus_client's metrics."""
        for family in self._families():
            metric = Metric(family.name, family.text, family.kind)
            # Sums of fractions are inexact in their last decimals. Rounding preserves the order of two values, so that
            # no counter decreases.
            digits = SHOWN_DIGITS if family.kind == "counter" else None
            for (name, labels), value in family.samples:
                metric.add_sample(name, dict(labels), value if digits is None else round(value, digits))
            yield metric


def exposition(families: Iterable[MetricFamily]) -> bytes:
    """Return the text exposition of merged families. Call it off the event loop."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_FamilyCollector(lambda: families))
    return generate_latest(registry)
