"""The control groups of this process: the directories of its own group and of the parent groups. The limits of all of
them apply.

Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cgroups.rst: a line of `/proc/self/cgroup` is
`ID:CONTROLLERS:PATH`, in version 2 `0::PATH`.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

OWN_GROUPS_FILE = Path("/proc/self/cgroup")
CGROUP_MOUNT = Path("/sys/fs/cgroup")


def own_groups(own: Path = OWN_GROUPS_FILE) -> Mapping[str, str]:
    """Return the path of this process's group in each hierarchy, by the hierarchy's controllers ("" in version 2). The
    result is empty if the file cannot be read."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1)}


def with_parents(root: Path, path: str) -> tuple[Path, ...]:
    """Return the directories of a group and of its parents below the root of a mounted hierarchy, the innermost first.

    In a container the path may be the host's path, and only its root is mounted. A path with `..` is outside the
    mounted hierarchy, so only the root is returned.
    """
    parts = PurePosixPath(path).parts[1:]
    if ".." in parts:
        return (root,)
    return tuple(root.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))
