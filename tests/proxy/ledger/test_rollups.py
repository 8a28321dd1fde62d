"""The sums that a batch adds, and the days of time zones."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.ledger.ledger_settings import LedgerRefusedError
from proxy.ledger.rollups import SLOT_MS, Days, UsageSums, is_unpriced, roll_up, scopes
from tests.proxy.ledger.kit import NOON, row
from tests.support.looped import looped


def test_a_row_counts_for_its_team_key_model_and_deployment() -> None:
    assert scopes(row()) == (
        *("key search/ci", "team search model fast", "team search", "all clients"),
        *("deployment azure-eu/gpt-4o/sweden", "model azure-eu/gpt-4o", "vendor azure-eu"),
    )
    nothing_called = row()._replace(key_name="", deployment=None)
    assert scopes(nothing_called) == ("team search model fast", "team search", "all clients")
    assert scopes(row()._replace(attempts=0)) == ()


def test_a_model_with_slashes_is_told_from_its_deployment() -> None:
    named = row()._replace(deployment="fireworks/accounts/x/models/y/default")
    assert scopes(named)[-2:] == ("model fireworks/accounts/x/models/y", "vendor fireworks")


def test_requests_without_a_price_are_counted_beside_the_cost() -> None:
    sums = roll_up([row(), row()._replace(cost=None)], Days("UTC").of)
    assert {each.unpriced for each in sums.spent()} == {1}
    assert {each.cost for each in sums.spent()} == {21_000}


@looped(
    ("outcome", "tokens", "attempts", "unpriced"),
    [
        ("ok", (5, 2), 1, True),
        ("ok", (None, None), 1, True),
        ("truncated", (0, 2), 1, True),
        ("upstream_error", (None, None), 1, False),
        ("timeout", (0, 0), 3, False),
        ("ok", (5, 2), 0, False),
    ],
)
def test_a_call_that_failed_without_tokens_costs_nothing(
    outcome: str, tokens: tuple[int | None, int | None], attempts: int, unpriced: bool
) -> None:
    failed = row()._replace(cost=None, outcome=outcome, tokens_in=tokens[0], tokens_out=tokens[1], attempts=attempts)
    (used,) = roll_up([failed], Days("UTC").of).used()
    assert (is_unpriced(failed), used[-2]) == (unpriced, int(unpriced))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9), st.integers(0, 5)), max_size=60), st.integers(1, 9))
def test_sums_are_equal_in_any_batches(drawn: list[tuple[int, int, int]], size: int) -> None:
    rows = [row(NOON + at * SLOT_MS, f"t{team}")._replace(cost=cost) for team, cost, at in drawn]
    days = Days("Europe/Berlin").of
    whole = roll_up(rows, days).spent()
    parts: dict[tuple[str, int], int] = {}
    for start in range(0, len(rows), size):
        for each in roll_up(rows[start : start + size], days).spent():
            parts[each.scope, each.slot] = parts.get((each.scope, each.slot), 0) + each.cost
    assert parts == {(each.scope, each.slot): each.cost for each in whole}


def test_days_begin_at_the_zones_midnight() -> None:
    slot = round(datetime(2026, 11, 1, 23, 0, tzinfo=UTC).timestamp() * 1000) // SLOT_MS
    assert Days("UTC").of(slot) == "2026-11-01"
    assert Days("Europe/Berlin").of(slot) == "2026-11-02"
    assert Days("Asia/Kathmandu").of(slot) == "2026-11-02"


@looped(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", datetime(2026, 3, 29), 23),
        ("Europe/Berlin", datetime(2026, 10, 25), 25),
        ("America/Santiago", datetime(2026, 9, 6), 23),
        ("Africa/Cairo", datetime(2026, 4, 24), 23),
    ],
)
def test_days_have_23_and_25_hours_and_may_lack_their_midnight(zone: str, day: datetime, hours: int) -> None:
    days = Days(zone)
    begin = days.midnight(day)
    assert days.of(begin // SLOT_MS) == day.date().isoformat()
    assert days.of(begin // SLOT_MS - 1) != day.date().isoformat()
    assert days.of(begin // SLOT_MS + hours * 4 - 1) == day.date().isoformat()
    assert days.of(begin // SLOT_MS + hours * 4) != day.date().isoformat()


def test_all_slots_of_the_calendar_are_bounded_memory() -> None:
    days = Days("UTC")
    assert len({days.of(slot) for slot in range(0, 10_000_000, 96)}) == len(range(0, 10_000_000, 96))
    assert len(days._known) <= 4096


def test_a_zone_that_is_not_known_names_the_package_that_has_it() -> None:
    for zone in ("Mars/Olympus", "", "../etc/passwd"):
        with pytest.raises(LedgerRefusedError, match="tzdata"):
            Days(zone)


def test_sums_add_up_member_by_member() -> None:
    assert UsageSums(1, 2, cost=3).plus(UsageSums(10, 20, cost=30, ms=1)) == UsageSums(11, 22, cost=33, ms=1)
