"""Each kind of end of a request is counted and logged once."""

from io import BytesIO

import orjson
import pytest

from config.sections.log_section import LogSection
from providers.completion import Usage
from providers.pricing import Price
from proxy.errors import OverloadReason
from proxy.process.request_observer import LINE_WRITERS, RequestObserver
from proxy.request_record import Attempt, RequestRecord
from proxy.telemetry.access_log import EARLY_REFUSAL_LINES
from proxy.telemetry.log_writer import LineWriter
from proxy.telemetry.metrics import Metrics


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
    assert first.partition(b"Z")[2] == second.partition(b"Z")[2] == LINE_WRITERS[form]()(record, 2.0).partition(b"Z")[2]
    assert form == "text" or orjson.loads(first)["cost_usd"] == 2


def test_others_get_each_finished_request_with_its_cost() -> None:
    got: list[tuple[str, float | None]] = []

    def watch(record: RequestRecord, cost: float | None) -> None:
        got.append((record.request_id, cost))

    lines = LineWriter(BytesIO(), print)
    observer = RequestObserver(Metrics(), lines, LogSection(), also=(watch,))
    observer.tell(watch)
    record = RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0)
    record.usage, record.price = Usage(1_000_000, 0), Price(2, 8)
    observer.finished(record)
    observer.refused("openai", 503, OverloadReason.QUEUE, 3)
    lines.close()
    assert got == [("req-1", 2.0)] * 2


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
