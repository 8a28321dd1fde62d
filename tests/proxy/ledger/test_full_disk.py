"""A full journal disk loses no row that the database could store: loaded files are deleted, new ones are begun, and
rows that do not fit on the disk go to the spare folder, in order.
"""

import errno
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from typing_extensions import override

from proxy.ledger import journal as journal_module
from proxy.ledger import journal_files as files_module
from proxy.ledger.journal import LEAVE_EVERY, SPARE_SECONDS, Journal
from proxy.ledger.journal_files import UNREADABLE, journal_files, make_spare, spare_folder
from proxy.ledger.journal_loader import JournalLoader
from proxy.ledger.ledger_row import JournalRow
from proxy.ledger.ledger_settings import LedgerState
from tests.proxy.ledger.kit import KEEP, FullDisk, record
from tests.proxy.ledger.test_journal_loader import Memory

TICK: Final = 0.1
LOADED_EVERY: Final = 10
"""Ticks between two passes of the loader."""


class InOrder(Memory):
    """A database that records the numbers of rows in the order of their arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[int] = []

    @override
    def add(self, rows: Sequence[JournalRow]) -> int:
        new = [each.sequence for each in rows if each.row.id not in self.rows]
        stored = super().add(rows)
        self.order += new
        return stored


@dataclass
class Rig:
    """A journal, its loader, and a disk, in ticks of their own clock."""

    folder: Path
    disk: FullDisk
    spare: Callable[[Path], Path] | None = make_spare
    now: float = 0.0
    asked: int = 0
    state: LedgerState = field(default_factory=LedgerState)
    loads: LedgerState = field(default_factory=LedgerState)
    store: InOrder = field(default_factory=InOrder)
    journal: Journal = field(init=False)
    loader: JournalLoader = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder, self.state, clock=lambda: self.now, spare=self.spare)
        self.loader = JournalLoader(self.folder, KEEP, self.loads, lambda took: None)

    def tick(self, rows: int, ticks: int = 1) -> None:
        for _ in range(ticks):
            self.now += TICK
            for _ in range(rows):
                self.asked = self.journal.append(record())
            self.journal.write()
            if round(self.now / TICK) % LOADED_EVERY == 0:
                self.loader.load(self.store)

    def end(self) -> None:
        self.journal.close()
        self.loader.load(self.store)

    def assert_all_came(self) -> None:
        assert self.store.order == list(range(1, self.asked + 1))
        assert (self.state.dropped, self.loads.unreadable) == (0, 0)
        assert not (self.folder / UNREADABLE).exists()
        assert journal_files(self.folder) == []
        assert not spare_folder(self.folder).exists()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of journals, with space for its spare folder."""
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(files_module, "SHARED_MEMORY", memory)
    made = tmp_path / "journals"
    made.mkdir()
    return made


@pytest.fixture
def rig(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig(folder, FullDisk(folder, 64 * 1024))
    monkeypatch.setattr(os, "write", made.disk.write)
    return made


def test_a_disk_that_only_loaded_rows_fill_takes_rows_again_once_they_are_loaded(rig: Rig) -> None:
    rig.tick(10, 400)  # 13 times the capacity of the disk
    assert rig.state.write_errors > 10
    rig.tick(0, 2 * LOADED_EVERY)
    assert rig.journal.waiting == 0
    assert rig.state.trouble is None
    assert not spare_folder(rig.folder).exists()
    rig.end()
    rig.assert_all_came()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_others_hold_delays_no_row(rig: Rig, error: int) -> None:
    rig.disk.error = error
    rig.tick(10, 20)
    rig.disk.held = rig.disk.capacity
    rig.tick(10, 400)
    assert rig.journal.waiting <= LOADED_EVERY * 10
    assert "cannot be written" in str(rig.state.trouble)
    assert len(rig.store.order) >= rig.asked - 2 * LOADED_EVERY * 10
    rig.disk.held = 0
    rig.tick(10, round((SPARE_SECONDS + 1) / TICK))
    rig.tick(0, 2 * LOADED_EVERY)
    assert rig.state.trouble is None
    assert all(each.path.parent == rig.folder for each in journal_files(rig.folder))
    rig.end()
    rig.assert_all_came()


@pytest.mark.parametrize("held", [0, 32 * 1024, 64 * 1024])
def test_rows_in_memory_go_to_the_loader_at_the_end(rig: Rig, held: int) -> None:
    rig.disk.held = held
    for _ in range(1000):
        rig.asked = rig.journal.append(record())
    rig.end()
    rig.assert_all_came()


def test_the_log_names_the_place_in_memory_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    rig.disk.held = rig.disk.capacity
    rig.tick(1, 300)
    said = [each for each in caplog.messages if "in memory" in each and "are written to" in each]
    assert said == [f"ledger: rows are written to {spare_folder(rig.folder)}, in memory, until the disk has room"]
    rig.disk.held = 0
    rig.tick(1, 200)
    assert "is written again" in caplog.messages[-1]
    assert caplog.records[-1].levelname == "INFO"


def test_a_file_is_left_on_a_full_disk_once_a_second_at_most(rig: Rig) -> None:
    rig.store.away = True
    rig.disk.capacity = 200
    for _ in range(20):
        rig.now += TICK
        rig.disk.capacity += 1
        rig.journal.append(record())
        rig.journal.write()
    assert len(journal_files(rig.folder)) <= 2 + round(20 * TICK / LEAVE_EVERY)


def test_what_the_spare_folder_may_hold_is_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "SPARE_BYTES", 10_000)
    monkeypatch.setattr(journal_module, "WRITE_BYTES", 1_000)
    rig.disk.held = rig.disk.capacity
    rig.loader.load = lambda store: 0  # type: ignore[method-assign]  # the database is away
    for _ in range(1000):
        rig.tick(1)
    spare = sum(each.path.stat().st_size for each in journal_files(rig.folder) if each.path.parent != rig.folder)
    assert 10_000 < spare < 40_000  # a new file is begun within the bound
    assert rig.journal.waiting + rig.state.written == 1000


@pytest.mark.parametrize("how", ["a link", "open to others", "a file"])
def test_a_spare_folder_that_may_be_another_s_is_not_used(rig: Rig, how: str) -> None:
    spare = spare_folder(rig.folder)
    elsewhere = rig.folder.parent / "elsewhere"
    elsewhere.mkdir()
    match how:
        case "a link":
            spare.symlink_to(elsewhere)
        case "open to others":
            spare.mkdir()
            spare.chmod(0o777)
        case _:
            spare.write_bytes(b"")
    (elsewhere / "ledger.x.1.jsonl").write_bytes(b"nothing of ours\n")
    with pytest.raises(PermissionError, match="not this user's alone"):
        make_spare(rig.folder)
    assert journal_files(rig.folder) == []


@pytest.mark.smoke
def test_a_process_without_requests_leaves_its_file_to_the_loader(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "IDLE_SECONDS", 0.01)
    journal, loads = Journal(folder), JournalLoader(folder, KEEP, LedgerState(), lambda took: None)
    journal.start()
    store = Memory()
    try:
        for count in (1, 2):
            journal.append(record())
            while len(store.rows) < count or journal_files(folder):
                loads.load(store)
    finally:
        journal.close()
    assert store.numbers == [1, 2]
