"""Lines are read whole from a file that grows, is rotated or truncated, and no line exceeds its bound."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.cli.logs import read_lines
from proxy.cli.logs.read_lines import MAX_LINE, LineSplitter, follow_all, follow_end, read_input, read_whole
from proxy.cli.terminal import CommandError
from tests.support.looped import looped


class Over(Exception):
    """Ends the reader of a followed file."""


def steps(*done: Callable[[], object]) -> Callable[[], None]:
    """Return a replacement for the reader's sleep: it runs one step at each call, and ends the reader after the
    last.
    """
    left = iter(done)

    def wait() -> None:
        for step in left:
            step()
            return
        raise Over

    return wait


def until_over(batches: Iterator[list[bytes]]) -> list[bytes]:
    lines: list[bytes] = []
    try:
        for batch in batches:
            lines += batch
    except Over:
        return lines
    raise AssertionError("a file that is followed has no end")


def add(path: Path, text: bytes) -> Callable[[], object]:
    def write() -> None:
        with path.open("ab") as file:
            file.write(text)

    return write


@looped("size", [1, 2, 7, 100])
def test_lines_are_the_same_however_they_are_cut_by_reads(size: int) -> None:
    text, splitter = b"one\n\ntwo\r\nthree", LineSplitter()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    assert [*lines, *splitter.end()] == [b"one", b"", b"two\r", b"three"]
    assert splitter.end() == []


def test_of_a_huge_line_the_beginning_is_kept_and_the_rest_is_counted() -> None:
    splitter = LineSplitter()
    lines = [line for _ in range(40) for line in splitter.feed(b"a" * 65_536)] + splitter.feed(b"\nnext\n")
    assert lines == [b"a" * MAX_LINE + b"... [1572864 bytes more]", b"next"]


def test_a_whole_file_has_its_last_line_without_a_newline_too(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one\ntwo")
    assert [line for batch in read_whole(tmp_path / "a.log") for line in batch] == [b"one", b"two"]


@pytest.mark.parametrize("read", [read_whole, follow_all, follow_end])
def test_a_file_that_cannot_be_read_is_named(read: Callable[[Path], Iterator[list[bytes]]], tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no\.log: No such file"):
        list(read(tmp_path / "no.log"))
    with pytest.raises(CommandError, match="it is a folder"):
        list(read(tmp_path))


def test_a_file_is_followed_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntw")
    wait = steps(add(path, b"o\nthr"), lambda: None, add(path, b"ee\n"))
    assert until_over(follow_all(path, wait)) == [b"one", b"two", b"three"]


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    path, old = tmp_path / "a.log", tmp_path / "a.log.1"
    path.write_bytes(b"one\n")

    def rotate_late() -> None:
        path.rename(old)
        add(old, b"two\n")()

    wait = steps(rotate_late, lambda: path.write_bytes(b"three\n"), add(path, b"four\n"))
    assert until_over(follow_all(path, wait)) == [b"one", b"two", b"three", b"four"]


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"a long line\nand a torn")
    wait = steps(lambda: os.truncate(path, 0), add(path, b"b\n"))
    assert until_over(follow_all(path, wait)) == [b"a long line", b"and a torn", b"b"]


@pytest.mark.parametrize(("there", "torn"), [(3, b""), (30, b""), (30, b"torn"), (20_000, b"")])
def test_from_the_end_a_file_begins_with_its_last_lines(there: int, torn: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    lines = [f"line {number}".encode() for number in range(there)]
    path.write_bytes(b"".join(line + b"\n" for line in lines) + torn)
    wait = steps(add(path, b"new\n"))
    assert until_over(follow_end(path, wait)) == [*lines[-10:], torn + b"new"]


def test_input_that_nobody_pipes_in_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    main, there = os.openpty()
    with os.fdopen(there) as terminal:
        for nobody in (None, terminal):
            monkeypatch.setattr(sys, "stdin", nobody)
            with pytest.raises(CommandError, match="pipe the log in"):
                list(read_input())
    os.close(main)


def test_a_look_at_a_quiet_file_is_followed_by_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    read_lines.pause()
    assert slept == [read_lines.POLL_SECONDS]
