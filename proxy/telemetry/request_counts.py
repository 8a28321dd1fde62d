"""What a finished request adds to the metrics.

Label values come from the table: whatever a client chose is `other`. Buckets of durations double from 10 ms as in the
OpenTelemetry GenAI conventions; those of the first token follow its server metric, extended to 60 s because reasoning
models are slow.

Finding eight series takes several times as long as adding to them, so that those of one combination of labels are found
once and kept together.
"""

from bisect import bisect_left
from dataclasses import dataclass
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

MAX_KEPT = 5_000
"""Combinations of labels whose rows are kept together; with more, all are found again."""

NOBODY = "none"
"""The deployment label of requests for which no deployment was called; a deployment's name has slashes."""


class InstrumentMaker(Protocol):
    """Makes instruments, which are shown in the order in which they were made. `overflows` counts what was counted as
    `other`, since there were too many label values."""

    overflows: int

    def counter(self, name: str, text: str, labels: tuple[str, ...]) -> CounterInstrument: ...

    def histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> HistogramInstrument: ...


@dataclass(slots=True, eq=False)
class RequestRows:
    """The rows that requests with the same labels add to, empty where they add to none, and the series of these rows.
    `touched` says that a request has added to them since `RequestCounts.touched` was called."""

    requests: list[float]
    duration: list[float]
    overhead: list[float]
    attempts: list[list[float]]
    first_token: list[float]
    input: list[float]
    output: list[float]
    cost: list[float]
    unpriced_tokens: list[float]
    unpriced_searches: list[float]
    series: tuple[Series, ...]
    touched: bool = False


