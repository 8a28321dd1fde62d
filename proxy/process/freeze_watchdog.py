"""Ends a process whose event loop is frozen, with a log line that names the last request that began.

A supervisor watches its workers from outside (`proxy.workers.restart_workers`). `FreezeWatchdog` watches the gateway if
it is one process, and a worker whose supervisor has ended.
"""

import faulthandler
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from proxy.overload.event_loop_lag import thread_stack
from proxy.process.c_signal_handlers import exit_on
from proxy.process.heartbeat import Heartbeat
from proxy.telemetry.process_log import FORMATTERS

LOOK_EVERY: Final = 0.25
"""Seconds between two checks of a heartbeat."""

FROZEN_STATUS: Final = 70
"""The exit status of a process that ended itself; EX_SOFTWARE of sysexits.h."""

FROZEN: Final = "%s has stood still for %.1f s and is ended; the last request begun: %s"
"""The log message. Its arguments are the name of the frozen object, the seconds, and the last request."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ThreadState:
    """The state of a thread in Linux: `state` is a letter of proc(5), `cpu` the CPU seconds that it has used."""

    state: str
    cpu: float


def main_thread(process: int) -> ThreadState | None:
    """Return the state of a process's main thread, which runs the event loop; `None` if the system does not report
    it."""
    try:
        text = Path(f"/proc/{process}/task/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return ThreadState(fields[0], (int(fields[11]) + int(fields[12])) / _TICKS)


class FreezeDetector:
    """Sums the seconds in which a loop did not tick although its thread could have run, in `frozen_for`.

    For a thread that is stopped, is traced, or waits for a disk or a core, only the CPU time that it used counts. The
    time between two checks counts up to 2 * LOOK_EVERY, because machines sleep and containers are paused. If the system
    does not report the state of the thread, all of that time counts.
    """

    __slots__ = ("_beats", "_cpu", "_limit", "_looked", "frozen_for")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._beats = 0
        self._cpu: float | None = None
        self._looked = 0.0
        self.frozen_for = 0.0

    def look(self, beats: int, now: float, thread: Callable[[], ThreadState | None]) -> bool:
        """Return whether the loop has been frozen for longer than the limit. Call it every LOOK_EVERY seconds. `thread`
        is called only if there was no tick since the last check. A loop that has never ticked is not frozen."""
        passed, self._looked = min(now - self._looked, 2 * LOOK_EVERY), now
        if not beats or beats != self._beats:
            self._beats, self._cpu, self.frozen_for = beats, None, 0.0
            return False
        found = thread()
        if found is None:
            self.frozen_for += passed
        else:
            ran = 0.0 if self._cpu is None else found.cpu - self._cpu
            self._cpu = found.cpu
            self.frozen_for += passed if found.state == "S" else min(passed, ran)
        return self.frozen_for > self._limit


class FreezeWatchdog:
    """A context manager of the main thread that ends this process if its loop is frozen for more than `limit` seconds;
    0 disables it.

    A Python thread checks the loop, and logs a line in the form `json` or `text`. That thread cannot run while native
    code holds the interpreter's lock. Therefore, after `limit` seconds of CPU time without a check, the C library
    writes the stacks to standard error and ends the process with the number of SIGPROF as its status (27 on Linux).

    The stacks of all threads are written, the loop's last. The signal may reach any thread: the kernel delivers it to
    the thread that uses the CPU at that moment, and a thread that waits for the lock uses the CPU 200 times a second.
    CPU time does not pass while a process is stopped. On the other hand, native code that sleeps while it holds the
    lock is not detected.
    """

    def __init__(self, heartbeat: Heartbeat, limit: float, form: str) -> None:
        self._heartbeat = heartbeat
        self._limit = limit
        self._formatter = FORMATTERS[form]()
        self._loop_thread = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="freeze watchdog", daemon=True)

    def __enter__(self) -> Self:
        if self._limit:
            exit_on(signal.SIGPROF)
            faulthandler.register(signal.SIGPROF, sys.stderr.fileno(), all_threads=True, chain=True)
            signal.setitimer(signal.ITIMER_PROF, self._limit)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._limit:
            self._stop.set()
            self._thread.join(2 * LOOK_EVERY)
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.unregister(signal.SIGPROF)

    def _run(self) -> None:
        detector, process = FreezeDetector(self._limit), os.getpid()
        while not self._stop.wait(LOOK_EVERY):
            signal.setitimer(signal.ITIMER_PROF, self._limit)
            if detector.look(self._heartbeat.beats, time.monotonic(), lambda: main_thread(process)):
                self._end(detector.frozen_for)

    def _end(self, frozen_for: float) -> None:
        facts = ("the event loop", frozen_for, self._heartbeat.last_request, thread_stack(self._loop_thread))
        record = logging.LogRecord("dragoman", logging.CRITICAL, "", 0, FROZEN + "; it stands at %s", facts, None)
        line = (self._formatter.format(record) + "\n").encode()
        # The log is not used, because the loop's thread may hold its lock. The write does not wait for a reader of
        # stderr.
        if select.select((), (sys.stderr.fileno(),), (), LOOK_EVERY)[1]:
            os.write(sys.stderr.fileno(), line)
        os._exit(FROZEN_STATUS)
