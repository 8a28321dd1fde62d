"""The control groups of this process: the folders of its own group and of those around it, whose limits hold together.

Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cgroups.rst: a line of `/proc/self/cgroup` is
`ID:CONTROLLERS:PATH`, in version 2 `0::PATH`.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

OWN = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def own_groups(own: Path = OWN) -> Mapping[str, str]:
    """Return this process's group in each hierarchy, by its controllers ("" in version 2); none without the file."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1)}


def with_parents(root: Path, path: str) -> tuple[Path, ...]:
    """Return the folders of a group and its parents below the root of a mounted hierarchy, the innermost first.

    In a container the path may be the host's, of which only the root is mounted; with `..` the group is outside.
    """
    parts = PurePosixPath(path).parts[1:]
    if ".." in parts:
        return (root,)
    return tuple(root.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))
