"""The ledger in a serving process: which rows it writes, and the spending that it reads back."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from config.sections.log_section import LogSection
from providers.completion import Usage
from providers.pricing import Price
from proxy.accounting import ledger_service as module
from proxy.accounting import loader_process
from proxy.accounting.ledger_reader import SharedLedgerReader
from proxy.accounting.ledger_service import LedgerService, settings_of
from proxy.ledger.journal import Journal
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState
from proxy.ledger.spent_totals import SpentTotals, TotalsUpdate
from proxy.limits.limit import Period, Unit
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.reservation import Reservation
from proxy.limits.spending import SpendingCounter
from proxy.loop_clock import loop_clock
from proxy.process.load_table import LoadedTable
from proxy.process.request_observer import RequestObserver
from proxy.request_outcomes import CacheUse
from proxy.request_record import UNKNOWN_TEAM, Outcome, RequestRecord
from proxy.telemetry.log_writer import LineWriter
from proxy.telemetry.metrics import Metrics
from tests.proxy.accounting.kit import ledger_threads, spent, sums, table
from tests.proxy.ledger.kit import record
from tests.support.waiting import until

pytestmark = pytest.mark.processes


TEAM = "team search"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_EVERY", 0.02)
    # The loader runs at a low priority: on a busy machine its last steps take seconds.
    monkeypatch.setattr(loader_process, "END_SLACK", 60.0)


def service(made: LoadedTable) -> tuple[LedgerService, LimitRegistry]:
    """Return the ledger of a process, and the budgets that it keeps up to date."""
    settings = settings_of(made.loaded)
    assert settings is not None
    registry = LimitRegistry(loop_clock(), time.time)
    registry.use(made.snapshot.scopes, made.snapshot.budgets, made.snapshot.zone, 0.0)
    ledger = LedgerService(settings, LedgerState(), registry)
    ledger.use(made.snapshot)
    return ledger, registry


def budget_spent(registry: LimitRegistry) -> bool:
    """Return whether the team's budget refuses a request without tokens."""
    outcome = registry.admit((TEAM,), 1, 1_000_000, loop_clock()(), time.time())
    if isinstance(outcome, Reservation):
        outcome.release()
        return False
    return True


def loading(settings: LedgerSettings | None, state: LedgerState) -> AbstractAsyncContextManager[None]:
    return loader_process.loading(settings, state, "json")


@asynccontextmanager
async def reading(ledger: LedgerService) -> AsyncIterator[None]:
    ledger.start()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(ledger.run())
        yield
        running.cancel()
    await ledger.aclose()


def test_a_table_without_a_ledger_has_no_settings(tmp_path: Path) -> None:
    assert settings_of(table(tmp_path, "{ledger: 'off'}"[1:-1]).loaded) is None


async def written(folder: Path, rows: Iterable[RequestRecord]) -> list[dict[str, object]]:
    """Return the ledger's rows, by column, after a gateway with teams has been given `rows`."""
    made = table(folder)
    ledger, _ = service(made)
    async with loading(settings_of(made.loaded), ledger.state):
        ledger.start()
        for row in rows:
            ledger.append(row)
        await ledger.aclose()
    with closing(sqlite3.connect(folder / "ledger.db")) as link:
        link.row_factory = sqlite3.Row
        return [dict(row) for row in link.execute("SELECT * FROM request")]


async def test_what_asked_no_deployment_and_was_answered_has_no_row(tmp_path: Path) -> None:
    outcomes: tuple[Outcome, ...] = ("ok", "limited", "client_error")
    rows = [replace(spent(100), attempts=[], outcome=outcome) for outcome in outcomes]
    assert {row["outcome"] for row in await written(tmp_path, rows)} == {"limited", "client_error"}


async def test_an_answer_out_of_the_cache_has_a_row_without_a_deployment_tokens_or_cost(tmp_path: Path) -> None:
    nothing, free = Usage(0, 0), Price(0.0, 0.0)
    given = replace(spent(100), attempts=[], cache=CacheUse("hit"), billed=nothing, price=free)
    (row,) = await written(tmp_path, [given])
    assert (row["deployment"], row["tokens_in"], row["tokens_out"], row["cost"]) == (None, 0, 0, 0)


async def test_what_no_deployment_would_be_asked_for_has_no_row_either_where_it_is_refused(tmp_path: Path) -> None:
    refused = replace(spent(100), attempts=[], outcome="client_error")
    rows = [replace(refused, aside=True, asked="list"), replace(refused, asked="text")]
    assert [row["asked"] for row in await written(tmp_path, rows)] == ["text"]


