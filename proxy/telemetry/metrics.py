"""The instruments that Prometheus scrapes, fed from finished request records.

Label values come from the table: whatever a client chose is `other`. Buckets of durations double from 10 ms as in the
OpenTelemetry GenAI conventions; those of the first token follow its server metric, extended to 60 s because reasoning
models are slow.
"""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from proxy.deployment_health.concurrency_limit import Limited
from proxy.errors import OverloadReason
from proxy.request_record import OTHER, UNKNOWN_TEAM, Outcome, RequestRecord
from proxy.telemetry.merged_metrics import Key, MetricFamily
from proxy.version import VERSION

# The `_created` series would double the cost of a scrape, and no dashboard or alert here reads them.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's own gap

DURATION_BUCKETS = tuple(0.01 * 2**power for power in range(16))
FIRST_TOKEN_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
OVERHEAD_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)

MAX_LABEL_SETS = 5_000
"""Sets of label values that are kept apart; as many labelled histograms take 22 MB and over half a second to render."""

NOBODY = "none"
"""The deployment label of requests for which no deployment was called; a deployment's name has slashes."""

Labels = tuple[str, ...]
"""An instrument's name and the values of its labels."""

CACHE_SECONDS = 1.0
"""Seconds for which one exposition serves every scrape."""


class KeptSize(Protocol):
    """How much is kept."""

    size: int

    def __len__(self) -> int: ...


