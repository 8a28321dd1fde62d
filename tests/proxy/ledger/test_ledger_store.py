"""The guarantees of both databases: each row is stored once, sums are equal in any order, and no text breaks a
statement.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from proxy.ledger.ledger_row import MAX_MS, JournalRow
from proxy.ledger.ledger_settings import LedgerSettings
from proxy.ledger.ledger_store import LedgerReader, LedgerStore, last_of_each
from proxy.ledger.open_ledger import open_reader, open_store
from proxy.ledger.rollups import SLOT_MS, SlotSpend, UsageSums
from proxy.ledger.usage_query import usage_query
from proxy.limits.limit import MOST_COST, MOST_TOKENS
from tests.proxy.ledger.kit import DEPLOYMENT, NOON, journaled

SLOT = NOON // SLOT_MS
HOUR = 3_600_000
DAY = 24 * HOUR


@contextmanager
def opened(settings: LedgerSettings) -> Iterator[tuple[LedgerStore, LedgerReader]]:
    store = open_store(settings)
    reader = open_reader(settings)
    try:
        yield store, reader
    finally:
        reader.close()
        store.close()


def some_rows(count: int, seed: int = 1) -> list[JournalRow]:
    """Return rows of several teams, days and processes, with odd costs."""
    draw = random.Random(seed)
    made = []
    for number in range(1, count + 1):
        each = journaled(number, NOON + draw.randrange(3 * DAY), f"team-{draw.randrange(5)}", f"g{draw.randrange(3)}")
        changed = each.row._replace(
            cost=draw.choice([None, draw.randrange(10**9)]),
            tokens_in=draw.choice([None, draw.randrange(10**5)]),
            outcome=draw.choice(["ok", "ok", "timeout"]),
        )
        made.append(JournalRow(number, changed))
    return made


def everything(reader: LedgerReader) -> tuple[object, ...]:
    """Return all sums: from the rows, by day, and by slot."""
    query = usage_query(["team", "key", "model", "day", "deployment"], "2026-10-01", None, "UTC", NOON)
    rows = replace(query, day=None)
    return (
        sorted(reader.usage(query), key=lambda line: line.group),
        sorted(reader.usage(rows), key=lambda line: line.group),
        sorted(reader.spent_since(0).spent),
    )


def test_rows_come_in_once_however_often_and_in_whatever_batches(settings: LedgerSettings) -> None:
    rows = some_rows(700)
    with opened(settings) as (store, reader):
        assert store.add(rows) == 700
        first = everything(reader)
        draw = random.Random(2)
        draw.shuffle(rows)
        while rows:
            size = draw.randrange(1, 90)
            assert store.add([*rows[:size], *rows[: size // 2]]) == 0
            del rows[:size]
        assert everything(reader) == first
        by_day, by_rows, _ = first
        assert by_day == by_rows


def test_a_row_that_is_twice_in_one_batch_counts_once(settings: LedgerSettings) -> None:
    with opened(settings) as (store, reader):
        each = journaled()
        assert store.add([each, each]) == 1
        assert [line.requests for line in reader.spent_since(0).spent] == [1] * 7


def test_spending_is_told_by_scope_and_slot(settings: LedgerSettings) -> None:
    with opened(settings) as (store, reader):
        store.add([journaled(1), journaled(2, NOON + SLOT_MS - 1), journaled(3, NOON + SLOT_MS)])
        found = reader.spent_since(SLOT)
        cost = round((100 * 0.15 + 10 * 0.6) * 1000)
        assert SlotSpend("team search", SLOT, 2, 220, 2 * cost, 0) in found.spent
        assert SlotSpend("team search", SLOT + 1, 1, 110, cost, 0) in found.spent
        assert {each.scope for each in found.spent} == {
            *("all clients", "team search", "key search/ci", "team search model fast"),
            *(f"deployment {DEPLOYMENT}", "model azure-eu/gpt-4o", "vendor azure-eu"),
        }
        assert {each.slot for each in reader.spent_since(SLOT + 1).spent} == {SLOT + 1}
        assert found.loaded == {"g1": 3}


def test_only_what_changed_is_told_again_with_its_whole_sum(settings: LedgerSettings) -> None:
    with opened(settings) as (store, reader):
        store.add([journaled(1), journaled(2, NOON, "data")])
        first = reader.spent_since(0)
        assert reader.spent_since(0, first.batch).spent == []
        store.add([journaled(3)])
        after = reader.spent_since(0, first.batch)
        assert {(each.scope, each.requests) for each in after.spent if each.scope.startswith("team")} == {
            ("team search", 2),
            ("team search model fast", 2),
        }
        assert after.batch > first.batch
        assert after.loaded == {"g1": 3}


def test_requests_that_no_vendor_was_asked_for_count_in_reports_and_for_no_limit(settings: LedgerSettings) -> None:
    with opened(settings) as (store, reader):
        each = journaled()
        refused = each.row._replace(attempts=0, deployment=None, cost=None, tokens_in=None, tokens_out=None)
        store.add([JournalRow(1, refused._replace(outcome="client_error", status=429))])
        assert reader.spent_since(0).spent == []
        (line,) = reader.usage(usage_query(["team"], "30d", None, "UTC", NOON))
        assert line.sums == UsageSums(requests=1, errors=1, tokens_cached=7, tokens_reasoning=3, ms=1500)


def test_no_price_is_counted_alike_in_rows_in_the_sums_by_day_and_after_they_are_made_anew(
    settings: LedgerSettings,
) -> None:
    empty = {"cost": None, "tokens_in": None, "tokens_out": None}
    changes: list[dict[str, Any]] = [
        {"cost": None},
        {"cost": None, "outcome": "truncated"},
        {**empty, "outcome": "upstream_error", "status": 401},
        {**empty, "outcome": "timeout", "tokens_in": 0},
    ]
    rows = [JournalRow(n, journaled(n).row._replace(**each)) for n, each in enumerate(changes, 1)]
    with opened(settings) as (store, reader):
        store.add(rows)
        for team in (None, "search"):
            (line,) = reader.usage(usage_query(["team"], "30d", team, "UTC", NOON))
            assert (line.sums.requests, line.sums.unpriced) == (4, 2)
    zone = "Asia/Tokyo"
    with opened(replace(settings, zone=zone)) as (_, reader):
        (line,) = reader.usage(usage_query(["team"], "30d", None, zone, NOON))
        assert (line.sums.requests, line.sums.unpriced) == (4, 2)


def test_texts_of_any_kind_are_kept_as_they_are(settings: LedgerSettings) -> None:
    odd = ("'; DROP TABLE request; --", "\\N", "\\.", "a\tb\nc\r", "%s ? $1", "\u202e\U0001f600", "'\"`", "")
    with opened(settings) as (store, reader):
        rows = [
            JournalRow(
                number,
                journaled(number).row._replace(team=text or "x", key_name=text, user_name=text, asked=text, model=text),
            )
            for number, text in enumerate(odd, 1)
        ]
        assert store.add(rows) == len(odd)
        found = reader.usage(usage_query(["key", "model", "user"], "30d", None, "UTC", NOON))
        assert {line.group for line in found} == {(text, text, text) for text in odd}


def test_the_largest_numbers_add_up(settings: LedgerSettings) -> None:
    with opened(settings) as (store, reader):
        big = [
            JournalRow(number, journaled(number).row._replace(cost=MOST_COST, tokens_in=MOST_TOKENS, ms=MAX_MS))
            for number in range(1, 2001)
        ]
        assert store.add(big) == 2000
        (line,) = reader.usage(usage_query([], "30d", None, "UTC", NOON))
        assert line.sums.cost == 2000 * MOST_COST
        assert Decimal(line.sums.tokens_in) == 2000 * MOST_TOKENS


def test_old_rows_and_their_days_go_and_spending_stays_for_a_month(settings: LedgerSettings) -> None:
    with opened(replace(settings, keep=7 * 86400.0)) as (store, reader):
        store.add([journaled(number, NOON + number * DAY) for number in range(60)])
        store.tidy(NOON + 60 * DAY)
        now = NOON + 60 * DAY
        days = reader.usage(usage_query(["day"], "2026-10-01", None, "UTC", now))
        assert min(line.group[0] for line in days) == "2026-12-24"
        oldest = min(each.slot for each in reader.spent_since(0).spent)
        assert oldest == (NOON + 20 * DAY) // SLOT_MS
        rows = replace(usage_query(["day"], "2026-10-01", None, "UTC", now), day=None)
        assert min(line.group[0] for line in reader.usage(rows)) <= "2026-12-23"
        assert store.add([journaled(60, now)]) == 1


def test_days_are_those_of_the_zone_and_follow_another_one(settings: LedgerSettings) -> None:
    late = NOON + 11 * HOUR + HOUR // 2
    with opened(replace(settings, zone="Europe/Berlin")) as (store, reader):
        store.add([journaled(1, NOON), journaled(2, late)])
        query = usage_query(["day"], "2026-10-01", None, "Europe/Berlin", late)
        assert {line.group[0] for line in reader.usage(query)} == {"2026-11-01", "2026-11-02"}
        assert sorted(reader.usage(replace(query, team="search")), key=str) == sorted(reader.usage(query), key=str)
    with opened(replace(settings, zone="America/New_York")) as (store, reader):
        query = usage_query(["day"], "2026-10-01", None, "America/New_York", late)
        assert [(line.group, line.sums.requests) for line in reader.usage(query)] == [(("2026-11-01",), 2)]
        assert store.add([journaled(3, NOON)]) == 1
        assert [line.sums.requests for line in reader.usage(query)] == [3]


@pytest.mark.parametrize("by", ["team", "key", "model", "user", "tag", "day", "deployment"])
def test_one_teams_report_has_only_its_rows(settings: LedgerSettings, by: str) -> None:
    with opened(settings) as (store, reader):
        store.add([journaled(1), journaled(2, NOON, "data"), journaled(3, NOON + HOUR)])
        lines = reader.usage(usage_query([by], "30d", "search", "UTC", NOON + DAY))
        assert sum(line.sums.requests for line in lines) == 2
        assert all(type(number) is int for line in lines for number in line.sums)


def test_the_newest_row_is_told(settings: LedgerSettings) -> None:
    with opened(settings) as (store, reader):
        assert reader.newest() is None
        store.add([journaled(1, NOON + 5), journaled(2, NOON + 7), journaled(3, NOON)])
        assert reader.newest() == NOON + 7


def test_processes_that_wrote_of_late_are_counted(settings: LedgerSettings) -> None:
    with opened(settings) as (store, reader):
        assert reader.writers(0) == 0
        store.add([journaled(1, NOON, "t", "g1"), journaled(1, NOON + 5, "t", "g2"), journaled(2, NOON + 9, "t", "g2")])
        assert [reader.writers(since) for since in (NOON, NOON + 1, NOON + 10)] == [2, 1, 0]


def test_the_last_row_of_each_process_is_the_one_with_the_highest_number() -> None:
    rows = [journaled(2, NOON), journaled(1, NOON + 9), journaled(5, NOON, gateway="g2")]
    assert last_of_each(rows) == [("g1", 2, NOON + 9), ("g2", 5, NOON)]
