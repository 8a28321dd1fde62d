"""How many cores this process may use: those that it may run on, and no more than its control groups' CPU time fills.

Source: the kernel's Documentation/admin-guide/cgroup-v2.rst, `cpu.max`: microseconds of CPU time in each period, or
`max`; a group's own limit and those of its parents hold together.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def usable_cores(own: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many cores this process may use, as far as the system reports; at least 1.

    Of a share such as 2.5 cores it is 2: a group that runs out of CPU time stands still as a whole until its period
    ends, so that one process too many makes the answers of all late.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([cores, *_granted(own, mount)])))


def _granted(own: Path, mount: Path) -> Iterator[float]:
    """Yield what the control group of version 2 and its parents grant, in cores; nothing for one without a limit."""
    for folder in _groups(own, mount):
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            if quota != "max":
                yield int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):  # not there (the root has none), or not as it is documented
            continue


def _groups(own: Path, mount: Path) -> Iterator[Path]:
    """Yield the folders of a group and its parents. In a container the path may be the host's, of which only the root
    is mounted."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    if path is not None:
        parts = [part for part in PurePosixPath(path).parts if part not in {"/", ".."}]
        yield from (mount.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))
