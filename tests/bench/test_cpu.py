"""Readings of /proc: fields found whatever the program is called, and children counted in."""

import os
import subprocess
import sys

import pytest

from tests.bench.cpu import Stat, cpu_seconds, family, parse_stat, processes, proportional_bytes, resident_bytes

LINE = "{pid} ({name}) S {parent} 7 7 0 -1 4194560 100 0 0 0 {user} {system} 900 800 20 0 1 0 5 10000 20 1844"


@pytest.mark.parametrize("name", ["nginx", "nginx: worker process", "a) S 1 2", "(x)", ""])
def test_the_fields_are_found_behind_any_name(name: str) -> None:
    assert parse_stat(LINE.format(pid=42, name=name, parent=7, user=30, system=12)) == Stat(42, 7, 42)


def test_a_family_is_a_process_and_everything_below_it() -> None:
    stats = [Stat(1, 0, 9), Stat(2, 1, 1), Stat(3, 2, 2), Stat(4, 3, 4), Stat(5, 1, 8)]
    assert family(stats, 2) == [Stat(2, 1, 1), Stat(3, 2, 2), Stat(4, 3, 4)]
    assert family(stats, 6) == []


def test_this_process_is_found_with_its_parent() -> None:
    assert processes()[os.getpid()].parent == os.getppid()


def test_what_a_child_burns_is_counted() -> None:
    program = "x = 0\nwhile x < 5_000_000: x += 1\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_seconds(child.pid) > 0
        assert cpu_seconds(os.getpid()) >= cpu_seconds(child.pid)
        assert resident_bytes(child.pid) > 1_000_000


def test_memory_that_a_child_shares_counts_once() -> None:
    program = "import os, sys\nheld = b'x' * 2**26\nos.fork()\nprint(flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.readline()
        assert 2**26 < proportional_bytes(child.pid) < resident_bytes(child.pid) - 2**25
