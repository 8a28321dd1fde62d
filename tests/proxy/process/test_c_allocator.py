"""Large buffers leave the process when they are freed; buffers of common size stay."""

import subprocess
import sys

import pytest

from tests.support.gateway import ROOT

pytestmark = pytest.mark.smoke


SCRIPT = """
import sys
from proxy.process.c_allocator import return_large_buffers

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def fill():
    # Small objects between large ones, so that a heap that holds both cannot shrink.
    kept = []
    for _ in range(8):
        large = [bytearray(b"x") * (4 << 20) for _ in range(4)]
        kept.append(bytearray(1000))
        del large[::2]
        kept.append(bytearray(1000))
    return kept

assert return_large_buffers() is True
before = resident()
kept = [fill() for _ in range(4)]
assert resident() - before < 4 << 20, resident() - before
"""


def test_what_large_buffers_took_is_given_back() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, check=True)


READS = """
import resource
from proxy.process.c_allocator import return_large_buffers

def faults(count, size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        bytearray(size - 1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert return_large_buffers() is True
for size in (256 * 1024, 3_500_000):
    faults(1000, size)
    assert faults(1000, size) < 100, size
"""


def test_the_room_for_a_read_or_a_body_is_not_taken_from_the_system_each_time() -> None:
    subprocess.run([sys.executable, "-c", READS], cwd=ROOT, check=True)
