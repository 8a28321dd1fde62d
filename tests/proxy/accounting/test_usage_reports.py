"""Usage reports over HTTP: one reader, used by one thread at a time, one report for each request, and a time limit."""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from proxy.accounting.ledger_reader import MAX_ABANDONED
from proxy.accounting.usage_reports import (
    AWAY,
    BUSY,
    MAX_CLIENTS,
    NO_ANSWER,
    NO_LEDGER,
    TOO_LONG,
    LedgerNow,
    UsageReports,
)
from proxy.ledger.journal_files import journal_file
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState
from proxy.ledger.ledger_store import LedgerReader, SpendBase, SpendChanges, UsageLine
from proxy.ledger.sqlite_store import SqliteStore
from proxy.ledger.usage_query import UsageQuery
from proxy.ledger.usage_report import UsageResponse
from tests.proxy.ledger.kit import NOON, journaled, line, sqlite


def now() -> float:
    return NOON / 1000 + 60


@pytest.fixture
def settings(tmp_path: Path) -> LedgerSettings:
    """Return the settings of a ledger with two requests of one team, one of another, and two rows in a journal."""
    made = sqlite(tmp_path)
    store = SqliteStore(made)
    store.add([journaled(1), journaled(2), journaled(3, NOON, "data")])
    store.close()
    made.journals.mkdir()
    journal_file(made.journals, "g1", 1).path.write_bytes(line(5))
    return made


def teams(answer: UsageResponse) -> dict[str, int]:
    assert answer.status == 200, answer.body
    return {each["team"]: each["requests"] for each in orjson.loads(answer.body)["usage"]}


async def test_the_operator_sees_all_teams_and_a_key_its_own(settings: LedgerSettings) -> None:
    desk = UsageReports(settings, now)
    assert teams(await desk.answer("by=team")) == {"search": 2, "data": 1}
    assert teams(await desk.answer("by=team&team=data")) == {"data": 1}
    assert teams(await desk.answer("by=team", "data")) == {"data": 1}
    assert (await desk.answer("team=search", "data")).status == 403
    assert (await desk.answer("by=colour")).status == 400
    await desk.aclose()


async def test_a_report_says_that_rows_which_wait_in_memory_are_not_counted_yet(settings: LedgerSettings) -> None:
    desk = UsageReports(settings, now)
    before = orjson.loads((await desk.answer("")).body)
    desk.unwritten = lambda: 5
    after = orjson.loads((await desk.answer("")).body)
    assert (before["waiting"], after["waiting"]) == (2, 7)
    await desk.aclose()


async def test_without_a_ledger_the_answer_says_so() -> None:
    desk = UsageReports(None)
    assert await desk.answer("") is NO_LEDGER
    assert await desk.now(LedgerState()) is None
    await desk.aclose()


async def test_the_state_names_the_place_without_its_password_and_what_waits(settings: LedgerSettings) -> None:
    desk = UsageReports(settings, now)
    state = LedgerState(behind=2.5, dropped=1, trouble="the disk is full")
    found = await desk.now(state)
    assert found == LedgerNow(str(settings.file), 2.5, 2, 1, "the disk is full")
    assert found.line() == f"{settings.file}, 2.5 s behind, 2 rows waiting, 1 rows lost; the disk is full"
    state.unwritten, state.oldest = 5, now() - 9
    assert await desk.now(state) == LedgerNow(str(settings.file), 9.0, 7, 1, "the disk is full")
    await desk.aclose()
    secret = replace(settings, kind="postgresql", file=None, url="postgresql://me:canary@127.0.0.1:1/usage")
    away = await UsageReports(secret, now).now(LedgerState())
    assert away == LedgerNow("127.0.0.1:1/usage", 0.0, None, 0, None)
    assert "rows waiting: unknown" in away.line()


async def test_a_database_that_is_away_is_opened_again(settings: LedgerSettings) -> None:
    opened: list[LedgerReader] = []

    def opener(where: LedgerSettings) -> LedgerReader:
        opened.append(Fake(away=not opened))
        return opened[-1]

    desk = UsageReports(settings, now, opener=opener)
    assert (await desk.answer("")).status == 503
    assert (await desk.answer("")).status == 200
    assert (await desk.answer("")).status == 200
    assert len(opened) == 2
    await desk.aclose()


