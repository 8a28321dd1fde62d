"""Adds a finished request to the metrics.

Label values come from the configuration; any value that a client chose is `other`. The buckets of durations double from
10 ms, as in the OpenTelemetry GenAI conventions. The buckets of the time to the first token are the conventions'
buckets of the server metric, extended to 60 s because reasoning models are slow.
"""

from bisect import bisect_left
from typing import Protocol

from providers.completion import SEARCH_REQUESTS, Usage
from providers.pricing import SEARCHES, unpriced_tokens
from proxy.request_record import RequestRecord
from proxy.telemetry.instruments import CounterInstrument, HistogramInstrument, Instrument, Series

DURATION_BUCKETS = tuple(0.01 * 2**power for power in range(16))
FIRST_TOKEN_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
OVERHEAD_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)

NO_DEPLOYMENT = "none"
"""The deployment label of requests for which no deployment was called; the name of a deployment contains slashes."""


class InstrumentMaker(Protocol):
    """Creates instruments, which are rendered in the order of their creation."""

    def counter(self, name: str, text: str, labels: tuple[str, ...]) -> CounterInstrument: ...

    def histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> HistogramInstrument: ...


class RequestCounts:
    """Counts finished requests. Call it only on the event loop's thread, which changes the rows."""

    def __init__(self, make: InstrumentMaker) -> None:
        self._touched: set[Series] = set()
        self.requests = make.counter(
            "requests", "Finished requests.", ("team", "surface", "model", "code", "stream", "outcome")
        )
        self._duration = make.histogram(
            "request_duration_seconds",
            "Time from the request to the end of the response.",
            ("surface", "model", "deployment"),
            DURATION_BUCKETS,
        )
        self._first_token = make.histogram(
            "time_to_first_token_seconds",
            "Time from the request to the first content of a stream.",
            ("model", "deployment"),
            FIRST_TOKEN_BUCKETS,
        )
        self._overhead = make.histogram(
            "overhead_seconds",
            "Time in the gateway, without waiting for vendors, clients and limits.",
            ("surface",),
            OVERHEAD_BUCKETS,
        )
        self._attempts = make.counter("attempts", "Calls of a deployment by outcome.", ("deployment", "outcome"))
        self._tokens = make.counter(
            "tokens",
            "Tokens as the vendor counted them; estimated if it did not.",
            ("team", "model", "direction"),
        )
        self._prompt = make.counter(
            "prompt_tokens", "Prompt tokens, by the deployment that was called last.", ("deployment",)
        )
        self._cached = make.counter(
            "cached_tokens", "Prompt tokens from the vendor's cache, as the vendor reported them.", ("deployment",)
        )
        self._cost = make.counter(
            "cost_usd", "Cost of requests in USD, as far as the price is known.", ("team", "model")
        )
        self._unpriced_tokens = make.counter(
            "unpriced_tokens",
            "Tokens whose price is unknown, in full or for their tier or modality.",
            ("team", "model"),
        )
        self._unpriced_searches = make.counter(
            "unpriced_searches", "Web searches whose price is unknown.", ("team", "model")
        )

    def add(self, record: RequestRecord, cost: float | None) -> None:
        """Count a finished request, and its cost in USD. For a shed request only the number of requests is counted,
        because shedding must be cheap."""
        stream = "true" if record.stream else "false"
        labels = (record.team, record.surface, record.model, str(record.status), stream, record.outcome)
        self._row(self.requests, *labels)[0] += 1
        if record.outcome == "shed":
            return
        self._add_times(record)
        usage = record.counted
        if usage is not None:
            self._add_usage(record, usage)
        if cost is not None:
            self._row(self._cost, record.team, record.model)[0] += cost
        if usage is not None:
            self._add_unpriced(record, usage)

    def touched(self) -> set[Series]:
        """Return the series that requests have changed since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def _row(self, instrument: Instrument, *values: str) -> list[float]:
        """Return the row of a series that is about to change."""
        series = instrument.series(*values)
        self._touched.add(series)
        return series.row

    def _add_times(self, record: RequestRecord) -> None:
        """Count the attempts of a request and its times."""
        surface, model, deployment = record.surface, record.model, record.deployment
        duration = record.finished - record.started
        row = self._row(self._duration, surface, model, deployment or NO_DEPLOYMENT)
        row[bisect_left(DURATION_BUCKETS, duration)] += 1
        row[-1] += duration
        own = max(duration - record.waited - record.client_waited - record.limit_waited, 0.0)
        row = self._row(self._overhead, surface)
        row[bisect_left(OVERHEAD_BUCKETS, own)] += 1
        row[-1] += own
        for attempt in record.attempts:
            self._row(self._attempts, attempt.deployment, attempt.outcome)[0] += 1
        if record.first_content is not None and deployment:
            wait = record.first_content - record.started
            row = self._row(self._first_token, model, deployment)
            row[bisect_left(FIRST_TOKEN_BUCKETS, wait)] += 1
            row[-1] += wait

    def _add_usage(self, record: RequestRecord, usage: Usage) -> None:
        """Count the tokens of a request."""
        team, model, deployment = record.team, record.model, record.deployment
        self._row(self._tokens, team, model, "input")[0] += usage.prompt_tokens
        self._row(self._tokens, team, model, "output")[0] += usage.completion_tokens
        if deployment:
            details = usage.prompt_details or {}
            self._row(self._prompt, deployment)[0] += usage.prompt_tokens
            self._row(self._cached, deployment)[0] += details.get("cached_tokens", 0)

    def _add_unpriced(self, record: RequestRecord, usage: Usage) -> None:
        """Count the tokens and searches of a request whose price is unknown."""
        team, model, unpriced = record.team, record.model, record.unpriced
        if unpriced and unpriced != (SEARCHES,):
            self._row(self._unpriced_tokens, team, model)[0] += unpriced_tokens(unpriced, usage)
        if SEARCHES in unpriced:
            searches = (usage.completion_details or {}).get(SEARCH_REQUESTS, 0)
            self._row(self._unpriced_searches, team, model)[0] += searches
