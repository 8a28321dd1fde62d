"""The CPU time and the memory of a process and its children, read from Linux: two readings and a difference.

CPU time is that of the process's own clock (clock_getcpuclockid(3)): exact to the nanosecond, with threads that ended.
Which part of it was user time the kernel only samples, at its clock tick, so the parts are good where many of them are
added up, and are never used for the whole.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Stat:
    """One process; CPU of all its threads in clock ticks, user and system, children not included."""

    pid: int
    parent: int
    user: int
    system: int


def parse_stat(text: str) -> Stat:
    """The line of /proc/PID/stat (proc(5)): field 2, the name, stands in brackets and may hold spaces and brackets."""
    pid, _, rest = text.partition(" (")
    fields = rest.rpartition(") ")[2].split()
    return Stat(int(pid), int(fields[1]), int(fields[11]), int(fields[12]))


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


def family_pids(root: int) -> list[int]:
    """The process ids of a process and everything below it."""
    return [stat.pid for stat in family(processes().values(), root)]


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU in seconds: all of it, and the ticks in which a sample found the process in its own code or in the kernel."""

    total: float = 0.0
    user: float = 0.0
    system: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.total + other.total, self.user + other.user, self.system + other.system)

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(self.total - other.total, self.user - other.user, self.system - other.system)

    @property
    def user_share(self) -> float:
        """The sampled share of user time; all of it where no sample was taken."""
        sampled = self.user + self.system
        return self.user / sampled if sampled else 1.0


_USER_AND_SYSTEM, _USER, _EXACT = 0, 1, 2
"""The kernel's kinds of a process's clock (CPUCLOCK_PROF, CPUCLOCK_VIRT, CPUCLOCK_SCHED)."""


def _clock(pid: int, kind: int) -> float:
    """A clock of a process by the id that clock_getcpuclockid(3) makes. Raises OSError when it is gone."""
    return time.clock_gettime(~pid << 3 | kind)


def usage(pids: Iterable[int]) -> Usage:
    """CPU that these processes have used since they started; one that ended counts nothing."""
    total = Usage()
    for pid in pids:
        try:
            exact, sampled, user = _clock(pid, _EXACT), _clock(pid, _USER_AND_SYSTEM), _clock(pid, _USER)
        except OSError:
            continue  # it ended
        total += Usage(exact, user, sampled - user)
    return total


def queued(pids: Iterable[int]) -> float:
    """Seconds that the main threads of these processes have waited for a core that others had (`schedstat`)."""
    waited = 0
    for pid in pids:
        try:
            waited += int((PROC / str(pid) / "schedstat").read_text(encoding="utf-8").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended
    return waited / 1e9


def cpu_seconds(pid: int) -> float:
    """CPU that a process and its living children used since they started."""
    return usage(family_pids(pid)).total


def resident_bytes(pid: int) -> int:
    """Memory that a process and its children hold; pages they share count for each."""
    pages = (int((PROC / str(each) / "statm").read_text(encoding="utf-8").split()[1]) for each in family_pids(pid))
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def parse_rollup(text: str) -> Mapping[str, int]:
    """The lines of /proc/PID/smaps_rollup (proc(5)), in bytes; the first line is an address range."""
    pairs = (line.split() for line in text.splitlines()[1:])
    return {fields[0].rstrip(":"): int(fields[1]) * 1024 for fields in pairs}


def proportional_bytes(pid: int) -> int:
    """Memory that a process and its children hold; a page that several share counts in parts (PSS)."""
    rollups = ((PROC / str(each) / "smaps_rollup").read_text(encoding="utf-8") for each in family_pids(pid))
    return sum(parse_rollup(text)["Pss"] for text in rollups)


def own_bytes(pid: int) -> int:
    """The same without the pages of files, whose parts depend on what else runs on the machine."""
    rollups = ((PROC / str(each) / "smaps_rollup").read_text(encoding="utf-8") for each in family_pids(pid))
    return sum(parse_rollup(text)["Pss_Anon"] for text in rollups)


def pin_pids(pids: Iterable[int], cores: Sequence[int]) -> None:
    """Keep every thread of these processes on these cores."""
    for pid in pids:
        for thread in (PROC / str(pid) / "task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)


def pin(pid: int, core: int) -> None:
    """Keep every thread of a process and of its children on one core."""
    pin_pids(family_pids(pid), [core])
