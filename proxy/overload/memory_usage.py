"""Measures the used share of the memory limits of this process's control groups.

Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. Inactive file pages are
subtracted, because the kernel reclaims them before it kills a process. The rest is the working set by which kubelet
evicts.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from proxy.control_groups import CGROUP_MOUNT, OWN_GROUPS_FILE, own_groups, with_parents

EVERY = 1.0
"""Seconds between two readings. Each takes about 50 us on the event loop."""

NO_LIMIT = 2**60
"""The number of bytes from which on a limit counts as no limit. Without a limit, version 1 reports 2^63 less a page."""


@dataclass(frozen=True, slots=True)
class CgroupFiles:
    """The names of the files of a control group version, and of the line of `memory.stat` with reclaimable bytes."""

    limit: str
    usage: str
    reclaimable: str


V1 = CgroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = CgroupFiles("memory.max", "memory.current", "inactive_file")


@dataclass(frozen=True, slots=True)
class Group:
    """A control group."""

    folder: Path
    names: CgroupFiles

    def share(self) -> float:
        """Return the used share of the limit, 0.0 without a limit. Raises OSError or ValueError for unreadable
        files."""
        limit = self._text(self.names.limit).strip()
        if limit == "max" or int(limit) >= NO_LIMIT:
            return 0.0
        used = int(self._text(self.names.usage)) - reclaimable(self._text("memory.stat"), self.names.reclaimable)
        return max(0, used) / max(1, int(limit))

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="ascii")


def reclaimable(stat: str, name: str) -> int:
    """Return the bytes in the line `name` of `memory.stat`; 0 without that line."""
    for line in stat.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def groups(own: Path = OWN_GROUPS_FILE, mount: Path = CGROUP_MOUNT) -> tuple[Group, ...]:
    """Return the groups whose limits apply to this process: its own groups and their parents. Without control groups
    the result is empty."""
    paths = own_groups(own)
    version_1 = next((path for controllers, path in paths.items() if "memory" in controllers.split(",")), None)
    if version_1 is not None:
        return _limited(with_parents(mount / "memory", version_1), V1)
    return _limited(with_parents(mount, paths[""]), V2) if "" in paths else ()


def _limited(folders: Iterable[Path], names: CgroupFiles) -> tuple[Group, ...]:
    return tuple(Group(folder, names) for folder in folders if (folder / names.limit).is_file())


class MemoryMeter:
    """The memory usage at the last reading. `share` is the largest used share of a limit, 0.0 without a limit."""

    __slots__ = ("_groups", "share")

    def __init__(self, groups: tuple[Group, ...]) -> None:
        self._groups = groups
        self.share = 0.0

    def read(self) -> None:
        """Read all groups. A group that no longer exists, or whose files are malformed, counts as a group without a
        limit."""
        shares = [0.0]
        for group in self._groups:
            try:
                shares.append(group.share())
            except (OSError, ValueError):
                continue
        self.share = max(shares)

    async def run(self) -> None:
        """Read once a second until cancelled."""
        while True:
            self.read()
            await asyncio.sleep(EVERY)