class RequestCounts:
    """Counts finished requests. To be called on the event loop's thread alone, where rows are changed."""

    def __init__(self, make: InstrumentMaker) -> None:
        self._make = make
        self._kept: dict[tuple[object, ...], RequestRows] = {}
        self._touched: set[Series] = set()
        self.requests = make.counter(
            "requests", "Requests answered.", ("team", "surface", "model", "code", "stream", "outcome")
        )
        self._duration = make.histogram(
            "request_duration_seconds",
            "Time from request to the end of the answer.",
            ("surface", "model", "deployment"),
            DURATION_BUCKETS,
        )
        self._first_token = make.histogram(
            "time_to_first_token_seconds",
            "Time from request to the first content of a stream.",
            ("model", "deployment"),
            FIRST_TOKEN_BUCKETS,
        )
        self._overhead = make.histogram(
            "overhead_seconds",
            "Time in the gateway, waiting for the upstream and for the client excluded.",
            ("surface",),
            OVERHEAD_BUCKETS,
        )
        self._attempts = make.counter("attempts", "Calls of a deployment by outcome.", ("deployment", "outcome"))
        self._tokens = make.counter(
            "tokens",
            "Tokens as the upstream counted them; a guess where it counted none.",
            ("team", "model", "direction"),
        )
        self._cost = make.counter("cost_usd", "What the tokens cost, where their price is known.", ("team", "model"))
        self._unpriced_tokens = make.counter(
            "unpriced_tokens",
            "Tokens whose price is not known, in full or for their tier or modality.",
            ("team", "model"),
        )
        self._unpriced_searches = make.counter(
            "unpriced_searches", "Searches of the web whose price is not known.", ("team", "model")
        )

    def add(self, record: RequestRecord, cost: float | None) -> None:
        """Count a finished request, and what it cost. One that was shed is counted and no more, since shedding has to
        be cheap."""
        if record.outcome == "shed":
            self._touched.add(shed := self._requests_of(record))
            shed.row[0] += 1
            return
        usage = record.counted
        unpriced = record.unpriced
        rows = self._rows(record, usage, cost, unpriced)
        rows.touched = True
        rows.requests[0] += 1
        duration = record.finished - record.started
        row = rows.duration
        row[bisect_left(DURATION_BUCKETS, duration)] += 1
        row[-1] += duration
        own = duration - record.waited - record.client_waited - record.limit_waited
        if own < 0:
            own = 0.0
        row = rows.overhead
        row[bisect_left(OVERHEAD_BUCKETS, own)] += 1
        row[-1] += own
        for row in rows.attempts:
            row[0] += 1
        if record.first_content is not None and (row := rows.first_token):
            wait = record.first_content - record.started
            row[bisect_left(FIRST_TOKEN_BUCKETS, wait)] += 1
            row[-1] += wait
        if usage is not None:
            rows.input[0] += usage.prompt_tokens
            rows.output[0] += usage.completion_tokens
        if cost is not None:
            rows.cost[0] += cost
        if unpriced and usage is not None:
            if rows.unpriced_tokens:
                rows.unpriced_tokens[0] += unpriced_tokens(unpriced, usage)
            if rows.unpriced_searches and usage.completion_details:
                rows.unpriced_searches[0] += usage.completion_details.get(SEARCH_REQUESTS, 0)

    def touched(self) -> set[Series]:
        """Return the series that requests have added to since the last call."""
        self._note_touched()
        touched, self._touched = self._touched, set()
        return touched

    def _rows(
        self, record: RequestRecord, usage: Usage | None, cost: float | None, unpriced: tuple[str, ...]
    ) -> RequestRows:
        """Return the rows that a request adds to. Those of one attempt are kept, unless a series stands for others:
        what is counted there instead is counted as an overflow each time."""
        if len(record.attempts) != 1:
            return self._found(record, usage, cost, unpriced)
        attempt = record.attempts[0]
        key = (
            record.team,
            record.surface,
            record.model,
            record.status,
            record.stream,
            record.outcome,
            attempt.deployment,
            attempt.outcome,
            record.first_content is None,
            usage is None,
            cost is None,
            unpriced,
        )
        rows = self._kept.get(key)
        if rows is None:
            overflows = self._make.overflows
            rows = self._found(record, usage, cost, unpriced)
            if overflows == self._make.overflows:
                self._keep(key, rows)
        return rows

    def _keep(self, key: tuple[object, ...], rows: RequestRows) -> None:
        if len(self._kept) >= MAX_KEPT:
            self._note_touched()
            self._kept.clear()
        self._kept[key] = rows

    def _found(
        self, record: RequestRecord, usage: Usage | None, cost: float | None, unpriced: tuple[str, ...]
    ) -> RequestRows:
        """Find the rows that a request adds to, each by its own labels."""
        found = [self._requests_of(record)]

        def row(instrument: Instrument, *values: str) -> list[float]:
            found.append(instrument.series(*values))
            return found[-1].row

        team, surface, model, deployment = record.team, record.surface, record.model, record.deployment
        rows = RequestRows(
            requests=found[0].row,
            duration=row(self._duration, surface, model, deployment or NOBODY),
            overhead=row(self._overhead, surface),
            attempts=[row(self._attempts, each.deployment, each.outcome) for each in record.attempts],
            first_token=row(self._first_token, model, deployment)
            if record.first_content is not None and deployment
            else [],
            input=row(self._tokens, team, model, "input") if usage else [],
            output=row(self._tokens, team, model, "output") if usage else [],
            cost=row(self._cost, team, model) if cost is not None else [],
            unpriced_tokens=row(self._unpriced_tokens, team, model) if unpriced and unpriced != (SEARCHES,) else [],
            unpriced_searches=row(self._unpriced_searches, team, model) if SEARCHES in unpriced else [],
            series=tuple(found),
        )
        self._touched.update(found)
        return rows

    def _requests_of(self, record: RequestRecord) -> Series:
        stream = "true" if record.stream else "false"
        labels = (record.team, record.surface, record.model, str(record.status), stream, record.outcome)
        return self.requests.series(*labels)

    def _note_touched(self) -> None:
        for rows in self._kept.values():
            if rows.touched:
                rows.touched = False
                self._touched.update(rows.series)
