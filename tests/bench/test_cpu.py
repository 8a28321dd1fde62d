"""CPU time and memory of processes are read from /proc: for every program name, and including child processes."""

import os
import subprocess
import sys

import pytest

from tests.bench.cpu import (
    Stat,
    Usage,
    cpu_seconds,
    family,
    family_pids,
    own_bytes,
    parse_rollup,
    parse_stat,
    processes,
    proportional_bytes,
    resident_bytes,
    usage,
)
from tests.support.looped import looped

LINE = "{pid} ({name}) S {parent} 7 7 0 -1 4194560 100 0 0 0 {user} {system} 900 800 20 0 1 0 5 10000 20 1844"
ROLLUP = """\
00400000-7ffe3a5f6000 ---p 00000000 00:00 0                              [rollup]
Rss:               15092 kB
Pss:                9021 kB
Pss_Dirty:          5304 kB
"""


@looped("name", ["nginx", "nginx: worker process", "a) S 1 2", "(x)", ""])
def test_the_fields_are_found_behind_any_name(name: str) -> None:
    assert parse_stat(LINE.format(pid=42, name=name, parent=7, user=30, system=12)) == Stat(42, 7, 30, 12)


def test_a_family_is_a_process_and_everything_below_it() -> None:
    stats = [Stat(pid, parent, 0, 0) for pid, parent in ((1, 0), (2, 1), (3, 2), (4, 3), (5, 1))]
    assert [stat.pid for stat in family(stats, 2)] == [2, 3, 4]
    assert family(stats, 6) == []


def test_this_process_is_found_with_its_parent() -> None:
    assert processes()[os.getpid()].parent == os.getppid()


def test_a_rollup_is_read_in_bytes_whatever_its_first_line_is() -> None:
    assert parse_rollup(ROLLUP) == {"Rss": 15092 * 1024, "Pss": 9021 * 1024, "Pss_Dirty": 5304 * 1024}


def test_user_time_is_the_sampled_share_and_all_of_it_without_a_sample() -> None:
    assert (Usage(2.0, 0.3, 0.1) + Usage(1.0, 0.0, 0.4) - Usage(1.0)).user_share == pytest.approx(3 / 8)
    assert Usage(0.001).user_share == 1


def test_what_a_child_burns_is_counted_in_user_and_system_time() -> None:
    program = (
        "import os\nx = 0\nwhile x < 5_000_000: x += 1\nfor _ in range(99999): os.stat('/')\nprint(flush=True)\ninput()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        spent = usage([child.pid])
        assert spent.total > 0
        assert spent.user > 0
        assert spent.user + spent.system == pytest.approx(spent.total, rel=0.5)
        assert child.pid in family_pids(os.getpid())
        assert cpu_seconds(os.getpid()) >= spent.total
        assert resident_bytes(child.pid) > 1_000_000
        assert 0 < own_bytes(child.pid) <= proportional_bytes(child.pid) <= resident_bytes(child.pid) * 1.1


def test_a_process_that_ended_counts_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    assert usage([child.pid]) == Usage()
