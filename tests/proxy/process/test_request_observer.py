"""Each kind of end of a request is counted and logged once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from io import BytesIO
from types import SimpleNamespace
from typing import Final, cast, get_args

import orjson
import pytest

from config.sections.log_section import LogSection
from providers.completion import Usage
from providers.pricing import Price
from proxy import request_record
from proxy.accounting.ledger_service import LedgerService
from proxy.errors import OverloadReason
from proxy.ledger.ledger_row import row_line
from proxy.process.request_observer import LINE_WRITERS, Observer, RequestObserver
from proxy.request_record import Attempt, RequestRecord
from proxy.telemetry.access_log import EARLY_REFUSAL_LINES
from proxy.telemetry.log_writer import LineWriter
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import FinishedObserver
from tests.support.looped import looped


def test_every_end_is_one_line_and_counted() -> None:
    written, metrics = BytesIO(), Metrics()
    lines = LineWriter(written, print)
    observer = RequestObserver(metrics, lines, LogSection(form="text"))
    observer.finished(RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    observer.refused("openai", 503, OverloadReason.QUEUE, 3)
    observer.malformed({400: 2})
    lines.close()
    assert [line.split(b" ", 1)[1] for line in written.getvalue().splitlines()] == [
        b"200 openai unknown /v1/completions ok 1000.0 ms req-1",
        b"503 overloaded openai refused 3 at the door: queue",
        b"malformed HTTP refused: 2 with 400",
    ]
    counted = [line for line in metrics.render().decode().splitlines() if line.startswith("dragoman_requests_total")]
    assert sorted(line.rpartition(" ")[2] for line in counted) == ["1.0", "2.0", "3.0"]


def test_requests_that_end_together_are_reported_in_their_order_once_the_callback_has_ended() -> None:
    lines, waiting = LineWriter(BytesIO(), print), list[Callable[[], None]]()
    observer = RequestObserver(Metrics(), lines, LogSection(), soon=waiting.append)
    seen: list[str] = []
    observer.add("page", lambda record, cost: seen.append(record.request_id))
    for name in ("a", "b"):
        observer.finished(RequestRecord(name, 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    assert (seen, len(waiting)) == ([], 1)
    waiting.pop()()
    assert seen == ["a", "b"]
    observer.finished(RequestRecord("c", 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    assert len(waiting) == 1
    observer.report()
    waiting.pop()()
    assert seen == ["a", "b", "c"]
    lines.close()


@pytest.mark.parametrize("form", sorted(LINE_WRITERS))
def test_a_request_is_counted_and_logged_with_the_same_cost(form: str) -> None:
    written, metrics = BytesIO(), Metrics()
    lines = LineWriter(written, print)
    observer = RequestObserver(metrics, lines, LogSection.model_validate({"form": form}))
    record = RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0)
    record.attempts, record.usage, record.price = [Attempt("a/m/eu", 1.0)], Usage(1_000_000, 0), Price(2, 8)
    for _ in range(2):
        observer.finished(record)
    lines.close()
    assert b'dragoman_cost_usd_total{model="other",team="unknown"} 4.0' in metrics.render()
    first, second = written.getvalue().splitlines()
    assert first.partition(b"Z")[2] == second.partition(b"Z")[2] == LINE_WRITERS[form](record, 2.0).partition(b"Z")[2]
    assert form == "text" or orjson.loads(first)["cost_usd"] == 2


def test_others_get_each_finished_request_with_its_cost() -> None:
    got: list[tuple[str, float | None]] = []

    def watch(record: RequestRecord, cost: float | None) -> None:
        got.append((record.request_id, cost))

    lines = LineWriter(BytesIO(), print)
    observer = RequestObserver(Metrics(), lines, LogSection())
    observer.add("page", watch)
    observer.add("tracing", watch)
    record = RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0)
    record.usage, record.price = Usage(1_000_000, 0), Price(2, 8)
    observer.finished(record)
    observer.refused("openai", 503, OverloadReason.QUEUE, 3)
    lines.close()
    assert got == [("req-1", 2.0)] * 2


class Broken(SimpleNamespace):
    """An object whose methods all fail, except the attributes that it is given."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def fail(*given: object) -> None:
            raise TypeError("an observer's own fault")

        return fail


@dataclass
class Observed:
    """An observer with every observer that exists, each of which notes its requests."""

    now: float = 0.0
    calls: list[str] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    observer: RequestObserver = field(init=False)

    def __post_init__(self) -> None:
        ledger = cast(LedgerService, SimpleNamespace(append=lambda record: self.note("ledger")))
        lines = cast(LineWriter, SimpleNamespace(write=lambda line: self.note("log")))
        self.observer = RequestObserver(self.metrics, lines, LogSection(), ledger, lambda: self.now)
        for name in OTHERS:
            self.observer.add(name, lambda record, cost, name=name: self.note(name))  # type: ignore[misc]

    def note(self, name: str) -> None:
        self.calls.append(name)

    def breaks(self, name: str) -> None:
        """Let the observer `name` fail."""

        def fail(record: RequestRecord, cost: float | None) -> None:
            raise TypeError("an observer's own fault")

        found = self.observer._observers
        self.observer._observers = tuple(
            replace(each, observe=fail) if each.name == name else self._noting(each) for each in found
        )

    def _noting(self, each: Observer) -> Observer:
        def metrics(record: RequestRecord, cost: float | None) -> None:
            self.note("metrics")
            each.observe(record, cost)

        return replace(each, observe=metrics) if each.name == "metrics" else each

    def faults(self) -> list[str]:
        """Return the samples of the counter of faults."""
        text = self.metrics.render().decode()
        return [line for line in text.splitlines() if line.startswith("dragoman_observer_failures_total{")]


