"""The metrics of limits, budgets and the ledger: read from what counts them, whenever metrics are rendered."""

import time
from collections.abc import Callable, Iterable, Iterator

from proxy.ledger.ledger_settings import LedgerState
from proxy.limits.limit_views import LimitKind, LimitView, limit_labels, most_used
from proxy.telemetry.merged_metrics import Key, MetricFamily


def limit_families(
    views: Callable[[], Iterable[LimitView]], alone: Callable[[], bool]
) -> Callable[[], Iterator[MetricFamily]]:
    """Return what yields how much of each limit and budget is used. `alone` says whether this process goes on with its
    share, since Redis or the coordinator does not answer."""

    def families() -> Iterator[MetricFamily]:
        # Budgets that differ in their amounts alone have one name: the one that is used most is shown.
        used: dict[Key, float] = {}
        spent: dict[Key, float] = {}
        for view in most_used(views()):
            team, limit = limit_labels(view.scope, view.unit, view.period)
            if view.kind is LimitKind.BUDGET:
                name = f"{limit}, at {view.at:.0%} {view.then}"
                spent.setdefault(("dragoman_budget_used_ratio", (("team", team), ("budget", name))), view.ratio)
            else:
                used.setdefault(("dragoman_limit_used_ratio", (("team", team), ("limit", limit))), view.ratio)
        yield MetricFamily("dragoman_limit_used_ratio", "gauge", "What is used of a limit.", tuple(used.items()))
        yield MetricFamily("dragoman_budget_used_ratio", "gauge", "What is spent of a budget.", tuple(spent.items()))
        yield _gauge("limits_alone", "1 while limits are divided as was last known.", float(alone()))

    return families


def ledger_families(state: LedgerState) -> Callable[[], Iterator[MetricFamily]]:
    """Return what yields what becomes of the rows of requests."""

    def families() -> Iterator[MetricFamily]:
        yield _counter("ledger_written", "Rows in a journal.", state.written)
        yield _counter("ledger_loaded", "Rows that came into the ledger.", state.loaded)
        yield _counter("ledger_dropped", "Rows lost: neither disk nor memory had room.", state.dropped)
        yield _counter("ledger_unreadable", "Lines of journals that nobody could read.", state.unreadable)
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
