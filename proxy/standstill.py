"""The last line against an event loop that does not come back: says which request began last, and ends the process.

With workers the supervisor looks from outside (`proxy.workers`); `LastLine` is for the gateway as one process, and for
a worker whose supervisor is gone.
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

from proxy.lag import stack
from proxy.logs import FORMATTERS
from proxy.native_signals import exit_on
from proxy.pulse import Pulse

LOOK: Final = 0.25
"""Seconds between two looks at a pulse."""

STALLED: Final = 70
"""Exit status of a process that ended itself; EX_SOFTWARE of sysexits.h."""

STANDS: Final = "%s has stood still for %.1f s and is ended; the last request begun: %s"
"""Whose event loop, for how long, and the request."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread as Linux sees it: `state` is a letter of proc(5), `cpu` the seconds it has run."""

    state: str
    cpu: float


def main_thread(process: int) -> ThreadState | None:
    """The main thread of a process, which runs the loop; None where the system does not tell."""
    try:
        text = Path(f"/proc/{process}/task/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return ThreadState(fields[0], (int(fields[11]) + int(fields[12])) / _TICKS)


class Standstill:
    """Adds up how long a loop has not ticked although its thread could have gone on.

    A thread that is stopped, traced or waits for a disk or for a core adds nothing but the CPU time it got, and neither
    does the time in which the looks themselves did not come: whole machines sleep, and containers are paused. Where the
    system tells nothing of the thread, all time between punctual looks counts.
    """

    __slots__ = ("_beats", "_cpu", "_limit", "_looked", "stood")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._beats = 0
        self._cpu: float | None = None
        self._looked = 0.0
        self.stood = 0.0

    def look(self, beats: int, now: float, thread: Callable[[], ThreadState | None]) -> bool:
        """Whether the loop has stood still for longer than the limit; to be called every LOOK seconds. `thread` is only
        asked where there was no tick since the last look. A loop that never ticked does not stand still."""
        passed, self._looked = min(now - self._looked, 2 * LOOK), now
        if not beats or beats != self._beats:
            self._beats, self._cpu, self.stood = beats, None, 0.0
            return False
        found = thread()
        if found is None:
            self.stood += passed
        else:
            ran = 0.0 if self._cpu is None else found.cpu - self._cpu
            self._cpu = found.cpu
            self.stood += passed if found.state == "S" else min(passed, ran)
        return self.stood > self._limit


class LastLine:
    """Context manager of the main thread: ends this process where its loop stands longer than `limit` seconds; 0 never.

    A thread does it, with a line of the log in the form `json` or `text`. Where native code holds the interpreter's
    lock no thread of Python runs: after `limit` seconds of CPU time without a look of that thread the C library writes
    the stack to standard error and ends the process with the status of SIGPROF's number (27 on Linux). CPU time stands
    while a process is stopped; the price is that native code which sleeps with the lock held is not noticed.
    """

    def __init__(self, pulse: Pulse, limit: float, form: str) -> None:
        self._pulse = pulse
        self._limit = limit
        self._formatter = FORMATTERS[form]()
        self._loop_thread = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="last line", daemon=True)

    def __enter__(self) -> Self:
        if self._limit:
            exit_on(signal.SIGPROF)
            faulthandler.register(signal.SIGPROF, sys.stderr.fileno(), all_threads=False, chain=True)
            signal.setitimer(signal.ITIMER_PROF, self._limit)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._limit:
            self._stop.set()
            self._thread.join(2 * LOOK)
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.unregister(signal.SIGPROF)

    def _run(self) -> None:
        standstill, process = Standstill(self._limit), os.getpid()
        while not self._stop.wait(LOOK):
            signal.setitimer(signal.ITIMER_PROF, self._limit)
            if standstill.look(self._pulse.beats, time.monotonic(), lambda: main_thread(process)):
                self._end(standstill.stood)

    def _end(self, stood: float) -> None:
        facts = ("the event loop", stood, self._pulse.last_request, stack(self._loop_thread))
        record = logging.LogRecord("dragoman", logging.CRITICAL, "", 0, STANDS + "; it stands at %s", facts, None)
        line = (self._formatter.format(record) + "\n").encode()
        # Not through the log: the loop's thread may hold its lock. Nor does anybody have to read standard error.
        if select.select((), (sys.stderr.fileno(),), (), LOOK)[1]:
            os.write(sys.stderr.fileno(), line)
        os._exit(STALLED)
