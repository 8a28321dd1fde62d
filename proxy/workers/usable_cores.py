"""How many cores this process may use: those that it may run on, and no more than its control groups' CPU time fills.

Source: the kernel's Documentation/admin-guide/cgroup-v2.rst, `cpu.max`: microseconds of CPU time in each period, or
`max`; a group's own limit and those of its parents hold together.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from proxy.control_groups import CGROUP_MOUNT, OWN_GROUPS_FILE, own_groups, with_parents


def usable_cores(own: Path = OWN_GROUPS_FILE, mount: Path = CGROUP_MOUNT) -> int:
    """Return how many cores this process may use, as far as the system reports; at least 1.

    Of a share such as 2.5 cores it is 2: a group that runs out of CPU time stands still as a whole until its period
    ends, so that one process too many makes the answers of all late.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([cores, *_granted(own, mount)])))


def _granted(own: Path, mount: Path) -> Iterator[float]:
    """Yield what the control group of version 2 and its parents grant, in cores; nothing for one without a limit."""
    path = own_groups(own).get("")
    for folder in () if path is None else with_parents(mount, path):
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            if quota != "max":
                yield int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):  # not there (the root has none), or not as it is documented
            continue
