"""Report what became of each request to the metrics, the access log and the ledger."""

from collections.abc import Callable, Mapping, Sequence

from config.sections.log_section import LogSection
from proxy.accounting.ledger_service import LedgerService
from proxy.errors import OverloadReason
from proxy.gateway.handle_request import outcome_of
from proxy.request_record import RequestRecord
from proxy.telemetry.access_log import EARLY_REFUSAL_LINES, MALFORMED_LINES, request_text
from proxy.telemetry.line_sampling import LineSampling
from proxy.telemetry.log_writer import LineWriter
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.plain_lines import PlainLines


class RequestObserver:
    """Counts requests, writes their lines of the access log, as `log` says, and their rows of the ledger where there is
    one. `also` get each finished request too, with what it cost (None: not known)."""

    def __init__(
        self,
        metrics: Metrics,
        lines: LineWriter,
        log: LogSection,
        ledger: LedgerService | None = None,
        also: Sequence[Callable[[RequestRecord, float | None], None]] = (),
    ) -> None:
        self._metrics = metrics
        self._ledger = ledger
        self._also = tuple(also)
        self._lines = lines
        self._sampling = LineSampling(log.sample, log.slow) if log.sample < 1 else None
        self._line = LINE_WRITERS[log.form]()
        self._early_refusal_line = EARLY_REFUSAL_LINES[log.form]
        self._malformed_line = MALFORMED_LINES[log.form]

    def tell(self, observe: Callable[[RequestRecord, float | None], None]) -> None:
        """Tell one more of each finished request."""
        self._also = (*self._also, observe)

    def finished(self, record: RequestRecord) -> None:
        """Report a request that has ended."""
        cost = record.cost
        self._metrics.observe(record, cost)
        if self._sampling is None or self._sampling.takes(record):
            self._lines.write(self._line(record, cost))
        if self._ledger is not None:
            self._ledger.append(record)
        for observe in self._also:
            observe(record, cost)

    def refused(self, surface: str, status: int, reason: OverloadReason, count: int) -> None:
        """Report `count` requests that were refused before they were parsed."""
        self._metrics.shed_before_parsing(surface, status, reason, count)
        self._lines.write(self._early_refusal_line(surface, status, reason, count))

    def malformed(self, counts: Mapping[int, int]) -> None:
        """Report input that was not HTTP, counted by the status of its answer."""
        for status, count in counts.items():
            self._metrics.malformed(status, outcome_of(status), count)
        self._lines.write(self._malformed_line(counts))


RequestLine = Callable[[RequestRecord, float | None], bytes]
"""Returns the line of a finished request, which cost so much."""

LINE_WRITERS: Mapping[str, Callable[[], RequestLine]] = {
    "json": lambda: PlainLines().line,
    "text": lambda: lambda record, cost: request_text(record),
}
"""What makes the writer of a request's line, by the table's `server.log`."""
