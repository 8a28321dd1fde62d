"""The metrics that Prometheus scrapes, by what happens in the gateway.

What requests add to is counted in plain rows, which a scrape turns into prometheus_client's values: its own instruments
take a lock and several calls for each number.
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
"""Sets of label values that are kept apart; as many labelled histograms take over half a second to render."""

SHOWN_DIGITS = 9
"""Decimals of a counter: billionths of a USD, as in the ledger."""


class KeptSize(Protocol):
    """How much is kept."""

    size: int

    def __len__(self) -> int: ...


class EvictingSize(KeptSize, Protocol):
    """How much is kept, and how many have left for others."""

    evicted: int


class Instruments:
    """Makes instruments and adds them to a registry. Their label values together are bounded by MAX_LABEL_SETS; what
    has no room is counted as `other`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._label_sets = 0
        self._overflowed = CounterInstrument(
            "dragoman_label_overflows", "Counted as `other`: too many label values.", ("metric",), lambda: False
        )

    def counter(self, name: str, text: str, labels: tuple[str, ...]) -> CounterInstrument:
        """See InstrumentMaker."""
        return self._shown(CounterInstrument(f"dragoman_{name}", text, labels, self._full(f"dragoman_{name}")))

    def histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> HistogramInstrument:
        """See InstrumentMaker."""
        name = f"dragoman_{name}"
        # The function has no types.
        bounds: list[str] = [floatToGoString(each) for each in (*buckets, math.inf)]  # type: ignore[no-untyped-call]
        return self._shown(HistogramInstrument(name, text, labels, self._full(name), bounds))

    def inflight(self) -> GaugeInstrument:
        """Make the gauge of calls under way, whose overflows are counted under a shorter name."""
        name, text = "dragoman_inflight_requests", "Requests being answered by a deployment."
        return self._shown(GaugeInstrument(name, text, ("deployment",), self._full("inflight")))

    def show_overflows(self) -> None:
        """Add the counter of overflows."""
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
    """The metrics of one gateway. Methods that count are called on the event loop's thread alone. Those that count
    while a request runs raise nothing: a fault in a metric changes no response. It is counted and logged."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._touched: set[Series] = set()
        self._guard = ObserverGuard(self.observer_failed)
        ProcessCollector(registry=self.registry)
        make = self._make = Instruments(self.registry)
        self._counts = RequestCounts(make)
        self._fallbacks = make.counter("fallbacks", "Attempts elsewhere after a failure.", ("model", "reason"))
        self._denied = make.counter("retry_budget_denied", "Retries that no budget was left for.", ("model",))
        self._aborts = make.counter("stream_aborts", "Streams that ended early.", ("side", "reason", "model"))
        self._sheds = make.counter("shed", "Requests refused for the gateway's own sake.", ("reason",))
        self._sheds.started([reason.value for reason in OverloadReason])
        self._keys = make.counter("keys_refused", "Requests whose key is wrong, or has expired.", ("reason",))
        self._faults = make.counter(
            "observer_failures", "Faults of what observes requests; responses are not affected.", ("observer",)
        )
        self._limited = make.counter("rate_limited", "Requests refused for a limit or a budget.", ("team", "limit"))
        self._cache = {
            "hit": make.counter("cache_hits", "Requests answered out of the answer cache.", ("model",)),
            "stale": make.counter("cache_stale", "Requests answered past their time, as nobody else did.", ("model",)),
            "miss": make.counter("cache_misses", "Requests for the answer cache that asked a deployment.", ("model",)),
            "stored": make.counter("cache_stored", "Answers put into the answer cache.", ("model",)),
        }
        text = "Requests for names with affinity by what became of it: kept is the deployment of the conversation."
        self._affinity = make.counter("affinity", text, ("outcome",)).started(AFFINITY_OUTCOMES)
        text = (
            "Requests of names with second attempts whose first was late, by the second's outcome or why there is none."
        )
        self._hedges = make.counter("hedges", text, ("outcome",)).started(HEDGE_OUTCOMES)
        self._lag = self._gauge("event_loop_lag_seconds", "The worst lag of the last second.", ()).set
        self._reloads = make.counter("config_reloads", "Reloads of the table by result.", ("result",))
        self._inflight = make.inflight()
        self._inflight_rows: dict[str, list[float]] = {}  # as many as the instrument has series
        self._states: Callable[[], Iterable[tuple[str, int]]] = tuple
        self._state = self._gauge(
            "deployment_state", "The circuit: 0 closed, 1 half-open, 2 open; once called.", ("deployment",)
        )
        self._limits: Callable[[], Iterable[tuple[str, Limited]]] = tuple
        self._limit = self._gauge(
            "concurrency_limit", "The most requests at once at a deployment that has a limit.", ("deployment",)
        )
        self._reload_ok = self._gauge("config_last_reload_successful", "1 when the last reload took effect.", ())
        self._config = self._gauge("config_info", "1; the digest of the table in force.", ("digest",))
        self._gauge("build_info", "1; the gateway's version.", ("version",)).labels(VERSION).set(1)
        make.show_overflows()
        self._reload_ok.set(1)
        self._rendering = threading.Lock()

    def observe(self, record: RequestRecord, cost: float | None) -> None:
        """Count a finished request, and what it cost (None: not known)."""
        self._counts.add(record, cost)
        if (outcome := record.affinity) is not None:
            self._add(self._affinity, outcome)
        if record.hedge is not None:
            self._add(self._hedges, record.hedge)

    def inflight(self, deployment: str, change: int) -> None:
        """Count a call of a deployment as begun (1) or ended (-1)."""
        self.inflight_row(deployment)[0] += change

    def inflight_row(self, deployment: str) -> list[float]:
        """Return the row in which the calls of a deployment that have not ended are counted, for who counts both."""
        row = self._inflight_rows.get(deployment)
        if row is None:
            row = self._guard.call("metrics", "-", self._new_inflight, deployment)
        return [0.0] if row is None else row  # after a fault, a row that is not shown

    def _new_inflight(self, deployment: str) -> list[float]:
        series = self._inflight.series(deployment)
        if series.labels[0][1] == deployment:  # else it stands for others, each counted as an overflow
            self._inflight_rows[deployment] = series.row
        return series.row

    def fallback(self, model: str, reason: str) -> None:
        """Count a request that goes to another deployment; `reason` is the kind of the failure."""
        self._add(self._fallbacks, model, reason)

    def retry_denied(self, model: str) -> None:
        """Count a retry for which the retry budget had nothing left."""
        self._add(self._denied, model)

    def watch(self, states: Callable[[], Iterable[tuple[str, int]]]) -> None:
        """Call `states` for the circuit breaker's state of each deployment whenever metrics are rendered."""
        self._states = states

    def watch_limits(self, limits: Callable[[], Iterable[tuple[str, Limited]]]) -> None:
        """Call `limits` for the concurrency limits of deployments whenever metrics are rendered."""
        self._limits = limits

    def abort(self, side: str, reason: str, model: str) -> None:
        """Count a stream that ended early; `side` is `client`, `upstream` or `gateway`."""
        self._add(self._aborts, side, reason, model)

    def shed(self, reason: OverloadReason) -> None:
        """Count a request that was refused for the gateway's own sake."""
        self._add(self._sheds, reason.value)

    def shared(self, up: Callable[[], bool]) -> None:
        """Add the gauge of the link between processes; `up` says whether it works."""
        gauge = self._gauge("shared_state_up", "1 while other processes are told what vendors say.", ())
        gauge.set_function(lambda: float(up()))

    def watch_memory(self, share: Callable[[], float]) -> None:
        """Add the gauge of the memory that is used; `share` returns it as a part of the limit."""
        self._gauge("memory_used_ratio", "What is used of the memory limit; 0 without one.", ()).set_function(share)

    def watch_kept_turns(self, kept: KeptSize) -> None:
        """Add the gauges of the turns whose thinking is kept for clients that do not send it back."""
        self._gauge("kept_turns", "Turns with tool calls whose thinking is kept.", ()).set_function(lambda: len(kept))
        self._gauge("kept_turns_bytes", "What their thinking takes in memory.", ()).set_function(lambda: kept.size)

    def watch_kept_responses(self, kept: KeptSize) -> None:
        """Add the gauges of the responses that are stored for later turns."""
        count = self._gauge("kept_responses", "Stored responses, and the items in them.", ())
        count.set_function(lambda: len(kept))
        self._gauge("kept_responses_bytes", "What they take in memory.", ()).set_function(lambda: kept.size)

    def cache_used(self, what: Literal["hit", "stale", "miss", "stored"], model: str) -> None:
        """Count what the answer cache did for a request of a name."""
        self._add(self._cache[what], model)

    def watch_kept_answers(self, kept: EvictingSize) -> None:
        """Add the gauges of the answer cache, and the counter of what had to leave it before its time."""
        self._gauge("cache_answers", "Answers in the answer cache.", ()).set_function(lambda: len(kept))
        self._gauge("cache_bytes", "What they take in memory.", ()).set_function(lambda: kept.size)
        name, text = "dragoman_cache_evicted", "Answers that left the cache for others before their time."
        key = (f"{name}_total", ())
        self.watch_families(lambda: [MetricFamily(name, "counter", text, ((key, float(kept.evicted)),))])

    def watch_families(self, families: Callable[[], Iterable[MetricFamily]]) -> None:
        """Show these too, called for whenever metrics are rendered."""
        self.registry.register(_FamilyCollector(families))

    def observer_failed(self, observer: str) -> None:
        """Count a fault in what observes requests."""
        self._add(self._faults, observer)

    def key_refused(self, reason: Literal["wrong", "expired"]) -> None:
        """Count a request whose key is of no team, or was one's."""
        self._add(self._keys, reason)

    def rate_limited(self, team: str, limit: str) -> None:
        """Count a request that was refused for a limit or a budget; `team` is empty for a deployment's."""
        self._add(self._limited, team, limit)

    def shed_before_parsing(self, surface: str, status: int, reason: OverloadReason, count: int) -> None:
        """Count requests that were refused for the gateway's own sake before they were parsed."""
        self._add(self._sheds, reason.value, count=count)
        self._add(self._counts.requests, UNKNOWN_TEAM, surface, OTHER, str(status), "false", "shed", count=count)

    def malformed(self, status: int, outcome: Outcome, count: int) -> None:
        """Count input that was not HTTP, by the status and outcome of its answer."""
        self._add(self._counts.requests, UNKNOWN_TEAM, OTHER, OTHER, str(status), "false", outcome, count=count)

    def lag(self, seconds: float) -> None:
        """Set the event loop's worst lag of the last second."""
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
        """Set the digest of the table in force."""
        self._config.clear()
        self._config.labels(digest[:12]).set(1)

    content_type = CONTENT_TYPE_LATEST

    def render(self) -> bytes:
        """Return the text exposition. Call it off the event loop: 10,000 series take 60 ms."""
        with self._rendering:
            self._refresh_deployments()
            return generate_latest(self.registry)

    def families(self) -> list[MetricFamily]:
        """Return all metrics as values, for another process. Call it off the event loop, as `render`."""
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
        """Return the touched series as they are now; may be called off the event loop."""
        found: dict[Instrument, list[Series]] = {}
        for series in touched:
            found.setdefault(series.instrument, []).append(series)
        return [instrument.family_of(several) for instrument, several in found.items()]

    def worker_metrics(self) -> "WorkerMetrics":
        """Add and return the metrics of a process that has workers."""
        workers = self._gauge("workers", "Processes that take requests.", ())
        text = "Workers that ended unasked and were followed by another."
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
    """`workers` sets how many processes take requests, `restarted` counts one that had to be replaced."""

    workers: Callable[[float], None]
    restarted: Callable[[], None]


class _FamilyCollector:
    """Makes a registry show families as they are when it is asked."""

    def __init__(self, families: Callable[[], Iterable[MetricFamily]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """See CollectorRegistry.register."""
        for family in self._families():
            metric = Metric(family.name, family.text, family.kind)
            # Sums of fractions are inexact in their last places. Rounding keeps the order, so that no counter falls.
            digits = SHOWN_DIGITS if family.kind == "counter" else None
            for (name, labels), value in family.samples:
                metric.add_sample(name, dict(labels), value if digits is None else round(value, digits))
            yield metric


def exposition(families: Iterable[MetricFamily]) -> bytes:
    """Return the text exposition of merged families. Call it off the event loop."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_FamilyCollector(lambda: families))
    return generate_latest(registry)