@pytest.mark.smoke
async def test_rows_of_known_teams_are_written_with_their_tags_and_others_are_not(tmp_path: Path) -> None:
    tags = {"cost_center": "4711"}
    (row,) = await written(tmp_path, (replace(spent(100), tags=tags), replace(record(UNKNOWN_TEAM), tags=tags)))
    assert (row["team"], row["tags"]) == ("search", '{"cost_center":"4711"}')


async def test_each_row_has_the_tags_that_its_request_began_with(tmp_path: Path) -> None:
    one, two = {"x": "one"}, {"x": "two"}
    gone = replace(record("gone"), tags=two)
    rows = [*(replace(spent(100), tags=tags) for tags in (one, two, one, {}, None)), gone]
    texts = [row["tags"] for row in await written(tmp_path, rows)]
    assert texts == ['{"x":"one"}', '{"x":"two"}', '{"x":"one"}', None, None, '{"x":"two"}']


async def test_what_another_process_wrote_counts_towards_the_budget(tmp_path: Path) -> None:
    made = table(tmp_path)
    ledger, registry = service(made)
    settings = settings_of(made.loaded)
    assert settings is not None
    other = Journal(settings.journals)
    async with loading(settings, ledger.state), reading(ledger):
        assert not budget_spent(registry)
        other.append(spent(70_000))
        other.close()
        await until(lambda: budget_spent(registry))
    assert sums(settings)[0] == 1


async def test_what_is_spent_is_known_after_a_restart_and_counted_once(tmp_path: Path) -> None:
    made = table(tmp_path)
    settings = settings_of(made.loaded)
    assert settings is not None
    for _ in range(2):
        ledger, registry = service(made)
        async with loading(settings, ledger.state), reading(ledger):
            await until(lambda ledger=ledger: ledger._read)  # type: ignore[misc]  # bound at once
            assert not budget_spent(registry)
            ledger.append(spent(20_000))
    ledger, registry = service(made)
    async with loading(settings, ledger.state), reading(ledger):
        await until(lambda: ledger._read)
        assert not budget_spent(registry)
        assert sums(settings) == (2, 2 * (20_000 * 150 + 10 * 600))


async def test_what_a_killed_process_left_is_known_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CATCH_UP", 30.0)  # on a busy machine a process may take seconds to start
    made = table(tmp_path)
    settings = settings_of(made.loaded)
    assert settings is not None
    left = Journal(settings.journals, LedgerState())
    left.start()
    left.append(spent(70_000), None, None)
    left.close()
    ledger, registry = service(made)
    async with loading(settings, ledger.state):
        await ledger.catch_up()
        assert budget_spent(registry)
    await ledger.aclose()


async def test_a_start_waits_for_a_ledger_that_nobody_loads_no_longer_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CATCH_UP", 0.2)
    made = table(tmp_path)
    settings = settings_of(made.loaded)
    assert settings is not None
    settings.journals.mkdir(parents=True)
    (settings.journals / "ledger.a.1.jsonl").write_bytes(b"{}\n")
    ledger, _ = service(made)
    await ledger.catch_up()
    assert not ledger._read
    await ledger.aclose()


async def test_budgets_refuse_what_nobody_has_read_only_where_the_table_says_so(tmp_path: Path) -> None:
    lenient, _ = service(table(tmp_path))
    assert not lenient.unread()
    made = table(tmp_path, "ledger: {unread: reject}")
    strict, _ = service(made)
    assert strict.unread()
    async with loading(settings_of(made.loaded), strict.state), reading(strict):
        await until(lambda: not strict.unread())


async def test_a_ledger_that_is_not_made_yet_is_not_spoken_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = table(tmp_path)
    ledger, _ = service(made)
    async with reading(ledger), loading(settings_of(made.loaded), LedgerState()):
        await until(lambda: ledger._read)
    assert caplog.messages == []


