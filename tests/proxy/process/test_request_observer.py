"""Each kind of end of a request is counted and logged once."""

from io import BytesIO

from proxy.errors import OverloadReason
from proxy.process.request_observer import RequestObserver
from proxy.request_record import RequestRecord
from proxy.telemetry.log_writer import LineWriter
from proxy.telemetry.metrics import Metrics


def test_every_end_is_one_line_and_counted() -> None:
    written, metrics = BytesIO(), Metrics()
    lines = LineWriter(written, print)
    observer = RequestObserver(metrics, lines, "text")
    observer.finished(RequestRecord("req-1", 1.0, "openai", "/v1/completions", status=200, finished=2.0))
    observer.refused("openai", OverloadReason.QUEUE, 3)
    observer.malformed({400: 2})
    lines.close()
    assert [line.split(b" ", 1)[1] for line in written.getvalue().splitlines()] == [
        b"200 openai unknown /v1/completions ok 1000.0 ms req-1",
        b"503 overloaded openai refused 3 at the door: queue",
        b"malformed HTTP refused: 2 with 400",
    ]
    counted = [line for line in metrics.render().decode().splitlines() if line.startswith("dragoman_requests_total")]
    assert sorted(line.rpartition(" ")[2] for line in counted) == ["1.0", "2.0", "3.0"]
