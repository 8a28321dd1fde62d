"""The metrics of limits, budgets and the ledger, read from what counts them whenever metrics are rendered."""

from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest
from typing import Final

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from proxy.ledger.ledger_settings import LedgerState
from proxy.limits.limit_views import LimitView, limit_labels
from proxy.limits.reservation import LimitKind

MOST: Final = 1000
"""Limits that are shown: those that are used most. A table may have ten thousand teams."""


class LimitsCollector:
    """Shows how much of each limit and budget is used. `views` yields them as they are; `alone` says whether this
    process goes on with its share, since whoever counts for all does not answer."""

    def __init__(
        self, registry: CollectorRegistry, views: Callable[[], Iterable[LimitView]], alone: Callable[[], bool]
    ) -> None:
        self._views = views
        self._alone = alone
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """See CollectorRegistry.register."""
        used = GaugeMetricFamily("dragoman_limit_used_ratio", "What is used of a limit.", labels=("team", "limit"))
        spent = GaugeMetricFamily("dragoman_budget_used_ratio", "What is spent of a budget.", labels=("team", "budget"))
        for view in nlargest(MOST, self._views(), key=lambda each: each.ratio):
            labels = limit_labels(view.scope, view.unit, view.period)
            (spent if view.kind is LimitKind.BUDGET else used).add_metric(labels, view.ratio)
        yield used
        yield spent
        yield GaugeMetricFamily(
            "dragoman_limits_alone", "1 while limits are divided as last known.", value=float(self._alone())
        )


class LedgerCollector:
    """Shows what becomes of the rows of requests."""

    def __init__(self, registry: CollectorRegistry, state: LedgerState) -> None:
        self._state = state
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """See CollectorRegistry.register."""
        state = self._state
        for name, text, count in (
            ("written", "Rows in a journal.", state.written),
            ("loaded", "Rows that came into the ledger.", state.loaded),
            ("dropped", "Rows lost: neither disk nor memory had room.", state.dropped),
            ("unreadable", "Lines of journals that nobody could read.", state.unreadable),
            ("errors", "Failures to write journals or to load them.", state.write_errors + state.load_errors),
        ):
            yield CounterMetricFamily(f"dragoman_ledger_{name}", text, value=count)
        if state.loading:
            yield GaugeMetricFamily(
                "dragoman_ledger_behind_seconds", "Age of the oldest row that is not loaded.", value=state.behind
            )
            yield GaugeMetricFamily(
                "dragoman_ledger_journal_bytes", "Size of all journals.", value=float(state.journal_bytes)
            )
