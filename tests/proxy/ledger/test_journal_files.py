"""The journal's files: their names, their order, and the locks that show which processes have ended."""

import os
from pathlib import Path

import pytest

from proxy.ledger.journal_files import (
    create_locked,
    fresh_process_name,
    has_finished_file,
    journal_bytes,
    journal_file,
    journal_files,
    lock_file,
    try_lock,
)


def test_files_of_a_process_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("ledger.b.2.jsonl", "ledger.b.10.jsonl", "ledger.a.3.jsonl", "loader.lock", "ledger.a.x.jsonl", "x"):
        (tmp_path / name).write_bytes(b"12")
    assert [(each.process, each.number) for each in journal_files(tmp_path)] == [("a", 3), ("b", 2), ("b", 10)]
    assert journal_bytes(tmp_path) == 6
    assert journal_files(tmp_path / "none") == []


def test_a_file_that_exists_is_never_written_by_another_process(tmp_path: Path) -> None:
    (tmp_path / "ledger.a.1.jsonl").write_bytes(b"")
    descriptor, number = create_locked(tmp_path, "a", 1)
    assert number == 2
    other = os.open(tmp_path / "ledger.a.2.jsonl", os.O_RDONLY)
    assert not try_lock(other)
    os.close(descriptor)
    assert try_lock(other)
    os.close(other)


def test_one_holds_a_lock_at_a_time(tmp_path: Path) -> None:
    first = lock_file(tmp_path / "lock")
    assert first is not None
    assert lock_file(tmp_path / "lock") is None
    os.close(first)
    again = lock_file(tmp_path / "lock")
    assert again is not None
    os.close(again)


def test_only_plain_names_name_files(tmp_path: Path) -> None:
    assert journal_file(tmp_path, fresh_process_name(), 1).path.parent == tmp_path
    for name in ("", "../x", "a/b", "a.b", "x" * 65):
        with pytest.raises(ValueError, match="cannot name"):
            journal_file(tmp_path, name, 1)


def test_processes_have_names_of_their_own() -> None:
    assert len({fresh_process_name() for _ in range(100)}) == 100


def test_what_ended_processes_left_is_told_from_what_others_still_write(tmp_path: Path) -> None:
    assert not has_finished_file(tmp_path / "none")
    descriptor, _ = create_locked(tmp_path, "a", 1)
    assert not has_finished_file(tmp_path)
    os.close(descriptor)
    assert has_finished_file(tmp_path)
    descriptor = os.open(tmp_path / "ledger.a.1.jsonl", os.O_RDONLY)
    assert try_lock(descriptor)
    os.close(descriptor)
