"""The journal of a process: every row is on disk within a tick, and the losses of a failing disk."""

import errno
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxy.ledger import journal as journal_module
from proxy.ledger.journal import FILE_BYTES, FILE_SECONDS, MOST_ROWS, Journal
from proxy.ledger.journal_files import journal_files
from proxy.ledger.ledger_row import UnreadableLineError, read_line
from tests.proxy.ledger.kit import record, small_disk
from tests.support.waiting import until


def lines(folder: Path) -> list[bytes]:
    return [line for each in journal_files(folder) for line in each.path.read_bytes().splitlines()]


def numbers(folder: Path) -> list[int]:
    """Return the numbers of the readable rows."""
    found = []
    for line in lines(folder):
        try:
            found.append(read_line(line, "g").sequence)
        except UnreadableLineError:
            continue
    return found


@pytest.mark.smoke
async def test_rows_are_written_within_a_tick_and_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.start()
    try:
        assert [journal.append(record()) for _ in range(100)] == list(range(1, 101))
        await until(lambda: journal.state.written == 100)
        assert numbers(tmp_path) == list(range(1, 101))
    finally:
        journal.close()


@pytest.mark.smoke
def test_at_the_end_everything_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.start()
    for _ in range(5000):
        journal.append(record())
    journal.close()
    assert numbers(tmp_path) == list(range(1, 5001))
    assert journal.state.written == 5000


def test_all_rows_of_a_tick_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    real = os.write

    def counted(descriptor: int, data: bytes) -> int:
        writes.append(len(data))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", counted)
    journal = Journal(tmp_path)
    for _ in range(500):
        journal.append(record())
    journal.write()
    journal.write()
    assert len(writes) == 1
    journal.close()


def test_a_large_or_old_file_is_left_for_the_next_one(tmp_path: Path) -> None:
    now = 0.0
    journal = Journal(tmp_path, clock=lambda: now)
    journal._size = 0
    for age in (0.0, FILE_SECONDS):
        now = age
        journal.append(record())
        journal.write()
    assert [each.number for each in journal_files(tmp_path)] == [1, 2]
    journal._size = FILE_BYTES
    journal.append(record())
    journal.write()
    assert [each.number for each in journal_files(tmp_path)] == [1, 2, 3]
    journal.close()
    assert numbers(tmp_path) == [1, 2, 3]


def test_a_file_that_was_deleted_is_not_written_to(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "deep")
    journal.append(record())
    journal.write()
    for each in journal_files(tmp_path / "deep"):
        each.path.unlink()
    (tmp_path / "deep").rmdir()
    journal.append(record())
    journal.close()
    assert numbers(tmp_path / "deep") == [2]


def test_rows_that_wait_in_memory_are_told_with_the_age_of_the_oldest(tmp_path: Path) -> None:
    journal, began = Journal(tmp_path), time.time()
    for _ in range(3):
        journal.append(record())
    with small_disk(0):
        journal.write()
        assert journal.state.unwritten == 3
        assert 59 < journal.state.lag(began + 60) < 61
        journal.append(record())
        journal.write()
        assert journal.state.unwritten == 4
        assert 59 < journal.state.lag(began + 60) < 61
    journal.write()
    assert (journal.state.unwritten, journal.state.oldest, journal.state.lag(began + 60)) == (0, None, 0.0)
    journal.close()


