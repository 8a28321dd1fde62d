"""Loading of journals: whole lines, once, whatever else is in the folder."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from proxy.ledger import journal_loader
from proxy.ledger.journal import FILE_BYTES, Journal
from proxy.ledger.journal_files import UNREADABLE, create_locked, has_finished_file, journal_file, journal_files
from proxy.ledger.journal_loader import JournalLoader, LoadingCancelledError
from proxy.ledger.ledger_row import JournalRow
from proxy.ledger.ledger_settings import LedgerError, LedgerState
from proxy.ledger.ledger_store import LedgerStore
from tests.proxy.ledger.kit import KEEP, NOON, line, record


class Memory:
    """A database that stores rows by their ids, and may be unreachable."""

    def __init__(self) -> None:
        self.rows: dict[bytes, JournalRow] = {}
        self.batches: list[int] = []
        self.away = False

    def add(self, rows: Sequence[JournalRow]) -> int:
        if self.away:
            raise LedgerError("away")
        before = len(self.rows)
        self.rows.update((each.row.id, each) for each in rows)
        self.batches.append(len(rows))
        return len(self.rows) - before

    def tidy(self, now: int) -> None:
        self.batches.clear()

    def close(self) -> None:
        self.away = True

    @property
    def numbers(self) -> list[int]:
        return sorted(each.sequence for each in self.rows.values())


def loader(folder: Path, state: LedgerState | None = None, now: float = NOON / 1000) -> JournalLoader:
    return JournalLoader(folder, KEEP, state or LedgerState(), lambda took: None, lambda: now)


def put(folder: Path, data: bytes, number: int = 1, process: str = "p") -> Path:
    path = journal_file(folder, process, number).path
    path.write_bytes(data)
    return path


def test_memory_is_a_store() -> None:
    store: LedgerStore = Memory()
    assert store.add([]) == 0


def test_finished_files_are_loaded_and_deleted(tmp_path: Path) -> None:
    put(tmp_path, line(1) + line(2))
    put(tmp_path, line(3), 2)
    put(tmp_path, line(1), 1, "other")
    memory, state = Memory(), LedgerState()
    assert loader(tmp_path, state).load(memory) == 4
    assert memory.numbers == [1, 1, 2, 3]
    assert {each.row.gateway for each in memory.rows.values()} == {"p", "other"}
    assert journal_files(tmp_path) == []
    assert (state.loaded, state.repeated, state.unreadable) == (4, 0, 0)


def test_a_finished_file_counts_as_left_behind_until_its_rows_are_stored(tmp_path: Path) -> None:
    class Looking(Memory):
        """Checks whether a finished file is left, before and after it stores rows."""

        def add(self, rows: Sequence[JournalRow]) -> int:
            seen.append(has_finished_file(tmp_path))
            found = super().add(rows)
            seen.append(has_finished_file(tmp_path))
            return found

    seen: list[bool] = []
    put(tmp_path, line(1) + line(2))
    assert loader(tmp_path).load(Looking()) == 2
    assert seen == [True, True]
    assert not has_finished_file(tmp_path)


def test_a_file_in_use_is_loaded_up_to_its_last_whole_line_and_stays(tmp_path: Path) -> None:
    descriptor, _ = create_locked(tmp_path, "p", 1)
    whole = line(2)
    memory, state = Memory(), LedgerState()
    loading = loader(tmp_path, state)
    os.write(descriptor, line(1) + whole[:50])
    assert loading.load(memory) == 1
    os.write(descriptor, whole[50:])
    assert loading.load(memory) == 1
    assert loading.load(memory) == 0
    assert len(journal_files(tmp_path)) == 1
    os.close(descriptor)
    loading.load(memory)
    assert journal_files(tmp_path) == []
    assert (memory.numbers, state.unreadable, state.repeated) == ([1, 2], 0, 0)


def test_a_loader_that_begins_anew_leaves_out_what_is_there(tmp_path: Path) -> None:
    descriptor, _ = create_locked(tmp_path, "p", 1)
    os.write(descriptor, line(1) + line(2))
    memory = Memory()
    loader(tmp_path).load(memory)
    os.write(descriptor, line(3))
    state = LedgerState()
    assert loader(tmp_path, state).load(memory) == 1
    assert (state.loaded, state.repeated) == (1, 2)
    os.close(descriptor)


def test_what_cannot_be_read_is_moved_aside_and_keeps_nothing_out(tmp_path: Path) -> None:
    half = line(9)[:40]
    put(tmp_path, half + b"\n" + line(1) + b"\xff\0\n\n[]\n" + line(2) + half)
    memory, state = Memory(), LedgerState()
    loader(tmp_path, state).load(memory)
    assert memory.numbers == [1, 2]
    assert state.unreadable == 4
    assert (tmp_path / UNREADABLE).read_bytes() == half + b"\n" + b"\xff\0\n[]\n" + half + b"\n"
    assert journal_files(tmp_path) == []


def test_lines_that_cannot_be_read_are_kept_up_to_a_size_and_counted_beyond_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_loader, "UNREADABLE_BYTES", 10)
    put(tmp_path, b"nonsense\n" * 100)
    state = LedgerState()
    loader(tmp_path, state).load(Memory())
    assert state.unreadable == 100
    assert (tmp_path / UNREADABLE).stat().st_size <= 20


def test_a_line_without_end_costs_bounded_memory_and_is_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_loader, "READ_BYTES", 1000)
    put(tmp_path, b"x" * 5500 + b"\n" + line(1) + line(2))
    memory, state = Memory(), LedgerState()
    loader(tmp_path, state).load(memory)
    assert memory.numbers == [1, 2]
    assert state.unreadable == 6
    assert journal_files(tmp_path) == []


def test_a_file_of_another_version_is_kept_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = put(tmp_path, line(1) + b'[2,"a",{}]\n' + line(3))
    put(tmp_path, line(4), 1, "other")
    memory, state = Memory(), LedgerState()
    loading = loader(tmp_path, state)
    for _ in range(3):
        loading.load(memory)
    assert memory.numbers == [1, 4]
    assert path.exists()
    assert state.foreign == 1
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    assert "version 2" in caplog.text


def test_rows_older_than_the_ledger_keeps_never_come_in(tmp_path: Path) -> None:
    now = NOON / 1000 + KEEP
    put(tmp_path, line(1, NOON - 1) + line(2, NOON + 1))
    memory, state = Memory(), LedgerState()
    loader(tmp_path, state, now).load(memory)
    assert (memory.numbers, state.expired) == ([2], 1)
    assert journal_files(tmp_path) == []


def test_while_the_database_is_away_files_stay_and_come_in_later(tmp_path: Path) -> None:
    put(tmp_path, line(1) + line(2))
    memory, state = Memory(), LedgerState()
    memory.away = True
    loading = loader(tmp_path, state, NOON / 1000 + 30)
    for _ in range(3):
        with pytest.raises(LedgerError):
            loading.load(memory)
    loading.measure()
    assert state.behind == 30.0
    assert state.journal_bytes == len(line(1) + line(2))
    memory.away = False
    assert loading.load(memory) == 2
    loading.measure()
    assert (state.behind, state.journal_bytes) == (0.0, 0)


def test_much_is_loaded_in_pieces_with_a_pause_after_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_loader, "READ_BYTES", 10_000)
    put(tmp_path, b"".join(line(number) for number in range(1, 501)))
    memory, pauses = Memory(), list[float]()
    loading = JournalLoader(tmp_path, KEEP, LedgerState(), pauses.append, lambda: NOON / 1000)
    assert loading.load(memory) == 500
    assert max(memory.batches) <= 10_000 // len(line(1))
    assert len(pauses) == len(memory.batches) - 1


def test_what_was_loaded_before_its_time_was_up_stays_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_loader, "READ_BYTES", 10_000)
    put(tmp_path, b"".join(line(number) for number in range(1, 201)))

    def stop(took: float) -> None:
        raise LoadingCancelledError

    memory, state = Memory(), LedgerState()
    loading = JournalLoader(tmp_path, KEEP, state, stop, lambda: NOON / 1000)
    for _ in range(2):
        with pytest.raises(LoadingCancelledError):
            loading.load(memory)
    assert state.loaded == len(memory.rows) == sum(memory.batches)
    assert 0 < state.loaded < 200


def test_a_journal_that_writes_while_it_is_loaded_loses_nothing(tmp_path: Path) -> None:
    """The loader takes the new file for a finished one because its process has not locked it yet. The process begins
    another.
    """
    memory = Memory()
    loading = JournalLoader(tmp_path, KEEP, LedgerState(), lambda took: None)
    journal = Journal(tmp_path)
    journal.start()
    sent = 0
    for _ in range(200):
        for _ in range(20):
            sent = journal.append(record())
        journal._size = FILE_BYTES
        loading.load(memory)
        time.sleep(0.001)
    journal.close()
    loading.load(memory)
    assert memory.numbers == list(range(1, sent + 1))
    assert journal_files(tmp_path) == []


def test_a_folder_that_cannot_take_the_lines_aside_does_not_stop_the_loading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / UNREADABLE).mkdir()
    put(tmp_path, b"nonsense\n" + line(1))
    memory = Memory()
    loader(tmp_path).load(memory)
    assert memory.numbers == [1]
    assert "cannot be stored either" in caplog.text
