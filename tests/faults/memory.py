"""The largest growth of this process's memory over a block."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_PEAK = Path("/proc/self/clear_refs")


@dataclass(slots=True)
class Growth:
    """Bytes, set when the block ends."""

    bytes: int = 0


@contextmanager
def growth() -> Iterator[Growth]:
    """Measure the peak of the resident memory over the block, minus the memory before it."""
    gc.collect()
    _PEAK.write_text("5")
    grown, before = Growth(), _resident("VmRSS")
    yield grown
    grown.bytes = _resident("VmHWM") - before


def _resident(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