@pytest.mark.parametrize("room", [1, 500, 1000, 1234, 4096])
def test_a_full_disk_loses_nothing_that_memory_holds(tmp_path: Path, room: int) -> None:
    """A partial line on the disk is cut off before the next line begins."""
    journal = Journal(tmp_path)
    for _ in range(100):
        journal.append(record())
    with small_disk(room):
        journal.write()
        assert journal.state.write_errors == 1
        assert journal.state.written + journal.waiting == 100
        journal.append(record())
        journal.write()
    assert "cannot be written" in str(journal.state.trouble)
    journal.append(record())
    journal.write()
    assert journal.state.trouble is None
    journal.close()
    assert numbers(tmp_path) == list(range(1, 103))
    assert journal.state.dropped == 0


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_line_that_was_cut_by_a_full_disk_is_written_anew_in_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    real, free = os.write, [700]

    def short(descriptor: int, data: bytes) -> int:
        if not free[0]:
            raise OSError(error, os.strerror(error))
        written = real(descriptor, data[: free[0]])
        free[0] -= written
        return written

    journal = Journal(tmp_path, clock=lambda: 0.0)
    for _ in range(10):
        journal.append(record())
    monkeypatch.setattr(os, "write", short)
    journal.write()
    free[0] = 1
    journal.write()
    free[0] = 1 << 20
    journal.write()
    monkeypatch.undo()
    journal.close()
    assert len(journal_files(tmp_path)) == 1
    assert [read_line(line, "g").sequence for line in lines(tmp_path)] == list(range(1, 11))


def test_a_disk_that_writes_nothing_and_says_nothing_is_given_up_for_the_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    journal.append(record())
    monkeypatch.setattr(os, "write", lambda descriptor, data: 0)
    journal.write()
    assert journal.waiting == 1
    monkeypatch.undo()
    journal.close()
    assert numbers(tmp_path) == [1]


def test_without_a_disk_memory_is_bounded_and_every_lost_row_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    monkeypatch.setattr(journal_module, "MOST_ROWS", 100)
    place = tmp_path / "taken"
    place.write_bytes(b"")
    now = 0.0
    journal = Journal(place, clock=lambda: now)
    for second in range(130):
        now = float(second)
        journal.append(record())
        journal.write()
    assert (journal.waiting, journal.state.dropped, journal.state.written) == (100, 30, 0)
    assert len(caplog.records) == 3  # one record a minute
    assert "100 rows wait in memory, 21 are lost so far" in caplog.messages[2]
    place.unlink()
    journal.write()
    assert "is written again" in caplog.messages[3]
    assert caplog.records[3].levelname == "INFO"
    journal.close()
    assert numbers(place) == list(range(31, 131))
    assert MOST_ROWS == 65_536


def test_the_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "FOLDER_BYTES", 1000)
    now = 0.0
    journal = Journal(tmp_path, clock=lambda: now)
    for _ in range(10):
        journal.append(record())
    journal.write()
    now = 1.0
    journal._size = FILE_BYTES
    journal.append(record())
    journal.write()
    assert "limit" in (journal.state.trouble or "")
    assert journal.waiting == 1
    journal_files(tmp_path)[0].path.unlink()
    now = 2.0
    journal.write()
    assert journal.state.trouble is None
    journal.close()
    assert numbers(tmp_path) == [11]


def test_what_is_lost_at_the_end_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "taken"
    place.write_bytes(b"")
    journal = Journal(place)
    journal.append(record())
    journal.close()
    assert journal.state.dropped == 1
    assert "1 rows are lost at the end" in caplog.messages[-1]


def test_a_killed_process_has_written_all_but_its_last_tick(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal\n"
        "from pathlib import Path\n"
        "from proxy.ledger.journal import Journal\n"
        "from tests.proxy.ledger.kit import record\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "journal.start()\n"
        "while journal.state.written < 2000: journal.append(record())\n"
        "print(journal.state.written, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    found = numbers(tmp_path)
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= int(done.stdout)


async def test_the_thread_sleeps_while_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "WRITE_EVERY", 0.01)
    journal = Journal(tmp_path)
    journal.start()
    for count in (1, 2, 3):
        journal.append(record())
        await until(lambda count=count: len(numbers(tmp_path)) == count)  # type: ignore[misc]  # bound at once
        await until(lambda: journal._idle)
    journal.close()
    assert numbers(tmp_path) == [1, 2, 3]
    assert not journal._thread.is_alive()
