"""The shared ledger reader: it uses one thread at a time, cuts off slow reads, and can always be closed."""

import asyncio
import gc
import threading
from pathlib import Path
from typing import cast

import pytest

from proxy.accounting import ledger_reader
from proxy.accounting.ledger_reader import MAX_ABANDONED, SharedLedgerReader
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings
from proxy.ledger.ledger_store import LedgerReader
from proxy.ledger.sqlite_store import SqliteStore
from tests.proxy.ledger.kit import journaled, sqlite
from tests.support.nightly import by_day
from tests.support.waiting import until


@pytest.fixture
def settings(tmp_path: Path) -> LedgerSettings:
    """Return the settings of a ledger with two requests."""
    made = sqlite(tmp_path)
    store = SqliteStore(made)
    store.add([journaled(1), journaled(2)])
    store.close()
    return made


def endless(reader: LedgerReader, begun: threading.Event) -> None:
    """Read until interrupted."""
    while True:
        reader.newest()
        begun.set()


async def test_what_takes_too_long_is_interrupted_and_the_next_reads_on(
    settings: LedgerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_reader, "END_TIMEOUT", 60.0)  # a busy machine may not run the thread for long
    turns = SharedLedgerReader(settings)
    with pytest.raises(TimeoutError):
        await turns.read(lambda reader: endless(reader, threading.Event()), 0.05)
    assert not turns.busy
    assert await turns.read(lambda reader: reader.spent_since(0).loaded) == {"g1": 2}
    await turns.aclose()


async def test_who_leaves_leaves_no_reading_thread(settings: LedgerSettings, caplog: pytest.LogCaptureFixture) -> None:
    """The test repeats, since closing a file under a reading thread ends the process only now and then."""
    reading: asyncio.Task[object] | None = None
    for _ in range(by_day(5, 20)):
        turns, begun = SharedLedgerReader(settings), threading.Event()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(turns.read(lambda reader, begun=begun: endless(reader, begun)))  # type: ignore[misc]  # bound at once
            assert await asyncio.to_thread(begun.wait, 10)
            assert turns.busy
            reading.cancel()
        await turns.aclose()
    del reading
    gc.collect()
    assert caplog.messages == []  # asyncio logs no unretrieved exception


class Mute:
    """A reader whose database does not respond until it is released, even if it is interrupted."""

    def __init__(self) -> None:
        self.released, self.closed = threading.Event(), threading.Event()

    def newest(self) -> int | None:
        self.released.wait()
        raise LedgerError("gone")

    def writers(self, since: int) -> int:
        return 0

    def interrupt(self) -> None:
        self.released.wait()

    def close(self) -> None:
        self.closed.set()


@pytest.mark.smoke
async def test_a_database_that_does_not_answer_is_left_with_its_reader(
    settings: LedgerSettings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_reader, "END_TIMEOUT", 0.02)
    mute = [Mute() for _ in range(MAX_ABANDONED + 1)]
    opened = iter(mute)
    turns = SharedLedgerReader(settings, lambda where: cast(LedgerReader, next(opened)))
    for longest in (0.01,) * MAX_ABANDONED + (None,):  # the last one is not begun
        with pytest.raises(LedgerError, match="does not answer"):
            await turns.read(lambda reader: reader.newest(), longest)
        assert turns.silent
    await turns.aclose()  # waits for no reader
    assert not any(each.closed.is_set() for each in mute)
    for each in mute:
        each.released.set()
    await until(lambda: all(each.closed.is_set() for each in mute[:MAX_ABANDONED]))
    with pytest.raises(LedgerError, match="gone"):
        await turns.read(lambda reader: reader.newest())
    assert mute[-1].closed.is_set()
    assert not turns.silent
    gc.collect()
    assert caplog.messages == []


async def test_an_error_opens_the_database_anew(settings: LedgerSettings, tmp_path: Path) -> None:
    turns = SharedLedgerReader(settings)
    assert await turns.read(lambda reader: reader.newest()) is not None
    store = SqliteStore(settings)
    store._connection.execute("ALTER TABLE loaded RENAME TO gone")
    with pytest.raises(LedgerError, match="no such table"):
        await turns.read(lambda reader: reader.spent_since(0))
    store._connection.execute("ALTER TABLE gone RENAME TO loaded")
    store.close()
    assert (await turns.read(lambda reader: reader.spent_since(0))).loaded == {"g1": 2}
    await turns.aclose()


async def test_a_database_that_is_not_there_is_said_each_time(tmp_path: Path) -> None:
    turns = SharedLedgerReader(sqlite(tmp_path))
    for _ in range(2):
        with pytest.raises(LedgerError, match="there is no ledger"):
            await turns.read(lambda reader: reader.newest())
    await turns.aclose()
