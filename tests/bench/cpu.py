"""The CPU time of a process and its children, read from Linux's /proc: two readings and a difference."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Stat:
    """One process; CPU of all its threads, user and system, in clock ticks, children not included."""

    pid: int
    parent: int
    ticks: int


def parse_stat(text: str) -> Stat:
    """The line of /proc/PID/stat (proc(5)): field 2, the name, stands in brackets and may hold spaces and brackets."""
    pid, _, rest = text.partition(" (")
    fields = rest.rpartition(") ")[2].split()
    return Stat(int(pid), int(fields[1]), int(fields[11]) + int(fields[12]))


def family(stats: Iterable[Stat], root: int) -> list[Stat]:
    """A process and everything below it."""
    by_parent: dict[int, list[Stat]] = {}
    found: list[Stat] = []
    for stat in stats:
        by_parent.setdefault(stat.parent, []).append(stat)
        if stat.pid == root:
            found.append(stat)
    for stat in found:  # grows while it is walked
        found += by_parent.get(stat.pid, [])
    return found


def processes() -> Mapping[int, Stat]:
    """Every process of this machine that is still there when it is read."""
    stats: dict[int, Stat] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stats[int(entry.name)] = parse_stat((entry / "stat").read_text(encoding="utf-8"))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended between the two readings
    return stats


def cpu_seconds(pid: int) -> float:
    """CPU that a process and its living children used since they started."""
    return sum(stat.ticks for stat in family(processes().values(), pid)) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory that a process and its children hold; pages they share count for each."""
    pages = (
        int((PROC / str(stat.pid) / "statm").read_text(encoding="utf-8").split()[1])
        for stat in family(processes().values(), pid)
    )
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def proportional_bytes(pid: int) -> int:
    """Memory that a process and its children take together: a page that several share counts once (PSS)."""
    return sum(_proportional(stat.pid) for stat in family(processes().values(), pid)) * 1024


def _proportional(pid: int) -> int:
    """Return the KiB in the line `Pss:` of /proc/PID/smaps_rollup."""
    lines = (PROC / str(pid) / "smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def pin(pid: int, core: int) -> None:
    """Keep every thread of a process and of its children on one core."""
    for stat in family(processes().values(), pid):
        for thread in (PROC / str(stat.pid) / "task").iterdir():
            os.sched_setaffinity(int(thread.name), {core})
