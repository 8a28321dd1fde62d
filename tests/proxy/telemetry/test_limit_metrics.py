"""The limits, budgets and ledger in a scrape, parsed as Prometheus parses it."""

import time
from collections.abc import Callable, Iterable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.ledger.ledger_settings import LedgerState
from proxy.limits.limit import NANO, Period, Unit
from proxy.limits.limit_views import MOST_VIEWS, LimitKind, LimitView
from proxy.telemetry.limit_metrics import ledger_families, limit_families
from proxy.telemetry.merged_metrics import MetricFamily
from proxy.telemetry.metrics import Metrics


def scraped(families: Callable[[], Iterable[MetricFamily]]) -> dict[str, float]:
    """Return the series of these families by name and labels."""
    metrics = Metrics()
    metrics.watch_families(families)
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            name = f"{sample.name}{sorted(sample.labels.items())}"
            assert name not in found, name
            found[name] = sample.value
    return found


def rate(scope: str, used: int) -> LimitView:
    return LimitView(scope, LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 100_000, used)


def budget(used: int, limit: int = 500) -> LimitView:
    spent = (Unit.USD, Period.MONTH, limit * NANO, used * NANO, None, 0.8, "warn")
    return LimitView("team search", LimitKind.BUDGET, *spent)


def test_limits_have_their_team_and_what_they_limit() -> None:
    scopes = ("team search", "key search/ci", "team search model fast", "vendor mock")
    found = scraped(limit_families(lambda: [rate(scope, 50_000) for scope in scopes], lambda: False))
    for team, limit in (
        ("search", "requests per minute"),
        ("search", "key ci: requests per minute"),
        ("search", "fast: requests per minute"),
        ("", "vendor mock: requests per minute"),
    ):
        assert found[f"dragoman_limit_used_ratio[('limit', '{limit}'), ('team', '{team}')]"] == 0.5
    assert found["dragoman_limits_alone[]"] == 0


def test_budgets_say_at_what_they_do_what_and_no_series_comes_twice() -> None:
    found = scraped(limit_families(lambda: [budget(100), budget(100, 250)], lambda: True))
    name = "dragoman_budget_used_ratio[('budget', 'usd per month, at 80% warn'), ('team', 'search')]"
    assert found[name] == 0.4
    assert found["dragoman_limits_alone[]"] == 1


def test_their_number_is_bounded_and_the_most_used_are_shown() -> None:
    views = [rate(f"team t{number}", number) for number in range(MOST_VIEWS + 500)]
    found = {
        name: value
        for name, value in scraped(limit_families(lambda: views, lambda: False)).items()
        if "limit_used" in name
    }
    assert len(found) == MOST_VIEWS
    assert min(found.values()) == 500 / 100_000


def test_the_ledger_counts_rows_and_shows_how_far_behind_it_is_where_it_is_loaded() -> None:
    state = LedgerState(written=9, dropped=1, write_errors=2, loaded=7, unreadable=3, load_errors=4, behind=2.5)
    found = scraped(ledger_families(state))
    counts = {"written": 9, "loaded": 7, "dropped": 1, "unreadable": 3, "errors": 6}
    for name, count in counts.items():
        assert found[f"dragoman_ledger_{name}_total[]"] == count
    assert "dragoman_ledger_behind_seconds[]" not in found
    state.loading, state.journal_bytes = True, 1 << 20
    found = scraped(ledger_families(state))
    assert (found["dragoman_ledger_behind_seconds[]"], found["dragoman_ledger_journal_bytes[]"]) == (2.5, 1 << 20)


def test_rows_that_wait_in_memory_are_behind_whoever_loads() -> None:
    state = LedgerState(unwritten=2, oldest=time.time() - 60)
    assert scraped(ledger_families(state))["dragoman_ledger_behind_seconds[]"] == pytest.approx(60, abs=5)


def test_that_rows_cannot_be_written_or_loaded_shows_for_as_long_as_it_is_so() -> None:
    state = LedgerState(trouble="the journal cannot be written: No space left on device")
    assert scraped(ledger_families(state))["dragoman_ledger_trouble[]"] == 1
    state.trouble = None
    assert scraped(ledger_families(state))["dragoman_ledger_trouble[]"] == 0
