"""The metrics of limits, budgets and the ledger, read from their counters whenever metrics are rendered."""

import time
from collections.abc import Callable, Iterable, Iterator

from proxy.ledger.ledger_settings import LedgerState
from proxy.limits.limit_views import LimitKind, LimitView, limit_labels, most_used
from proxy.telemetry.merged_metrics import Key, MetricFamily


def limit_families(
    views: Callable[[], Iterable[LimitView]], alone: Callable[[], bool]
) -> Callable[[], Iterator[MetricFamily]]:
    """Return a function that yields the used share of each limit and budget. `alone` returns whether this process
    counts alone with its own share of the limits, because Redis or the coordinator does not respond."""

    def families() -> Iterator[MetricFamily]:
        # Budgets that differ only in their amounts have the same labels. Only the budget with the highest use is
        # reported.
        used: dict[Key, float] = {}
        spent: dict[Key, float] = {}
        for view in most_used(views()):
            team, limit = limit_labels(view.scope, view.unit, view.period)
            if view.kind is LimitKind.BUDGET:
                name = f"{limit}, at {view.at:.0%} {view.then}"
                spent.setdefault(("dragoman_budget_used_ratio", (("team", team), ("budget", name))), view.ratio)
            else:
                used.setdefault(("dragoman_limit_used_ratio", (("team", team), ("limit", limit))), view.ratio)
        yield MetricFamily("dragoman_limit_used_ratio", "gauge", "The used share of a limit.", tuple(used.items()))
        yield MetricFamily("dragoman_budget_used_ratio", "gauge", "The spent share of a budget.", tuple(spent.items()))
        yield _gauge(
            "limits_alone",
            "1 while limits are divided as last known, without Redis or the coordinator.",
            float(alone()),
        )

    return families


def ledger_families(state: LedgerState) -> Callable[[], Iterator[MetricFamily]]:
    """Return a function that yields the metrics of the ledger's rows."""

    def families() -> Iterator[MetricFamily]:
        yield _counter("ledger_written", "Rows written to a journal.", state.written)
        yield _counter("ledger_loaded", "Rows loaded into the ledger.", state.loaded)
        yield _counter("ledger_dropped", "Rows lost: neither disk nor memory had space.", state.dropped)
        yield _counter("ledger_unreadable", "Lines of journals that could not be read.", state.unreadable)
        errors = state.write_errors + state.load_errors
        yield _counter("ledger_errors", "Failures to write journals or to load them.", errors)
        yield _gauge("ledger_trouble", "1 while rows cannot be written or loaded.", float(state.trouble is not None))
        if state.loading or state.unwritten:
            yield _gauge("ledger_behind_seconds", "Age of the oldest row that is not loaded.", state.lag(time.time()))
        if state.loading:
            yield _gauge("ledger_journal_bytes", "Size of all journals.", float(state.journal_bytes))

    return families


def _counter(name: str, text: str, count: int) -> MetricFamily:
    return MetricFamily(f"dragoman_{name}", "counter", text, (((f"dragoman_{name}_total", ()), float(count)),))


def _gauge(name: str, text: str, value: float) -> MetricFamily:
    return MetricFamily(f"dragoman_{name}", "gauge", text, (((f"dragoman_{name}", ()), value),))
