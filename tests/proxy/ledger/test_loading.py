"""The loading thread: which one leads, and its behaviour while the database is unreachable and at the end."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from proxy.ledger import loading as loading_module
from proxy.ledger.journal import Journal
from proxy.ledger.journal_files import LOADER_LOCK, journal_files, lock_file
from proxy.ledger.ledger_row import JournalRow
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings
from proxy.ledger.ledger_store import LedgerStore
from proxy.ledger.loading import LedgerLoading
from proxy.ledger.open_ledger import open_reader, open_store
from proxy.ledger.postgres_store import PostgresStore
from tests.proxy.ledger.kit import ledger_at, record, sqlite
from tests.support.postgres import RealPostgres
from tests.support.silent_relay import silent_relay
from tests.support.waiting import until


def rows_in(settings: LedgerSettings) -> int:
    """Return the team's requests, by the sums that budgets read."""
    reader = open_reader(settings)
    try:
        return sum(each.requests for each in reader.spent_since(0).spent if each.scope == "team search")
    finally:
        reader.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_module, "LOAD_EVERY", 0.02)
    monkeypatch.setattr(loading_module, "FIRST_WAIT", 0.02)
    monkeypatch.setattr(loading_module, "LONGEST_WAIT", 0.05)


@pytest.mark.smoke
async def test_rows_reach_the_database_while_the_gateway_runs_and_all_at_its_end(settings: LedgerSettings) -> None:
    journal, loading = Journal(settings.journals), LedgerLoading(settings)
    journal.start()
    loading.start()
    for _ in range(50):
        journal.append(record())
    await until(lambda: loading.state.loaded == 50)
    for _ in range(70):
        journal.append(record())
    journal.close()
    loading.stop()
    assert loading.state.loaded == 120
    assert rows_in(settings) == 120
    assert journal_files(settings.journals) == []


@pytest.mark.smoke
async def test_one_process_of_a_folder_loads_and_another_follows_when_it_ends(settings: LedgerSettings) -> None:
    journal = Journal(settings.journals)
    first = LedgerLoading(settings)
    first.start()
    await until(lambda: first.state.loading)
    second = LedgerLoading(settings)
    second.start()
    journal.append(record())
    journal.write()
    await until(lambda: first.state.loaded == 1)
    assert not second.state.loading
    first.stop()
    await until(lambda: second.state.loading)
    journal.append(record())
    journal.close()
    second.stop()
    assert second.state.loaded == 1
    assert rows_in(settings) == 2


