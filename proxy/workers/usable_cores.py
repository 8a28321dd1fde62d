"""The number of cores that this process may use: the cores that it may run on, limited by the CPU time of its control
groups.

Source: the kernel's Documentation/admin-guide/cgroup-v2.rst, `cpu.max`: microseconds of CPU time in each period, or
`max`; the limits of a group and of its parents all apply.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from proxy.control_groups import CGROUP_MOUNT, OWN_GROUPS_FILE, own_groups, with_parents


def usable_cores(own: Path = OWN_GROUPS_FILE, mount: Path = CGROUP_MOUNT) -> int:
    """Return how many cores this process may use, as far as the system reports; at least 1.

    A share such as 2.5 cores counts as 2: a group that runs out of CPU time stops as a whole until its period ends, so
    running one process too many would delay all responses.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([cores, *_granted(own, mount)])))


def _granted(own: Path, mount: Path) -> Iterator[float]:
    """Yield the cores that the control group of version 2 and each of its parents grant; nothing for a group without a
    limit."""
    path = own_groups(own).get("")
    for folder in () if path is None else with_parents(mount, path):
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            if quota != "max":
                yield int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):
            # The file is absent (the root group has no such file), or has an unknown form.
            continue
