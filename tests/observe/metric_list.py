"""Write `docs/reference/metrics.md`: every metric with its type, labels and meaning, from the instruments themselves.

`python -m tests.observe.metric_list` writes it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from providers.completion import Usage
from proxy.conversations.stored_entries import StoredEntries
from proxy.deployment_health.concurrency_limit import Limited
from proxy.errors import OverloadReason
from proxy.ledger.ledger_settings import LedgerState
from proxy.limits.limit import Period, Unit
from proxy.limits.limit_views import LimitKind, LimitView
from proxy.payload_log.payload_log import PayloadCounts
from proxy.plugins.plugin_metrics import TEXTS, plugin_families
from proxy.request_record import Attempt, RequestRecord
from proxy.telemetry import metrics as metrics_module
from proxy.telemetry.limit_metrics import ledger_families, limit_families
from proxy.telemetry.merged_metrics import MetricFamily, of_worker
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.table_metrics import ConfigurationFamilies, ExpiringKey
from proxy.tracing.export_queue import ExportState
from proxy.tracing.tracing_service import export_families

FILE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"

HEAD: Final = """\
# Metrics

Every metric of `/metrics` on the admin listener, written by `make generate` from the instruments. A histogram `NAME`
has the series `NAME_bucket`, `NAME_count` and `NAME_sum`. Values of labels are names of the config file and fixed
words; everything else is `other`. [Operate](../operate.md#metrics) has more about them, the [runbook](../runbook.md) a
paragraph for each alert.

| metric | type | labels | meaning |
|---|---|---|---|
"""

DEPLOYMENT: Final = "vendor/model/eu"


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric as Prometheus names it: a counter with `_total`, a histogram without its suffixes. `labels` are without
    `le`."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def every_instrument() -> Metrics:
    """Return metrics in which every possible instrument has a series."""
    metrics = Metrics()
    record = RequestRecord("id", 1.0, "openai", "/v1/completions", team="search", model="vendor/model", stream=True)
    record.attempts.append(Attempt(DEPLOYMENT, 1.0, 2.0))
    record.usage, record.first_content, record.finished = Usage(1, 1), 1.5, 2.0
    metrics.observe(record, 1.0)
    metrics.inflight(DEPLOYMENT, 1)
    metrics.abort("client", "disconnect", "vendor/model")
    metrics.shed(OverloadReason.MEMORY)
    metrics.fallback("vendor/model", "server")
    metrics.retry_denied("vendor/model")
    metrics.rate_limited("search", "requests per minute")
    for what in ("hit", "stale", "miss", "stored"):
        metrics.cache_used(what, "vendor/model")
    metrics.key_refused("expired")
    metrics.observer_failed("log")
    metrics.watch(lambda: [(DEPLOYMENT, 2)])
    metrics.watch_limits(lambda: [(DEPLOYMENT, Limited(8, "operator", 1, 0))])
    metrics.reloaded("0" * 64)
    metrics.shared(lambda: True)
    metrics.watch_memory(lambda: 0.5)
    metrics.watch_stored_turns(StoredEntries(1_000_000, 3600.0))
    metrics.watch_response_cache(StoredEntries(1_000_000, 3600.0))
    metrics.watch_stored_responses(StoredEntries(1_000_000, 3600.0))
    metrics.worker_metrics()
    used = LimitView("team search", LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 600, 6)
    views = [used, replace(used, kind=LimitKind.BUDGET)]
    metrics.watch_families(limit_families(lambda: views, lambda: False))
    metrics.watch_families(ledger_families(LedgerState(loading=True)))
    exported = ExportState()
    exported.sent(1)
    metrics.watch_families(export_families(exported))
    metrics.watch_families(PayloadCounts().families)
    metrics.watch_families(lambda: plugin_families({name: {"redact": 1.0} for name in TEXTS}))
    table = ConfigurationFamilies(tuple)
    table.use({"fast": (DEPLOYMENT,)}, [ExpiringKey("search", "ci", 1.0)], 1.0)
    metrics.watch_families(table)
    _overflow(metrics)
    return metrics


def _overflow(metrics: Metrics) -> None:
    """Count one set of label values beyond the maximum."""
    most, metrics_module.MAX_LABEL_SETS = metrics_module.MAX_LABEL_SETS, 0
    try:
        metrics.fallback("vendor/other", "server")
    finally:
        metrics_module.MAX_LABEL_SETS = most


def metric_rows(families: Iterable[MetricFamily]) -> Iterator[MetricRow]:
    """Yield each metric once, in the order of the families."""
    for family in families:
        labels = {name: None for (_, labels), _ in family.samples for name, _ in labels if name != "le"}
        ending = "_total" if family.kind == "counter" else ""
        yield MetricRow(f"{family.name}{ending}", family.kind, tuple(labels), family.text)


def metric_list() -> str:
    """Return the text of the page."""
    rows = sorted(metric_rows(of_worker(1, every_instrument().families())), key=lambda row: row.name)
    return HEAD + "".join(
        f"| `{row.name}` | {row.kind} | {', '.join(f'`{label}`' for label in row.labels)} | {row.text} |\n"
        for row in rows
    )


if __name__ == "__main__":
    FILE.write_text(metric_list(), encoding="utf-8")
