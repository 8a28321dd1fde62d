"""Large buffers leave the process when they are freed."""

import subprocess
import sys

from tests.support.gateway import ROOT

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
