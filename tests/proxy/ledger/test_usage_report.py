"""Usage reports: their output as text, CSV and JSON, and the access rules over HTTP."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from proxy.ledger.journal_files import journal_file
from proxy.ledger.ledger_row import JournalRow, tags_text
from proxy.ledger.ledger_settings import LedgerError
from proxy.ledger.ledger_store import SpendBase, SpendChanges, UsageLine
from proxy.ledger.rollups import UsageSums
from proxy.ledger.sqlite_store import SqliteReader, SqliteStore
from proxy.ledger.usage_query import UsageQuery, usage_query
from proxy.ledger.usage_report import (
    MAX_LINES,
    UsageReport,
    UsageResponse,
    count_waiting_rows,
    loaded_note,
    parse_usage_query,
    shown,
    usage_csv,
    usage_json,
    usage_report,
    usage_table,
    usd,
)
from tests.proxy.ledger.kit import NOON, journaled, line, sqlite
from tests.support.looped import looped


class Fixed:
    """A reader with these lines, or one that fails."""

    def __init__(self, *lines: UsageLine, away: bool = False) -> None:
        self.lines = list(lines)
        self.away = away

    def spent_since(self, slot: int, after: int = 0, users: int | None = None) -> SpendChanges:
        return SpendChanges(0, (), {})

    def spent_from(self, slots: Sequence[int], recent: int, users: int | None = None) -> SpendBase:
        return SpendBase(0, [{} for _ in slots], (), {})

    def users_from(self, scopes: Sequence[str], slots: Sequence[int], recent: int) -> SpendBase:
        raise AssertionError

    def usage(self, query: UsageQuery) -> list[UsageLine]:
        if self.away:
            raise LedgerError("the ledger at db/usage cannot be used: connection refused")
        return self.lines

    def newest(self) -> int | None:
        return NOON

    def writers(self, since: int) -> int:
        return 0

    def interrupt(self) -> None:
        self.away = True

    def close(self) -> None:
        self.lines = []


def query_by(*by: str, team: str | None = None) -> UsageQuery:
    return usage_query(by, "7d", team, "UTC", NOON)


def sums(requests: int, cost: int, unpriced: int = 0) -> UsageSums:
    return UsageSums(requests, 1, 1000 * requests, 5, 20 * requests, 0, cost, unpriced, 7)


def report(*by: str, lines: list[UsageLine]) -> UsageReport:
    return usage_report(Fixed(*lines), query_by(*by))


SEARCH = UsageLine(("search", "fast"), sums(1200, 4_126_000_000))
DATA = UsageLine(("data", "slow"), sums(3, 150_000))


def test_a_table_is_aligned_the_dearest_first_and_ends_with_the_total() -> None:
    assert usage_table(report("team", "model", lines=[DATA, SEARCH])) == [
        "TEAM    MODEL  REQUESTS  ERRORS  TOKENS IN  CACHED  SHARE  TOKENS OUT  REASONING  COST USD",
        "search  fast      1,200       1  1,200,000       5   0.0%      24,000          0      4.13",
        "data    slow          3       1      3,000       5   0.2%          60          0   0.00015",
        "TOTAL             1,203       2  1,203,000      10   0.0%      24,060          0      4.13",
    ]


def test_what_has_no_price_has_a_column_of_its_own() -> None:
    heads, row, total = usage_table(report("team", lines=[UsageLine(("search",), sums(5, 30_000_000, 2))]))
    assert heads.endswith("COST USD  NO PRICE")
    assert row.endswith("0.0300         2")
    assert total.endswith("0.0300         2")


UNPRICED = UsageLine(("local",), sums(5, 0, 2))
FREE = UsageLine(("free",), sums(5, 0))
PARTLY = UsageLine(("search",), sums(5, 30_000_000, 2))


def test_a_cost_of_which_nothing_is_known_is_never_shown_as_nothing() -> None:
    found = report("team", lines=[UNPRICED, FREE, PARTLY])
    rows = {row.split()[0]: row.split()[-2:] for row in usage_table(found)[1:]}
    assert rows == {"search": ["0.0300", "2"], "free": ["0.00", "0"], "local": ["-", "2"], "TOTAL": ["0.0300", "4"]}
    costs = {each["team"]: each["cost_usd"] for each in json.loads(usage_json(found))["usage"]}
    assert costs == {"search": 0.03, "free": 0.0, "local": None}
    cells = {row["team"]: row["cost_usd"] for row in csv.DictReader(io.StringIO(usage_csv(found)))}
    assert cells == {"search": "0.030000000", "free": "0.000000000", "local": ""}
    assert json.loads(usage_json(report("team", lines=[UNPRICED])))["total"]["cost_usd"] is None


def test_an_empty_report_still_says_what_it_would_show() -> None:
    heads, total = usage_table(report("team", lines=[]))
    assert heads.startswith("TEAM ")
    assert total.split() == ["TOTAL", "0", "0", "0", "0", "-", "0", "0", "0.00"]


def test_days_are_in_their_order() -> None:
    lines = [UsageLine((day, "t"), sums(1, cost)) for day, cost in (("2026-11-02", 9), ("2026-11-01", 1))]
    found = report("day", "team", lines=lines)
    assert [each.group[0] for each in found.lines] == ["2026-11-01", "2026-11-02"]


@looped(
    ("nano", "text"),
    [
        (0, "0.00"),
        (50, "0.00000005"),
        (21_000, "0.000021"),
        (72_000_000, "0.0720"),
        (105_000_000, "0.1050"),
        (1_005_000_000, "1.00"),
        (1_234_567_890_000_000, "1,234,567.89"),
    ],
)
def test_cost_is_shown_as_far_as_it_says_something(nano: int, text: str) -> None:
    assert usd(nano) == text


def test_models_of_one_row_are_told_apart_as_clients_named_them(tmp_path: Path) -> None:
    store, reader = SqliteStore(sqlite(tmp_path)), None
    try:
        names = ("openai/a", "openai/b", "openai/b")
        rows = [journaled(number).row._replace(model="openai/*", asked=name) for number, name in enumerate(names, 1)]
        store.add([JournalRow(number, row) for number, row in enumerate(rows, 1)])
        reader = SqliteReader(sqlite(tmp_path))
        found = usage_report(reader, query_by("model", "asked"))
        assert {each.group: each.sums.requests for each in found.lines} == {
            ("openai/*", "openai/a"): 1,
            ("openai/*", "openai/b"): 2,
        }
    finally:
        store.close()
        if reader is not None:
            reader.close()


def test_a_request_with_two_tags_is_in_both_lines_and_once_in_the_total(tmp_path: Path) -> None:
    store, reader = SqliteStore(sqlite(tmp_path)), None
    try:
        tags = [{"cost_center": "4711", "stage": "prod"}, {"cost_center": "4711"}, {}]
        store.add(
            [
                JournalRow(number, journaled(number).row._replace(tags=tags_text(each)))
                for number, each in enumerate(tags, 1)
            ]
        )
        reader = SqliteReader(sqlite(tmp_path))
        found = usage_report(reader, query_by("tag"))
        assert {each.group[0]: each.sums.requests for each in found.lines} == {
            "cost_center=4711": 2,
            "stage=prod": 1,
            "": 1,
        }
        assert found.total.requests == 3
    finally:
        store.close()
        if reader is not None:
            reader.close()


def test_a_clients_text_orders_a_terminal_nothing() -> None:
    assert shown("a\x1b[31mb\u202ec") == "a\ufffd[31mb\ufffdc"
    assert usage_table(report("user", lines=[UsageLine(("a\nb\x1b",), sums(1, 1))]))[1].startswith("a\ufffdb\ufffd ")


def test_a_clients_text_is_no_formula_of_a_spreadsheet() -> None:
    lines = [UsageLine((text,), sums(1, 21_000)) for text in ("=1+1", "@x", "+1", "-1", 'a,"b"\n', "\x1b[2J")]
    rows = list(csv.DictReader(io.StringIO(usage_csv(report("user", lines=lines)))))
    assert {row["user"] for row in rows} == {"'=1+1", "'@x", "'+1", "'-1", 'a,"b"\ufffd', "\ufffd[2J"}
    assert {(row["requests"], row["cost_usd"], row["ms"]) for row in rows} == {("1", "0.000021000", "7")}


def test_json_has_every_sum_and_how_far_the_ledger_is_loaded() -> None:
    found = json.loads(usage_json(usage_report(Fixed(SEARCH), query_by("team", "model"), waiting=4)))
    assert found["by"] == ["team", "model"]
    assert (found["since"], found["loaded_to"], found["waiting"]) == (
        "2026-10-26T00:00:00.000Z",
        "2026-11-01T12:00:00.000Z",
        4,
    )
    assert found["usage"] == [{"team": "search", "model": "fast", **found["total"]}]
    assert found["total"]["cost_usd"] == 4.126
    assert found["total"]["tokens_in"] == 1_200_000


def test_an_answer_is_bounded_and_its_last_line_is_the_rest() -> None:
    lines = [UsageLine((f"user-{number}",), sums(1, 10)) for number in range(MAX_LINES + 5)]
    found = json.loads(usage_json(report("user", lines=lines)))
    assert len(found["usage"]) == MAX_LINES + 1
    assert found["usage"][-1]["user"] == "…"
    assert sum(each["requests"] for each in found["usage"]) == found["total"]["requests"] == MAX_LINES + 5


def test_how_far_the_ledger_is_loaded_is_said() -> None:
    found = usage_report(Fixed(SEARCH), query_by("team", "model"), waiting=1234)
    assert loaded_note(found) == (
        "loaded to 2026-11-01 12:00:00 UTC; 1,234 requests in the journals are not counted yet"
    )


def test_rows_that_wait_are_counted_by_the_last_one_of_each_process(tmp_path: Path) -> None:
    journal_file(tmp_path, "a", 1).path.write_bytes(line(1) + line(2))
    journal_file(tmp_path, "a", 2).path.write_bytes(line(3) + line(4)[:50])
    journal_file(tmp_path, "b", 1).path.write_bytes(line(7))
    journal_file(tmp_path, "c", 1).path.write_bytes(b"nonsense\n")
    assert count_waiting_rows(tmp_path, {"a": 1, "b": 7}) == 2
    assert count_waiting_rows(tmp_path / "none", {}) == 0


# Over HTTP ----------------------------------------------------------------------------------------------------------


def test_a_query_string_asks_what_the_command_line_does() -> None:
    found = parse_usage_query("by=team,day&since=30d&team=search", "UTC", NOON)
    assert found == usage_query(["team", "day"], "30d", "search", "UTC", NOON)
    assert parse_usage_query("", "UTC", NOON) == usage_query(["team", "model"], "7d", None, "UTC", NOON)


def test_a_teams_key_gets_that_teams_usage_and_no_others() -> None:
    own = parse_usage_query("by=key", "UTC", NOON, "search")
    assert isinstance(own, UsageQuery)
    assert own.team == "search"
    other = parse_usage_query("by=key&team=data", "UTC", NOON, "search")
    assert isinstance(other, UsageResponse)
    assert other.status == 403


@looped(
    "text",
    ["by=colour", "since=yesterday", "team=a&x=1", "&".join(["by=team"] * 99), "by=" + "team," * 9999, "since=9d%00"],
)
def test_a_question_that_makes_no_sense_is_answered_with_400(text: str) -> None:
    found = parse_usage_query(text, "UTC", NOON)
    assert isinstance(found, UsageResponse)
    assert found.status == 400
    assert json.loads(found.body)["error"]["code"] == "invalid_value"
    assert len(found.body) < 400