async def test_a_ledger_that_cannot_be_read_is_said_once_and_so_is_its_return(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAKING_SECONDS", 0.0)
    made = table(tmp_path)
    ledger, _ = service(made)
    settings = settings_of(made.loaded)
    with caplog.at_level(logging.INFO, "dragoman"):
        async with reading(ledger):
            await until(lambda: len(caplog.messages) >= 1)
            await asyncio.sleep(0.1)
            async with loading(settings, LedgerState()):
                await until(lambda: ledger._read)
    said = [message for message in caplog.messages if message.startswith("ledger: the spending")]
    # Between the creation of the file and its first table it looks like an empty ledger.
    assert sum("there is no ledger" in message for message in said) == 1
    assert len(said) in {2, 3}
    assert said[-1] == "ledger: the spending is read again"


async def test_a_fault_while_reading_ends_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(tmp_path)
    ledger, _ = service(made)
    tries = []

    def broken(self: object, reader: object, periods: object, now: int, users: int | None) -> None:
        tries.append(now)
        if len(tries) < 4:
            raise ZeroDivisionError
        raise LedgerError("away")

    monkeypatch.setattr(SpentTotals, "refresh", broken)
    async with loading(settings_of(made.loaded), ledger.state), reading(ledger):
        await until(lambda: len(tries) > 6)
    assert [each.exc_text is not None for each in caplog.records if each.levelno == logging.ERROR] == [True]


async def test_rows_of_a_second_that_is_half_loaded_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = table(tmp_path)
    ledger, registry = service(made)
    now = 0.0
    monkeypatch.setattr(ledger, "_clock", lambda: now)
    for _ in range(300):
        now += 1 / 300
        held = registry.admit((TEAM,), 1, 1000, loop_clock()(), time.time())
        assert isinstance(held, Reservation)
        ledger.settling()
        held.settle(1, 1000)
        ledger.append(spent(1))

    async def used(loaded: int) -> int:
        """Return the budget's spending if `loaded` rows of this process are in the ledger."""

        async def read(self: object, work: object, longest: float | None) -> TotalsUpdate[Period]:
            sums = {TEAM: (loaded, loaded, 1000 * loaded)}
            return TotalsUpdate(
                dict.fromkeys(registry.periods(time.time()), sums), {ledger._journal.process: loaded}, 1
            )

        monkeypatch.setattr(SharedLedgerReader, "read", read)
        await ledger._read_spent()
        (found,) = (view.used for view in registry.views(loop_clock()(), time.time()) if view.unit is Unit.USD)
        return found

    assert [await used(loaded) for loaded in (170, 290, 300)] == [300_000] * 3


async def test_a_request_counts_until_its_row_is_in_the_ledger_though_it_is_reported_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(tmp_path)
    ledger, registry = service(made)
    now, waiting = 0.0, list[Callable[[], None]]()
    monkeypatch.setattr(ledger, "_clock", lambda: now)
    lines = LineWriter(BytesIO(), print)
    observer = RequestObserver(Metrics(), lines, LogSection(), ledger, soon=waiting.append)

    def end_one() -> SpendingCounter:
        held = registry.admit((TEAM,), 1, 1000, loop_clock()(), time.time())
        assert isinstance(held, Reservation)
        ledger.settling()
        held.settle(1, 1000)
        observer.finished(spent(1))
        (counter,) = held.meters.counters
        assert isinstance(counter, SpendingCounter)
        return counter

    async def known(loaded: int) -> int:
        """Return the spending that this process knows, with its own spending that is in no ledger yet, if `loaded` of
        its rows are in the ledger.
        """

        async def read(self: object, work: object, longest: float | None) -> TotalsUpdate[Period]:
            sums = {TEAM: (loaded, loaded, 1000 * loaded)}
            return TotalsUpdate(
                dict.fromkeys(registry.periods(time.time()), sums), {ledger._journal.process: loaded}, 1
            )

        monkeypatch.setattr(SharedLedgerReader, "read", read)
        await ledger._read_spent()
        return 1000 * loaded + counter.own

    counter = end_one()
    assert await known(0) == 1000  # all written rows are in the ledger
    end_one()
    now += 1.0
    end_one()  # another tick begins before the request of the previous one is reported
    waiting.pop()()
    # A tick counts as unloaded until all of its rows are loaded: an overestimate is safer than an underestimate.
    assert [await known(loaded) for loaded in (1, 2, 3)] == [4000, 3000, 3000]
    lines.close()


@pytest.mark.smoke
async def test_nothing_is_left_after_the_end(tmp_path: Path) -> None:
    before = ledger_threads()
    made = table(tmp_path)
    ledger, _ = service(made)
    async with loading(settings_of(made.loaded), ledger.state), reading(ledger):
        assert len(ledger_threads()) == len(before) + 1
    assert ledger_threads() == before
