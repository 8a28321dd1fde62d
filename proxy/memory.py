"""How much of the memory that this process's control groups allow is in use. Never decides what to do about it.

Files and meanings are the kernel's (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). Pages of files
that were not used lately are taken off, because the kernel takes them back before it kills anything: what is left is
the working set that kubelet evicts by.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

EVERY = 1.0
"""Seconds between two readings; one takes about 50 us and is done on the loop."""

NO_LIMIT = 2**60
"""Bytes; version 1 says 2^63 less a page where it means no limit."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a version of control groups calls its files, and the line of `memory.stat` with what can be taken back."""

    limit: str
    usage: str
    reclaimable: str


V1 = Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = Names("memory.max", "memory.current", "inactive_file")


@dataclass(frozen=True, slots=True)
class Group:
    """A control group with its folder."""

    folder: Path
    names: Names

    def share(self) -> float:
        """The share of the limit in use, 0.0 without one. Raises OSError and ValueError for files that are not there or
        not as the kernel writes them."""
        limit = self._text(self.names.limit).strip()
        if limit == "max" or int(limit) >= NO_LIMIT:
            return 0.0
        used = int(self._text(self.names.usage)) - reclaimable(self._text("memory.stat"), self.names.reclaimable)
        return max(0, used) / max(1, int(limit))

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="ascii")


def reclaimable(stat: str, name: str) -> int:
    """The bytes on that line of `memory.stat`; 0 when there is no such line."""
    for line in stat.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def groups(own: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> tuple[Group, ...]:
    """The groups whose limits bind this process: its own and those around it; none where there are no control groups.

    In a container the path may be the host's, of which only the root is mounted.
    """
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    paths = {
        controllers: path for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1)
    }
    version_1 = next((path for controllers, path in paths.items() if "memory" in controllers.split(",")), None)
    if version_1 is not None:
        return _around(mount / "memory", version_1, V1)
    return _around(mount, paths[""], V2) if "" in paths else ()


def _around(root: Path, path: str, names: Names) -> tuple[Group, ...]:
    parts = PurePosixPath(path).parts[1:]
    if ".." in parts:  # the group lies outside of what this process may see
        parts = ()
    folders = [root.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return tuple(Group(folder, names) for folder in folders if (folder / names.limit).is_file())


class MemoryMeter:
    """`share` is the largest share of a limit that was in use at the last reading: 0.0 without a limit."""

    __slots__ = ("_groups", "share")

    def __init__(self, groups: tuple[Group, ...]) -> None:
        self._groups = groups
        self.share = 0.0

    def read(self) -> None:
        """Read again. A group that is gone, or that cannot be understood, binds nobody."""
        shares = [0.0]
        for group in self._groups:
            try:
                shares.append(group.share())
            except (OSError, ValueError):
                continue
        self.share = max(shares)

    async def run(self) -> None:
        """Read once a second, for ever."""
        while True:
            self.read()
            await asyncio.sleep(EVERY)