class Metrics:
    """One registry with its instruments and a cache of their children by label values: `labels()` takes about 1.5 us, a
    lookup in the cache 0.35 us."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._children: dict[Labels, Callable[[float], None]] = {}
        self._counting: dict[str, tuple[Counter | Histogram, Labels]] = {}
        self._touched: set[Labels] = set()
        ProcessCollector(registry=self.registry)
        self._requests = self._counter(
            "requests", "Requests answered.", ("team", "surface", "model", "code", "stream", "outcome")
        )
        self._duration = self._histogram(
            "request_duration_seconds",
            "Time from request to the end of the answer.",
            ("surface", "model", "deployment"),
            DURATION_BUCKETS,
        )
        self._first_token = self._histogram(
            "time_to_first_token_seconds",
            "Time from request to the first content of a stream.",
            ("model", "deployment"),
            FIRST_TOKEN_BUCKETS,
        )
        self._overhead = self._histogram(
            "overhead_seconds",
            "Time in the gateway, waiting for the upstream and for the client excluded.",
            ("surface",),
            OVERHEAD_BUCKETS,
        )
        self._attempts = self._counter("attempts", "Calls of a deployment by outcome.", ("deployment", "outcome"))
        self._tokens = self._counter(
            "tokens",
            "Tokens as the upstream counted them; a guess where it counted none.",
            ("team", "model", "direction"),
        )
        self._cost = self._counter("cost_usd", "What the tokens cost, where their price is known.", ("team", "model"))
        self._fallbacks = self._counter("fallbacks", "Attempts elsewhere after a failure.", ("model", "reason"))
        self._denied = self._counter("retry_budget_denied", "Retries that no budget was left for.", ("model",))
        self._aborts = self._counter("stream_aborts", "Streams that ended early.", ("side", "reason", "model"))
        self._sheds = self._counter("shed", "Requests refused for the gateway's own sake.", ("reason",))
        for reason in OverloadReason:
            self._sheds.labels(reason.value)
        self._lag = self._gauge("event_loop_lag_seconds", "The worst lag of the last second.", ()).set
        self._reloads = self._counter("config_reloads", "Reloads of the table by result.", ("result",))
        self._inflight = self._gauge("inflight_requests", "Requests being answered by a deployment.", ("deployment",))
        self._states: Callable[[], Iterable[tuple[str, int]]] = tuple
        self._state = self._gauge(
            "deployment_state", "0 asked as usual, 1 on trial, 2 left alone, once it has been asked.", ("deployment",)
        )
        self._limits: Callable[[], Iterable[tuple[str, Limited]]] = tuple
        self._limit = self._gauge(
            "concurrency_limit", "The most requests at once at a deployment that has a limit.", ("deployment",)
        )
        self._reload_ok = self._gauge("config_last_reload_successful", "1 when the last reload took effect.", ())
        self._config = self._gauge("config_info", "1; the digest of the table in force.", ("digest",))
        self._gauge("build_info", "1; the gateway's version.", ("version",)).labels(VERSION).set(1)
        self._overflows = self._counter("label_overflows", "Counted as `other`: too many label values.", ("metric",))
        self._reload_ok.set(1)
        self._rendering = threading.Lock()

    def inflight(self, deployment: str, change: int) -> None:
        """Count a call of a deployment as begun (1) or ended (-1)."""
        key = ("inflight", deployment)
        child = self._children.get(key)
        if child is None:
            _, child = self._new(key, self._inflight)
        child(change)

    def observe(self, record: RequestRecord) -> None:
        """Count a finished request. One that was shed is counted and no more, since shedding has to be cheap."""
        surface, model, team = record.surface, record.model, record.team
        stream = "true" if record.stream else "false"
        self._add(self._requests, team, surface, model, str(record.status), stream, record.outcome)
        if record.outcome == "shed":
            return
        self._record(self._duration, record.duration, surface, model, record.deployment or NOBODY)
        self._record(self._overhead, max(0.0, record.duration - record.waited - record.client_waited), surface)
        for attempt in record.attempts:
            self._add(self._attempts, attempt.deployment, attempt.outcome)
        if record.first_content is not None and record.deployment is not None:
            self._record(self._first_token, record.first_content - record.started, model, record.deployment)
        usage = record.billed or record.usage
        if usage is not None:
            self._record(self._tokens, usage.prompt_tokens, team, model, "input")
            self._record(self._tokens, usage.completion_tokens, team, model, "output")
        if (cost := record.cost) is not None:
            self._record(self._cost, cost, team, model)

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

    def watch_kept_turns(self, kept: KeptSize) -> None:
        """Add the gauges of the turns whose thinking is kept for clients that do not send it back."""
        self._gauge("kept_turns", "Turns with tool calls whose thinking is kept.", ()).set_function(lambda: len(kept))
        self._gauge("kept_turns_bytes", "What their thinking takes in memory.", ()).set_function(lambda: kept.size)

    def watch_kept_responses(self, kept: KeptSize) -> None:
        """Add the gauges of the responses that are stored for later turns."""
        count = self._gauge("kept_responses", "Stored responses, and the items in them.", ())
        count.set_function(lambda: len(kept))
        self._gauge("kept_responses_bytes", "What they take in memory.", ()).set_function(lambda: kept.size)

    def shed_before_parsing(self, surface: str, reason: OverloadReason, count: int) -> None:
        """Count requests that were refused for the gateway's own sake before they were parsed."""
        self._record(self._sheds, count, reason.value)
        self._record(self._requests, count, UNKNOWN_TEAM, surface, OTHER, "503", "false", "shed")

    def malformed(self, status: int, outcome: Outcome, count: int) -> None:
        """Count input that was not HTTP, by the status and outcome of its answer."""
        self._record(self._requests, count, UNKNOWN_TEAM, OTHER, OTHER, str(status), "false", outcome)

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

    def touched(self) -> Set[Labels]:
        """Return the series counted since the last call, for `changes`. Call it on the event loop's thread."""
        touched, self._touched = self._touched, set()
        return touched

    def changes(self, touched: Set[Labels]) -> list[MetricFamily]:
        """Return the touched series as they are now; may be called off the event loop."""
        found: dict[str, list[tuple[Key, float]]] = {}
        for name, *values in touched:
            parent, labels = self._counting[name]
            own = tuple(zip(labels, values, strict=True))
            samples = found.setdefault(name, [])
            # `collect` would make a Metric around the one series, which takes ten times as long.
            for each in parent.labels(*values)._child_samples():
                samples.append(((name + each.name, (*own, *each.labels.items())), each.value))
        parents = {name: self._counting[name][0] for name in found}
        return [
            MetricFamily(name, parent._type, parent._documentation, tuple(found[name]))
            for name, parent in parents.items()
        ]

    def worker_metrics(self) -> "WorkerMetrics":
        """Add and return the instruments of a process that has workers."""
        return WorkerMetrics(
            self._gauge("workers", "Processes that take requests.", ()).set,
            self._counter("worker_restarts", "Workers that ended unasked and were followed by another.", ()).inc,
        )

    def _refresh_deployments(self) -> None:
        self._state.clear()
        for deployment, state in self._states():
            self._state.labels(deployment).set(state)
        self._limit.clear()
        for deployment, limited in self._limits():
            self._limit.labels(deployment).set(limited.limit)

    def _add(self, counter: Counter, *labels: str) -> None:
        self._record(counter, 1, *labels)

    def _record(self, parent: Counter | Histogram, value: float, *labels: str) -> None:
        key = (parent._name, *labels)
        child = self._children.get(key)
        if child is None:
            key, child = self._new(key, parent)
        self._touched.add(key)
        child(value)

    def _new(self, key: Labels, parent: Counter | Gauge | Histogram) -> tuple[Labels, Callable[[float], None]]:
        """Return the child for new label values, and its key. Past MAX_LABEL_SETS all share one child whose labels are
        `other`: a table reloaded again and again under other names must not fill the memory."""
        if len(self._children) >= MAX_LABEL_SETS:
            self._overflows.labels(key[0]).inc()
            key = (key[0], *(OTHER for _ in key[1:]))
            if key in self._children:
                return key, self._children[key]
        labelled = parent.labels(*key[1:])
        child = labelled.observe if isinstance(labelled, Histogram) else labelled.inc
        self._children[key] = child
        return key, child

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        made = Counter(f"dragoman_{name}", text, labels, registry=self.registry)
        self._counting[made._name] = made, labels
        return made

    def _gauge(self, name: str, text: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(f"dragoman_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
        made = Histogram(f"dragoman_{name}", text, labels, registry=self.registry, buckets=buckets)
        self._counting[made._name] = made, labels
        return made


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """`workers` sets how many processes take requests, `restarted` counts one that had to be replaced."""

    workers: Callable[[float], None]
    restarted: Callable[[], None]


class _FamilyCollector:
    """Makes a registry render the families of several processes."""

    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """See CollectorRegistry.register."""
        for family in self._families:
            metric = Metric(family.name, family.text, family.kind)
            for (name, labels), value in family.samples:
                metric.add_sample(name, dict(labels), value)
            yield metric


class CachedExposition:
    """A gateway's text exposition, rendered once for all scrapes within CACHE_SECONDS."""

    def __init__(self, render: Callable[[], Awaitable[bytes]]) -> None:
        self._render = render
        self._rendering = asyncio.Lock()
        self._rendered = (-math.inf, b"")

    async def recent(self) -> bytes:
        """Return the exposition, at most CACHE_SECONDS old."""
        async with self._rendering:
            then, text = self._rendered
            return text if time.monotonic() - then < CACHE_SECONDS else await self._renewed()

    async def fresh(self) -> bytes:
        """Render the exposition now."""
        async with self._rendering:
            return await self._renewed()

    async def _renewed(self) -> bytes:
        text = await self._render()
        self._rendered = (time.monotonic(), text)
        return text


def exposition(families: Iterable[MetricFamily]) -> bytes:
    """Return the text exposition of merged families. Call it off the event loop."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_FamilyCollector(families))
    return generate_latest(registry)
