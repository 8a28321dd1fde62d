"""The metrics that requests add to, compared with prometheus_client's own instruments fed with the same records."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.utils import floatToGoString

from providers.completion import Usage
from providers.pricing import Price
from proxy.request_record import OTHER, Attempt, Outcome, RequestRecord
from proxy.telemetry import metrics as metrics_module
from proxy.telemetry.merged_metrics import WorkerCounts
from proxy.telemetry.metrics import SHOWN_DIGITS, Metrics
from proxy.telemetry.request_counts import DURATION_BUCKETS, FIRST_TOKEN_BUCKETS, OVERHEAD_BUCKETS
from tests.support.examples import examples

disable_created_metrics()  # type: ignore[no-untyped-call]  # the library lacks types


@dataclass
class LibraryMetrics:
    """The same metrics with prometheus_client's instruments, and with the same bound on label values."""

    most: int
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    made: dict[str, MetricWrapperBase] = field(default_factory=dict)
    known: set[tuple[str, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.make(Counter, "requests", "team surface model code stream outcome", "Finished requests.")
        self.make(
            Histogram,
            "request_duration_seconds",
            "surface model deployment",
            "Time from the request to the end of the response.",
            buckets=DURATION_BUCKETS,
        )
        self.make(
            Histogram,
            "time_to_first_token_seconds",
            "model deployment",
            "Time from the request to the first content of a stream.",
            buckets=FIRST_TOKEN_BUCKETS,
        )
        self.make(
            Histogram,
            "overhead_seconds",
            "surface",
            "Time in the gateway, without waiting for vendors, clients and limits.",
            buckets=OVERHEAD_BUCKETS,
        )
        self.make(Counter, "attempts", "deployment outcome", "Calls of a deployment by outcome.")
        text = "Tokens as the vendor counted them; estimated if it did not."
        self.make(Counter, "tokens", "team model direction", text)
        text = "Prompt tokens, by the deployment that was called last."
        self.make(Counter, "prompt_tokens", "deployment", text)
        text = "Prompt tokens from the vendor's cache, as the vendor reported them."
        self.make(Counter, "cached_tokens", "deployment", text)
        self.make(Counter, "cost_usd", "team model", "Cost of requests in USD, as far as the price is known.")
        text = "Tokens whose price is unknown, in full or for their tier or modality."
        self.make(Counter, "unpriced_tokens", "team model", text)
        self.make(Counter, "unpriced_searches", "team model", "Web searches whose price is unknown.")
        self.make(Gauge, "inflight_requests", "deployment", "Requests in flight at a deployment.")
        self.make(Counter, "label_overflows", "metric", "Counted as `other`: too many label values.")

    def make(
        self,
        kind: Callable[..., MetricWrapperBase],
        name: str,
        labels: str,
        text: str,
        **settings: tuple[float, ...],
    ) -> None:
        made = kind(f"dragoman_{name}", text, labels.split(), registry=self.registry, **settings)
        self.made[name] = made

    def add(self, name: str, value: float, *labels: str, named: str = "") -> None:
        key = (named or f"dragoman_{name}", *labels)
        if key not in self.known and len(self.known) >= self.most:
            overflows = self.made["label_overflows"]
            assert isinstance(overflows, Counter)
            overflows.labels(key[0]).inc()
            key = (key[0], *(OTHER for _ in labels))
        self.known.add(key)
        child = self.made[name].labels(*key[1:])
        if isinstance(child, Histogram):
            child.observe(value)
        elif isinstance(child, Counter | Gauge):
            child.inc(value)

    def observe(self, record: RequestRecord) -> None:
        team, surface, model = record.team, record.surface, record.model
        stream = "true" if record.stream else "false"
        self.add("requests", 1, team, surface, model, str(record.status), stream, record.outcome)
        if record.outcome == "shed":
            return
        self.add("request_duration_seconds", record.duration, surface, model, record.deployment or "none")
        own = record.duration - record.waited - record.client_waited - record.limit_waited
        self.add("overhead_seconds", max(0.0, own), surface)
        for attempt in record.attempts:
            self.add("attempts", 1, attempt.deployment, attempt.outcome)
        if record.first_content is not None and record.deployment is not None:
            waited = record.first_content - record.started
            self.add("time_to_first_token_seconds", waited, model, record.deployment)
        usage = record.billed or record.usage
        if usage is not None:
            self.add("tokens", usage.prompt_tokens, team, model, "input")
            self.add("tokens", usage.completion_tokens, team, model, "output")
            if record.deployment is not None:
                self.add("prompt_tokens", usage.prompt_tokens, record.deployment)
                self.add("cached_tokens", (usage.prompt_details or {}).get("cached_tokens", 0), record.deployment)
        if record.cost is not None:
            self.add("cost_usd", record.cost, team, model)
        if usage is not None and "tokens" in record.unpriced:
            self.add("unpriced_tokens", usage.total_tokens, team, model)


SECONDS = st.one_of(st.sampled_from((0.0, *DURATION_BUCKETS, *OVERHEAD_BUCKETS)), st.floats(0, 1e6))
DETAILS = st.none() | st.dictionaries(st.sampled_from(["cached_tokens", "audio_tokens"]), st.integers(0, 10**6))
TOKENS = st.builds(Usage, st.integers(0, 2**64), st.integers(0, 10**6), DETAILS)
ATTEMPTS = st.builds(
    Attempt, st.sampled_from("ab"), st.just(1.0), outcome=st.sampled_from(["ok", "server", "cancelled"])
)
PRICES = st.none() | st.builds(Price, st.floats(0, 1e3), st.none() | st.floats(0, 1e3))
OUTCOMES: list[Outcome] = ["ok", "client_error", "client_gone", "shed"]


@st.composite
def records(draw: st.DrawFn) -> RequestRecord:
    """Generate any record whose times are in order."""
    record = RequestRecord("id", draw(SECONDS), draw(st.sampled_from(["openai", "scale"])), "/v1/completions")
    record.team, record.model = draw(st.sampled_from(["a", 'q"\\\n', OTHER])), draw(st.sampled_from(["m", OTHER]))
    record.stream, record.status = draw(st.booleans()), draw(st.sampled_from([200, 503]))
    record.outcome = draw(st.sampled_from(OUTCOMES))
    record.attempts = draw(st.lists(ATTEMPTS, min_size=1, max_size=1) | st.lists(ATTEMPTS, max_size=3))
    record.usage, record.billed, record.price = draw(st.none() | TOKENS), draw(st.none() | TOKENS), draw(PRICES)
    record.waited, record.client_waited, record.limit_waited = draw(SECONDS), draw(SECONDS), draw(SECONDS)
    record.finished = record.started + draw(SECONDS)
    wait = draw(st.none() | SECONDS)
    record.first_content = None if wait is None else record.started + wait
    return record


CALLS = st.tuples(st.sampled_from("abc"), st.sampled_from([1, -1]))
BOUNDS = st.sampled_from([0, 3, 8, 5000])


def families(text: bytes) -> dict[str, str]:
    """Return the text of each family by its name."""
    found = re.split(r"^# HELP ", text.decode(), flags=re.MULTILINE)[1:]
    return {each.partition(" ")[0]: each for each in found}


def with_rounded_costs(text: bytes) -> bytes:
    """Return the library's exposition, with costs rounded as the gateway shows them."""

    def rounded(found: re.Match[str]) -> str:
        shown: str = floatToGoString(round(float(found[2]), SHOWN_DIGITS))  # type: ignore[no-untyped-call]
        return found[1] + shown

    return re.sub(r"^(dragoman_cost_usd_total{.*} )(.*)$", rounded, text.decode(), flags=re.MULTILINE).encode()


@examples(60)
@given(st.lists(records() | CALLS, max_size=20), BOUNDS)
def test_whatever_requests_come_the_exposition_is_that_of_prometheus_client(
    happened: list[RequestRecord | tuple[str, int]], most: int
) -> None:
    library, metrics, told = LibraryMetrics(most), Metrics(), WorkerCounts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics_module, "MAX_LABEL_SETS", most)
        for number, each in enumerate(happened):
            if isinstance(each, RequestRecord):
                metrics.observe(each, each.cost)
                library.observe(each)
            else:
                deployment, change = each
                metrics.inflight(deployment, change)
                library.add("inflight_requests", change, deployment, named="inflight")
            if number % 7 == 0:
                told.update(metrics.changes(metrics.touched()))
    shown, expected = families(metrics.render()), families(with_rounded_costs(generate_latest(library.registry)))
    assert {name: shown[name] for name in expected} == expected
    told.update(metrics.changes(metrics.touched()))
    whole = {family.name: dict(family.samples) for family in metrics.families()}
    for family in told.families():
        digits = SHOWN_DIGITS if family.kind == "counter" else None
        samples = {key: value if digits is None else round(value, digits) for key, value in family.samples}
        assert samples == whole[family.name]


def test_series_that_nobody_asks_for_do_not_pile_up() -> None:
    metrics = Metrics()
    for number in range(500):
        attempts = [Attempt(f"a{number % 5}", 1.0)] * (number % 3)
        metrics.observe(RequestRecord("id", 1.0, "openai", "/", attempts=attempts, finished=2.0), None)
    assert len(metrics.touched()) == 1 + 6 + 1 + 5
