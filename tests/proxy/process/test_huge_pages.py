"""Huge pages are requested for the heap, and for nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from proxy.process.huge_pages import heap_ranges, huge_page_bytes
from tests.support.gateway import ROOT

pytestmark = pytest.mark.smoke


PAGE = 2 << 20

MAPS = """\
00946000-00e85000 rw-p 00545000 fe:00 247702                             /usr/bin/python3.11
00e85000-01cca000 rw-p 00000000 00:00 0
1cde7000-1df57000 rw-p 00000000 00:00 0                                  [heap]
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
7f0000400000-7f0000401000 ---p 00000000 00:00 0
7f0000401000-7f0000c01000 rw-p 00000000 00:00 0
7f0001000000-7f0001400000 rw-s 00000000 00:01 0                          /dev/shm/x (deleted)
7f0002000000-7f0002400000 r--p 00000000 00:00 0
7f0003000000-7f0003400000 rw-p 00000000 00:00 0                          [anon: its own]
7f0004100000-7f00042fffff rw-p 00000000 00:00 0
7ffe00000000-7ffe00800000 rw-p 00000000 00:00 0                          [stack]
"""


def test_whole_pages_of_the_heap_are_found_but_no_file_no_stack_and_nothing_that_is_shared() -> None:
    assert list(heap_ranges(MAPS, PAGE)) == [
        (0x1000000, 0xC00000),
        (0x1CE00000, 0x1000000),
        (0x7F0000000000, 0x400000),
    ]


@pytest.mark.parametrize(
    ("enabled", "size", "expected"),
    [
        ("always [madvise] never\n", "2097152\n", PAGE),
        ("[always] madvise never\n", "2097152\n", PAGE),
        ("always madvise [never]\n", "2097152\n", 0),
        ("always [madvise] never\n", None, 0),
        (None, None, 0),
    ],
)
def test_who_wants_none_gets_none(tmp_path: Path, enabled: str | None, size: str | None, expected: int) -> None:
    for name, text in (("enabled", enabled), ("hpage_pmd_size", size)):
        if text is not None:
            (tmp_path / name).write_text(text)
    assert huge_page_bytes(tmp_path) == expected


SCRIPT = """
import re
from proxy.process.huge_pages import use_huge_pages

def huge():
    return int(re.search(r"AnonHugePages: +([0-9]+) kB", open("/proc/self/smaps_rollup").read())[1]) << 10

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

kept = [b"x" * 400 for _ in range(50_000)]
before = resident()
made = use_huge_pages()
# A kernel before 6.1 makes them later; one whose free memory is in pieces makes none.
assert huge() >= made, (huge(), made)
assert resident() - before < 8 << 20, resident() - before
assert all(each == b"x" * 400 for each in kept)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked for huge pages")
def test_the_heap_of_a_process_lies_in_huge_pages_and_takes_hardly_more() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, check=True)