async def test_a_database_that_is_away_is_said_once_and_loses_nothing(
    postgres: RealPostgres, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    settings = ledger_at(postgres.fresh_database(), 400 * 86400.0, "UTC", tmp_path)
    journal, loading = Journal(settings.journals), LedgerLoading(settings)
    loading.start()
    journal.append(record())
    journal.write()
    await until(lambda: loading.state.loaded == 1)
    postgres.stop()
    try:
        for _ in range(30):
            journal.append(record())
        journal.write()
        await until(lambda: loading.state.load_errors >= 5)
        assert loading.state.trouble is not None
    finally:
        postgres.start()
    await until(lambda: loading.state.loaded == 31)
    await until(lambda: loading.state.trouble is None)
    journal.close()
    loading.stop()
    assert rows_in(settings) == 31
    assert "can be used again" in caplog.messages[-1]
    assert caplog.records[-1].levelname == "INFO"
    assert len([each for each in caplog.records if each.levelname == "ERROR"]) == 1
    assert "canary-postgres-password" not in caplog.text


async def test_a_database_that_is_away_at_the_start_is_waited_for(tmp_path: Path) -> None:
    settings = sqlite(tmp_path)
    tries: list[int] = []

    def opened(wanted: LedgerSettings) -> LedgerStore:
        tries.append(1)
        if len(tries) < 4:
            raise LedgerError("no ledger today")
        return open_store(wanted)

    journal, loading = Journal(settings.journals), LedgerLoading(settings, opened=opened)
    loading.start()
    journal.append(record())
    journal.close()
    await until(lambda: loading.state.loaded == 1)
    loading.stop()
    assert len(tries) == 4
    assert loading.state.trouble is None


def test_at_the_end_a_database_that_hangs_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = sqlite(tmp_path)
    released = threading.Event()

    def hanging(wanted: LedgerSettings) -> LedgerStore:
        released.wait()
        raise LedgerError("never")

    journal, loading = Journal(settings.journals), LedgerLoading(settings, opened=hanging)
    journal.append(record())
    journal.close()
    loading.start()
    loading.stop(0.05)
    assert "not all is loaded" in caplog.text
    assert len(journal_files(settings.journals)) == 1
    released.set()
    loading.stop(5)
    again = LedgerLoading(settings)
    again.start()
    again.stop()
    assert rows_in(settings) == 1


async def test_a_connection_that_falls_silent_is_given_up_and_another_one_loads(
    postgres: RealPostgres, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for words in (b"BEGIN", b"UPDATE dragoman.meta", b"COPY incoming", b"INTO dragoman.spend", b"COMMIT"):
        with silent_relay(postgres.port) as relay:
            url = postgres.fresh_database().replace(f":{postgres.port}/", f":{relay.port}/")
            settings = ledger_at(url, 400 * 86400.0, "UTC", tmp_path / words.hex())
            journal = Journal(settings.journals)
            loading = LedgerLoading(settings, opened=lambda where: PostgresStore(where, 0.3))
            loading.start()
            journal.append(record())
            journal.write()
            await until(lambda loading=loading: loading.state.loaded == 1)  # type: ignore[misc]  # bound at once
            relay.silence_at(words)
            journal.append(record())
            journal.write()
            await until(lambda loading=loading: loading.state.loaded == 2 and not loading.state.trouble)  # type: ignore[misc]
            assert relay.silent.is_set()
            assert loading.state.load_errors >= 1
            assert "cannot be used: no answer within 0.3 s" in caplog.text
            caplog.clear()
            journal.close()
            loading.stop()
            assert rows_in(settings) == 2


class Stuck:
    """A database that accepts a statement and does not respond."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def add(self, rows: Sequence[JournalRow]) -> int:
        self.released.wait()
        return len(rows)

    def tidy(self, now: int) -> None: ...

    def close(self) -> None: ...


async def test_what_waits_grows_older_while_a_statement_is_under_way(tmp_path: Path) -> None:
    store = Stuck()
    settings = sqlite(tmp_path)
    journal, loading = Journal(settings.journals), LedgerLoading(settings, opened=lambda where: store)
    journal.append(record())
    journal.close()
    loading.start()
    ages: list[float] = []

    def grown() -> bool:
        loading.look()
        if loading.state.behind > max(ages, default=0.0):
            ages.append(loading.state.behind)
        return len(ages) >= 3

    await until(grown)
    store.released.set()
    await until(lambda: loading.state.loaded == 1)
    loading.stop()
    loading.look()
    assert loading.state.behind == 0.0


def test_at_the_end_a_database_that_refuses_leaves_the_journals_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refusing(wanted: LedgerSettings) -> LedgerStore:
        raise LedgerError("never")

    settings = sqlite(tmp_path)
    for rows, said in ((0, False), (1, True)):
        caplog.clear()
        journal, loading = Journal(settings.journals), LedgerLoading(settings, opened=refusing)
        for _ in range(rows):
            journal.append(record())
        journal.close()
        loading.start()
        loading.stop()
        assert ("not all is loaded" in caplog.text) == said


def test_what_never_began_ends_at_once(tmp_path: Path) -> None:
    LedgerLoading(sqlite(tmp_path)).stop()
    Journal(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "ledger.db.journal").write_bytes(b"")
    loading = LedgerLoading(sqlite(tmp_path))
    loading.start()
    await until(lambda: loading.state.load_errors >= 2)
    assert "cannot be loaded" in (loading.state.trouble or "")
    loading.stop()


# Processes that are killed -------------------------------------------------------------------------------------------

WRITER = """
import sys, time
from pathlib import Path
from proxy.ledger.journal import Journal
from tests.proxy.ledger.kit import record
journal = Journal(Path(sys.argv[1]), process=sys.argv[2])
journal.start()
made = record()
said = 0
while True:
    for _ in range(10):
        journal.append(made)
    time.sleep(0.002)
    if journal.state.written > said:
        said = journal.state.written
        print(said, flush=True)
"""

LOADER = """
import sys, time
from pathlib import Path
from proxy.ledger import loading
from tests.proxy.ledger.kit import ledger_at
loading.LOAD_EVERY = 0.005
LedgerLoading = loading.LedgerLoading
made = LedgerLoading(ledger_at(sys.argv[1], 400 * 86400.0, "UTC", Path(sys.argv[2])))
made.start()
print("up", flush=True)
time.sleep(3600)
"""


def started(code: str, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE)


def killed(process: "subprocess.Popen[bytes]") -> list[bytes]:
    """Kill the process at once, and return its remaining output."""
    process.send_signal(signal.SIGKILL)
    assert process.stdout is not None
    said = process.stdout.read().splitlines()
    process.stdout.close()
    process.wait()
    return said


def test_writers_and_loaders_that_are_killed_at_any_moment_lose_and_double_nothing(settings: LedgerSettings) -> None:
    """Every row that a writer reported as written is in the database once, and no further row is there twice."""
    url = settings.url or f"sqlite:{settings.file}"
    folder = str(settings.journals.parent)
    seed = os.getpid()
    written: dict[str, int] = {}
    for turn in range(2):
        names = [f"writer-{turn}-{number}" for number in range(2)]
        writers = {name: started(WRITER, str(settings.journals), name) for name in names}
        for part in range(2):
            loader = started(LOADER, url, folder)
            assert loader.stdout is not None
            loader.stdout.readline()
            time.sleep(((seed + 7 * turn + 3 * part) % 10) * 0.02)
            killed(loader)
        for name, writer in writers.items():
            assert writer.stdout is not None
            first = writer.stdout.readline()  # the line may not be there yet on a slow machine
            written[name] = int([first, *killed(writer)][-1])
    last = LedgerLoading(settings)
    last.start()
    last.stop(60)
    reader = open_reader(settings)
    loaded = reader.spent_since(0).loaded
    reader.close()
    assert set(loaded) == set(written)
    assert all(loaded[name] >= written[name] for name in written)
    assert rows_in(settings) == sum(loaded.values())
    assert journal_files(settings.journals) == []


def test_a_killed_loader_leaves_its_lock(tmp_path: Path) -> None:
    settings = sqlite(tmp_path)
    loader = started(LOADER, f"sqlite:{settings.file}", str(tmp_path))
    lock = settings.journals / LOADER_LOCK
    while not lock.exists():
        time.sleep(0.01)
    killed(loader)
    free = lock_file(lock)
    assert free is not None
    os.close(free)


async def test_a_fault_of_ours_is_logged_and_stops_no_thread(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    faults = [ZeroDivisionError, ZeroDivisionError]

    def opened(settings: LedgerSettings) -> LedgerStore:
        if faults:
            raise faults.pop()
        return open_store(settings)

    settings = sqlite(tmp_path)
    journal, loading = Journal(settings.journals), LedgerLoading(settings, opened=opened)
    journal.append(record())
    journal.close()
    loading.start()
    await until(lambda: loading.state.loaded == 1 and loading.state.trouble is None)
    loading.stop()
    assert sum(each.exc_info is not None for each in caplog.records) == 1
