"""The instruments that Prometheus scrapes, fed from finished request records.

Never labels with anything a client chose: label values come from the table, everything else is `other`.

Names and labels are the contract of the metrics list; buckets of durations double from 10 ms as the OpenTelemetry GenAI
conventions do, those of the first token follow its server metric, extended to 60 s because reasoning models are slow.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass

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

from proxy.admission import Reason
from proxy.concurrency_limit import Limited
from proxy.families import Family, Key
from proxy.record import OTHER, UNKNOWN_TEAM, Outcome, RequestRecord
from proxy.version import VERSION

# One `_created` series per counter and histogram doubles what a scrape costs and nobody here reads them.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's own gap

DURATION_BUCKETS = tuple(0.01 * 2**power for power in range(16))
FIRST_TOKEN_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
OVERHEAD_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)

MAX_LABEL_SETS = 5_000
"""Sets of label values that are kept apart; as many labelled histograms take 22 MB and over half a second to show."""

NOBODY = "none"
"""The deployment of requests that no deployment was asked for; a deployment's name has slashes."""

Labels = tuple[str, ...]
"""An instrument's name and the values of its labels."""

KEPT = 1.0
"""Seconds for which one exposition serves every scrape."""


class Metrics:
    """One registry with its instruments and the children looked up so far.

    `labels()` costs about 1.5 us a call and a cached child 0.35 us, so children are kept by their label values.
    """

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
        for reason in Reason:
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
        self._rendering = threading.RLock()
        self._shown = (-math.inf, b"")

    def inflight(self, deployment: str, change: int) -> None:
        """Count a call of a deployment in (1) or out (-1)."""
        key = ("inflight", deployment)
        child = self._children.get(key)
        if child is None:
            _, child = self._new(key, self._inflight)
        child(change)

    def observe(self, record: RequestRecord) -> None:
        """Count a finished request. Of one that was shed only that: it took no time worth knowing, and little may be
        spent on it."""
        surface, model, team = record.surface, record.model, record.team
        stream = "true" if record.stream else "false"
        self._add(self._requests, team, surface, model, str(record.status), stream, record.outcome)
        if record.outcome == "shed":
            return
        self._observe(self._duration, record.duration, surface, model, record.deployment or NOBODY)
        self._observe(self._overhead, max(0.0, record.duration - record.waited - record.client_waited), surface)
        for attempt in record.attempts:
            self._add(self._attempts, attempt.deployment, attempt.outcome)
        if record.first_content is not None and record.deployment is not None:
            self._observe(self._first_token, record.first_content - record.started, model, record.deployment)
        usage = record.billed or record.usage
        if usage is not None:
            self._count(self._tokens, usage.prompt_tokens, team, model, "input")
            self._count(self._tokens, usage.completion_tokens, team, model, "output")
        if (cost := record.cost) is not None:
            self._count(self._cost, cost, team, model)

    def fallback(self, model: str, reason: str) -> None:
        """Count a request that goes elsewhere; `reason` is the kind of the failure."""
        self._add(self._fallbacks, model, reason)

    def retry_denied(self, model: str) -> None:
        """Count a retry that was not made because there was no budget left for it."""
        self._add(self._denied, model)

    def watch(self, states: Callable[[], Iterable[tuple[str, int]]]) -> None:
        """Ask for the state of each deployment whenever it is shown."""
        self._states = states

    def watch_limits(self, limits: Callable[[], Iterable[tuple[str, Limited]]]) -> None:
        """Ask for the limit of each deployment that has one whenever they are shown."""
        self._limits = limits

    def abort(self, side: str, reason: str, model: str) -> None:
        """Count a stream that ended early; `side` is `client`, `upstream` or `gateway`."""
        self._add(self._aborts, side, reason, model)

    def shed(self, reason: Reason) -> None:
        """Count a request that was refused for the gateway's own sake."""
        self._add(self._sheds, reason.value)

    def shared(self, up: Callable[[], bool]) -> None:
        """Show from now on whether what processes share can be reached."""
        gauge = self._gauge("shared_state_up", "1 while other processes are told what vendors say.", ())
        gauge.set_function(lambda: float(up()))

    def shed_at_the_door(self, surface: str, reason: Reason, count: int) -> None:
        """Count requests that were refused for the gateway's own sake before they were parsed."""
        self._count(self._sheds, count, reason.value)
        self._count(self._requests, count, UNKNOWN_TEAM, surface, OTHER, "503", "false", "shed")

    def malformed(self, status: int, outcome: Outcome, count: int) -> None:
        """Count what was answered so and was no request."""
        self._count(self._requests, count, UNKNOWN_TEAM, OTHER, OTHER, str(status), "false", outcome)

    def lag(self, seconds: float) -> None:
        """The event loop's worst lag of the last second."""
        self._lag(seconds)

    def reloaded(self, digest: str) -> None:
        """A new table took effect."""
        self._add(self._reloads, "success")
        self._reload_ok.set(1)
        self.config(digest)

    def reload_failed(self) -> None:
        """A new table was refused."""
        self._add(self._reloads, "failure")
        self._reload_ok.set(0)

    def config(self, digest: str) -> None:
        """The table in force."""
        self._config.clear()
        self._config.labels(digest[:12]).set(1)

    content_type = CONTENT_TYPE_LATEST

    def scrape(self) -> bytes:
        """The text exposition, at most a second old, so that many scrapes cost what one does."""
        with self._rendering:
            then, text = self._shown
            return text if time.monotonic() - then < KEPT else self.render()

    def render(self) -> bytes:
        """The text exposition; call it off the event loop: 10,000 series take 60 ms."""
        with self._rendering:
            self._look_at_states()
            text = generate_latest(self.registry)
            self._shown = (time.monotonic(), text)
            return text

    def families(self) -> list[Family]:
        """The same as values, for another process; call it off the event loop as well."""
        with self._rendering:
            self._look_at_states()
            return [
                Family(
                    found.name,
                    found.type,
                    found.documentation,
                    tuple(((each.name, tuple(each.labels.items())), each.value) for each in found.samples),
                )
                for found in self.registry.collect()
            ]

    def touched(self) -> Set[Labels]:
        """What has been counted since this was last asked, by thread of the event loop: where `changes` has to look."""
        touched, self._touched = self._touched, set()
        return touched

    def changes(self, touched: Set[Labels]) -> list[Family]:
        """The series that were touched, as they are now; may be called off the event loop."""
        found: dict[str, list[tuple[Key, float]]] = {}
        for name, *values in touched:
            parent, labels = self._counting[name]
            own = tuple(zip(labels, values, strict=True))
            samples = found.setdefault(name, [])
            # Of one series; to collect it would make a metric around it, which takes ten times as long.
            for each in parent.labels(*values)._child_samples():
                samples.append(((name + each.name, (*own, *each.labels.items())), each.value))
        parents = {name: self._counting[name][0] for name in found}
        return [
            Family(name, parent._type, parent._documentation, tuple(found[name])) for name, parent in parents.items()
        ]

    def supervising(self) -> "Supervised":
        """The instruments of a process that has workers."""
        return Supervised(
            self._gauge("workers", "Processes that take requests.", ()).set,
            self._counter("worker_restarts", "Workers that ended unasked and were followed by another.", ()).inc,
        )

    def _look_at_states(self) -> None:
        self._state.clear()
        for deployment, state in self._states():
            self._state.labels(deployment).set(state)
        self._limit.clear()
        for deployment, limited in self._limits():
            self._limit.labels(deployment).set(limited.limit)

    def _add(self, counter: Counter, *labels: str) -> None:
        self._count(counter, 1, *labels)

    def _count(self, counter: Counter, amount: float, *labels: str) -> None:
        key = (counter._name, *labels)
        child = self._children.get(key)
        if child is None:
            key, child = self._new(key, counter)
        self._touched.add(key)
        child(amount)

    def _observe(self, histogram: Histogram, value: float, *labels: str) -> None:
        key = (histogram._name, *labels)
        child = self._children.get(key)
        if child is None:
            key, child = self._new(key, histogram)
        self._touched.add(key)
        child(value)

    def _new(self, key: Labels, parent: Counter | Gauge | Histogram) -> tuple[Labels, Callable[[float], None]]:
        """The child for label values that are seen for the first time, and what it is kept by. Past the limit they
        share one that says `other` throughout: a table reloaded again and again under other names must not fill the
        memory."""
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
class Supervised:
    """`workers` is told how many there are, `restarted` each time that one had to be replaced."""

    workers: Callable[[float], None]
    restarted: Callable[[], None]


class _Found:
    """Families, as a registry collects them."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """See CollectorRegistry.register."""
        for family in self._families:
            metric = Metric(family.name, family.text, family.kind)
            for (name, labels), value in family.samples:
                metric.add_sample(name, dict(labels), value)
            yield metric


def exposition(families: Iterable[Family]) -> bytes:
    """The text exposition of what several processes have counted; call it off the event loop."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Found(families))
    return generate_latest(registry)