OTHERS: Final[tuple[FinishedObserver, ...]] = ("page", "payload_log", "tracing", "plugins")
ALL: Final[tuple[FinishedObserver, ...]] = ("ledger", "metrics", "log", *OTHERS)


@looped("broken", ALL)
def test_a_fault_in_one_observer_is_counted_and_the_others_run(broken: str) -> None:
    made = Observed()
    made.breaks(broken)
    made.observer.finished(RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    assert made.calls == [name for name in ALL if name != broken]
    assert made.faults() == [f'dragoman_observer_failures_total{{observer="{broken}"}} 1.0']


def test_every_name_of_an_observer_is_tested() -> None:
    assert set(ALL) == set(get_args(FinishedObserver))


def test_the_ledger_is_the_first_observer() -> None:
    made = Observed()
    made.observer.finished(RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    assert made.calls[0] == "ledger"


def test_a_fault_is_logged_with_its_traceback_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    made = Observed()
    made.breaks("log")
    for made.now in (0.0, 0.1, 0.9, 1.0):
        made.observer.finished(RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    assert [record.message for record in caplog.records] == [
        "request req-1: a fault in log; the response is not affected"
    ] * 2
    assert all(record.exc_info and record.exc_info[0] is TypeError for record in caplog.records)
    assert made.faults() == ['dragoman_observer_failures_total{observer="log"} 4.0']


def test_a_request_whose_cost_cannot_be_computed_is_observed_all_the_same() -> None:
    made = Observed()
    record = RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0)
    record.usage, record.price = cast(Usage, Broken()), Price(2, 8)
    made.breaks("metrics")
    made.observer.finished(record)
    assert {"ledger", *OTHERS} <= set(made.calls)


@looped("broken", ["_metrics", "_lines"])
def test_refusals_before_parsing_are_guarded_too(broken: str) -> None:
    made, written = Observed(), list[bytes]()
    made.observer._lines = cast(LineWriter, SimpleNamespace(write=written.append))
    setattr(made.observer, broken, Broken(observer_failed=made.metrics.observer_failed))
    made.observer.refused("openai", 503, OverloadReason.QUEUE, 3)
    made.observer.malformed({400: 2})
    assert len(written) == (2 if broken == "_metrics" else 0)
    counted = b'dragoman_requests_total{code="503"' in made.metrics.render()
    assert counted == (broken == "_lines")


def test_every_form_of_the_log_has_a_writer() -> None:
    assert LINE_WRITERS.keys() == EARLY_REFUSAL_LINES.keys()


@pytest.mark.parametrize("form", sorted(LINE_WRITERS))
def test_a_share_of_the_good_requests_gets_lines_that_say_it_and_all_are_counted(form: str) -> None:
    written, metrics = BytesIO(), Metrics()
    lines = LineWriter(written, print)
    observer = RequestObserver(metrics, lines, LogSection.model_validate({"form": form, "sample": 0.25}))
    for number in range(8):
        observer.finished(RequestRecord(f"r-{number}", 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    bad = RequestRecord("bad", 1.0, "openai", "/v1/completions", status=502, finished=2.0, outcome="upstream_error")
    observer.finished(bad)
    lines.close()
    told = written.getvalue().decode().splitlines()
    assert [name for line in told for name in ("r-3", "r-7", "bad") if name in line] == ["r-3", "r-7", "bad"]
    share = '"sample":0.25' if form == "json" else " (sampled 0.25)"
    assert [share in line for line in told] == [True, True, False]
    assert b"} 8.0" in metrics.render()


def test_what_a_request_cost_is_computed_once_for_all_observers(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: Counter[str] = Counter()

    def counts(name: str) -> None:
        function = getattr(request_record, name)

        def counted(price: Price | None, usage: Usage | None) -> object:
            computed[name] += 1
            return function(price, usage)

        monkeypatch.setattr(request_record, name, counted)

    counts("cost")
    counts("unpriced")
    rows: list[bytes] = []

    class Ledger:
        def append(self, record: RequestRecord) -> None:
            rows.append(row_line(record, 1, 1_795_000_000_000))

    written = BytesIO()
    lines = LineWriter(written, print)
    observer = RequestObserver(Metrics(), lines, LogSection(), cast("LedgerService", Ledger()))
    for price in (Price(2, 8), None):
        record = RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0)
        record.attempts, record.usage, record.price = [Attempt("a/m/eu", 1.0)], Usage(1_000_000, 0), price
        computed.clear()
        observer.finished(record)
        assert computed["unpriced"] == 1
        assert computed["cost"] == (0 if price is None else 1)
    lines.close()
    priced, unpriced = map(orjson.loads, written.getvalue().splitlines())
    assert (priced["cost_usd"], "unpriced" in priced) == (2.0, False)
    assert ("cost_usd" in unpriced, unpriced["unpriced"]) == (False, ["tokens"])
    assert len(rows) == 2
