"""Lines are whole, in a file of the owner's, through rotation, several writers and a disk without room."""

import errno
import os
import resource
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest

from proxy.payload_log.payload_file import PayloadFile

pytestmark = pytest.mark.smoke


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel refuses what would make a file larger, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def write_many(path: Path, name: str) -> None:
    file = PayloadFile(path, 4000, 1000)
    for number in range(200):
        file.append(f"{name} {number} {'x' * (number % 50)}\n".encode())


def test_the_file_is_its_owner_s_alone_also_where_it_was_others_before(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("old\n", encoding="utf-8")
    path.chmod(0o644)
    PayloadFile(path, 1000, 1).append(b"new\n")
    assert path.read_bytes() == b"old\nnew\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("keep", "there"), [(0, ["p"]), (1, ["p", "p.1"]), (2, ["p", "p.1", "p.2"])])
def test_a_full_file_makes_room_and_as_many_are_kept_as_said(keep: int, there: list[str], tmp_path: Path) -> None:
    file = PayloadFile(tmp_path / "p", 10, keep)
    for number in range(4):
        file.append(f"line {number}\n".encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == there
    assert [(tmp_path / name).read_bytes() for name in there] == [f"line {3 - n}\n".encode() for n in range(keep + 1)]


def test_a_line_that_is_larger_than_a_file_may_be_is_written_whole(tmp_path: Path) -> None:
    PayloadFile(tmp_path / "p", 10, 1).append(b"x" * 100 + b"\n")
    assert (tmp_path / "p").stat().st_size == 101


def test_a_file_that_somebody_moved_or_removed_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "p"
    file = PayloadFile(path, 1000, 1)
    for change in (lambda: path.rename(tmp_path / "moved"), path.unlink):
        file.append(b"before\n")
        change()
        file.append(b"after\n")
        assert path.read_bytes() == b"after\n"


def test_without_room_there_is_no_part_of_a_line_and_later_lines_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "p"
    file = PayloadFile(path, 1000, 1)
    with largest_file(12):
        file.append(b"first\n")
        with pytest.raises(OSError, match="File too large") as caught:
            file.append(b"second, longer\n")
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == b"first\n"
    file.append(b"third\n")
    assert path.read_bytes() == b"first\nthird\n"


def test_a_link_a_pipe_and_a_folder_that_is_missing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("link", "symbolic links"), ("pipe", "No such device"), ("no/folder", "No such file")):
        with pytest.raises(OSError, match=reason):
            PayloadFile(tmp_path / name, 1000, 1).append(b"x\n")
    assert not (tmp_path / "target").exists()


def test_two_processes_share_a_file_through_its_rotations(tmp_path: Path) -> None:
    path = tmp_path / "p"
    forks = get_context("spawn")
    writers = [forks.Process(target=write_many, args=(path, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    files = list(tmp_path.iterdir())
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    assert len(files) > 2
    assert sorted(lines) == sorted(f"{name} {n} {'x' * (n % 50)}" for name in ("a", "b") for n in range(200))
    assert max(file.stat().st_size for file in files) <= 4000
