"""The CPU time and the memory of a process and its children on Linux, as the difference of two readings.

CPU time comes from the process's own clock (clock_getcpuclockid(3)). It is exact to the nanosecond and includes threads
that ended. The kernel only samples the user share, at its clock tick. So the shares are accurate only as sums of many,
and are never used for the total.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Stat:
    """One process: CPU of all its threads in clock ticks, user and system, without children."""

    pid: int
    parent: int
    user: int
    system: int


def parse_stat(text: str) -> Stat:
    """Parse the line of /proc/PID/stat (proc(5)). Field 2, the name, stands in brackets and may contain spaces and
    brackets."""
    pid, _, rest = text.partition(" (")
    fields = rest.rpartition(") ")[2].split()
    return Stat(int(pid), int(fields[1]), int(fields[11]), int(fields[12]))


def family(stats: Iterable[Stat], root: int) -> list[Stat]:
    """Return a process and all of its descendants."""
    by_parent: dict[int, list[Stat]] = {}
    found: list[Stat] = []
    for stat in stats:
        by_parent.setdefault(stat.parent, []).append(stat)
        if stat.pid == root:
            found.append(stat)
    for stat in found:  # grows during the loop
        found += by_parent.get(stat.pid, [])
    return found


def processes() -> Mapping[int, Stat]:
    """Return the processes of this machine that still exist when they are read."""
    stats: dict[int, Stat] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stats[int(entry.name)] = parse_stat((entry / "stat").read_text(encoding="utf-8"))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended between the two readings
    return stats


def family_pids(root: int) -> list[int]:
    """Return the process ids of a process and all of its descendants."""
    return [stat.pid for stat in family(processes().values(), root)]


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU in seconds: the total, and the ticks in which a sample found the process in its own code or in the kernel."""

    total: float = 0.0
    user: float = 0.0
    system: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.total + other.total, self.user + other.user, self.system + other.system)

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(self.total - other.total, self.user - other.user, self.system - other.system)

    @property
    def user_share(self) -> float:
        """Return the sampled share of user time. It is 1 if no sample was taken."""
        sampled = self.user + self.system
        return self.user / sampled if sampled else 1.0


_USER_AND_SYSTEM, _USER, _EXACT = 0, 1, 2
"""The kernel's kinds of a process's clock (CPUCLOCK_PROF, CPUCLOCK_VIRT, CPUCLOCK_SCHED)."""


def _clock(pid: int, kind: int) -> float:
    """Return a clock of a process, by the id that clock_getcpuclockid(3) computes. Raise OSError if the process is
    gone."""
    return time.clock_gettime(~pid << 3 | kind)


def usage(pids: Iterable[int]) -> Usage:
    """Return the CPU that these processes have used since they started. A process that ended counts as zero."""
    total = Usage()
    for pid in pids:
        try:
            exact, sampled, user = _clock(pid, _EXACT), _clock(pid, _USER_AND_SYSTEM), _clock(pid, _USER)
        except OSError:
            continue  # it ended
        total += Usage(exact, user, sampled - user)
    return total


def queued(pids: Iterable[int]) -> float:
    """Return the seconds for which the main threads of these processes have waited for a core (`schedstat`)."""
    waited = 0
    for pid in pids:
        try:
            waited += int((PROC / str(pid) / "schedstat").read_text(encoding="utf-8").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended
    return waited / 1e9


def cpu_seconds(pid: int) -> float:
    """Return the CPU that a process and its living children have used since they started."""
    return usage(family_pids(pid)).total


def resident_bytes(pid: int) -> int:
    """Return the memory of a process and its children. Pages that they share count for each."""
    pages = (int((PROC / str(each) / "statm").read_text(encoding="utf-8").split()[1]) for each in family_pids(pid))
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def parse_rollup(text: str) -> Mapping[str, int]:
    """Parse the lines of /proc/PID/smaps_rollup (proc(5)), in bytes. The first line is an address range."""
    pairs = (line.split() for line in text.splitlines()[1:])
    return {fields[0].rstrip(":"): int(fields[1]) * 1024 for fields in pairs}


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process and its children. Each of several processes that share a page counts a part of it
    (PSS)."""
    rollups = ((PROC / str(each) / "smaps_rollup").read_text(encoding="utf-8") for each in family_pids(pid))
    return sum(parse_rollup(text)["Pss"] for text in rollups)


def own_bytes(pid: int) -> int:
    """Return the same without the pages of files, whose parts depend on the other processes of the machine."""
    rollups = ((PROC / str(each) / "smaps_rollup").read_text(encoding="utf-8") for each in family_pids(pid))
    return sum(parse_rollup(text)["Pss_Anon"] for text in rollups)


def pin_pids(pids: Iterable[int], cores: Sequence[int]) -> None:
    """Pin every thread of these processes to these cores."""
    for pid in pids:
        for thread in (PROC / str(pid) / "task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)


def pin(pid: int, core: int) -> None:
    """Pin every thread of a process and of its children to one core."""
    pin_pids(family_pids(pid), [core])