class Fake:
    """A reader that reads until it is released or interrupted."""

    def __init__(self, away: bool = False, slow: bool = False) -> None:
        self.away = away
        self.go = threading.Event()
        self.begun = threading.Event()
        self.together = self.most = 0
        self.closed = False
        if not slow:
            self.go.set()

    def spent_since(self, slot: int, after: int = 0, users: int | None = None) -> SpendChanges:
        return SpendChanges(0, (), {})

    def spent_from(self, slots: Sequence[int], recent: int, users: int | None = None) -> SpendBase:
        return SpendBase(0, (), (), {})

    def users_from(self, scopes: Sequence[str], slots: Sequence[int], recent: int) -> SpendBase:
        raise AssertionError

    def usage(self, query: UsageQuery) -> list[UsageLine]:
        if self.away:
            raise LedgerError("away")
        self.together += 1
        self.most = max(self.most, self.together)
        self.begun.set()
        assert self.go.wait(40)
        time.sleep(0.001)
        self.together -= 1
        return []

    def newest(self) -> int | None:
        return None

    def writers(self, since: int) -> int:
        return 0

    def interrupt(self) -> None:
        self.go.set()

    def close(self) -> None:
        self.closed = True


async def test_one_thread_at_a_time_reads_and_each_asker_has_one_report(settings: LedgerSettings) -> None:
    reader = Fake(slow=True)
    desk = UsageReports(settings, now, opener=lambda where: reader)
    first = [asyncio.create_task(desk.answer("", f"t{number}")) for number in range(MAX_CLIENTS)]
    await asyncio.to_thread(reader.begun.wait)
    assert await desk.answer("", "t0") is BUSY
    assert await desk.answer("", "another") is BUSY
    assert (await desk.now(LedgerState())) == LedgerNow(str(settings.file), 0.0, None, 0, None)
    reader.go.set()
    assert {answer.status for answer in await asyncio.gather(*first)} == {200}
    assert reader.most == 1
    assert (await desk.answer("", "another")).status == 200
    await desk.aclose()
    assert reader.closed


async def test_the_state_does_not_wait_for_a_database_that_does_not_answer(settings: LedgerSettings) -> None:
    asleep = threading.Event()

    def opener(where: LedgerSettings) -> LedgerReader:
        asleep.wait()
        raise LedgerError("gone")

    desk = UsageReports(settings, now, longest=0.01, opener=opener)
    for _ in range(MAX_ABANDONED + 1):
        assert (await desk.now(LedgerState())) == LedgerNow(str(settings.file), 0.0, None, 0, NO_ANSWER)
    assert (await desk.now(LedgerState(trouble="the disk is full"))).trouble == "the disk is full"  # type: ignore[union-attr]
    assert await desk.answer("") is AWAY
    await desk.aclose()
    asleep.set()


async def test_a_report_that_takes_too_long_is_interrupted(settings: LedgerSettings) -> None:
    reader = Fake(slow=True)
    desk = UsageReports(settings, now, longest=0.01, opener=lambda where: reader)
    assert await desk.answer("") is TOO_LONG
    desk._longest = 40.0
    assert (await desk.answer("")).status == 200
    await desk.aclose()


async def test_a_client_that_leaves_keeps_its_place_until_its_report_ends(settings: LedgerSettings) -> None:
    reader = Fake(slow=True)
    desk = UsageReports(settings, now, opener=lambda where: reader)
    asking = asyncio.create_task(desk.answer("", "t"))
    await asyncio.to_thread(reader.begun.wait)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await desk.answer("", "t") is BUSY
    await desk.aclose()
    assert reader.closed


async def test_sqlite_ends_a_statement_that_another_thread_runs(settings: LedgerSettings) -> None:
    from proxy.ledger.open_ledger import open_reader

    reader = open_reader(settings)
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
    running = asyncio.get_running_loop().run_in_executor(None, lambda: _run(reader, endless))
    while not running.done():
        reader.interrupt()
        await asyncio.sleep(0.01)
    assert "interrupted" in await running
    reader.close()


def _run(reader: LedgerReader, statement: str) -> str:
    try:
        reader._connection.execute(statement).fetchall()  # type: ignore[attr-defined]
    except Exception as error:
        return str(error)
    return ""
