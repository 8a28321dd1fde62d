"""Runs the process that loads the ledger, in its parent: starts it, restarts it when it ends, and ends it last.

Loading takes about 10 us of CPU for each row, and statements of many ms. In a serving process, the interpreter's lock
would delay requests during these statements. Without this process requests are still served, and the journals grow up
to their limit. The log and the state of the ledger report it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from signal import Signals
from typing import Final

from proxy.accounting.loader_program import decode_report, encode_order
from proxy.background_tasks import SharedTask, Tasks
from proxy.ledger.journal_files import journal_bytes
from proxy.ledger.ledger_settings import LedgerSettings, LedgerState
from proxy.ledger.loading import STOP_TIMEOUT
from proxy.off_loop.child_process import Child, start_child

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0
"""The first and the longest wait before the process is started again, in seconds. Each end within QUICK_END doubles the
wait."""

QUICK_END: Final = 10.0

REPORT_TIMEOUT: Final = 60.0
"""Seconds without a report after which the process counts as stuck and is killed."""

END_SLACK: Final = 3.0
"""Seconds within which the process must end after the time for loading, or, while the gateway continues, after its last
report."""

MEASURE_EVERY: Final = 1.0

Starter = Callable[[], Awaitable[Child]]
"""Starts the process. Raises OSError."""


async def start_program() -> Child:
    """Start the process as a separate program. Raises OSError."""
    return await start_child("proxy.accounting.loader_program")


@asynccontextmanager
async def loading(
    settings: LedgerSettings | None, state: LedgerState, form: str, starter: Starter = start_program
) -> AsyncIterator[None]:
    """Load journals into the database for the block, and all remaining rows at its end. Do nothing without a ledger.
    `state` is updated from the reports of the process, whose log has the given form."""
    if settings is None:
        yield
        return
    loader = LoaderProcess(settings, state, form, starter)
    running = SharedTask(loader.run)
    running.start()
    try:
        yield
    finally:
        loader.end()
        try:
            await running.run()
        finally:
            await running.aclose()


class LoaderProcess:
    """A runner of the process from `run` until `end`, and then until it has loaded the remaining rows."""

    def __init__(self, settings: LedgerSettings, state: LedgerState, form: str, starter: Starter) -> None:
        self.state = state
        self.pid = 0
        self._settings = settings
        self._order = encode_order(settings, form)
        self._starter = starter
        self._ending = asyncio.Event()
        self._trouble: str | None = None
        self._log = logging.getLogger("dragoman")

    def end(self) -> None:
        """Let the process load the remaining rows and end. Call this when every journal has been closed."""
        self._ending.set()

    async def run(self) -> None:
        """Start the process, and restart it when it ends. Return when it has ended after `end` was called."""
        now, wait = asyncio.get_running_loop().time, FIRST_WAIT
        while True:
            began, last = now(), self._ending.is_set()
            why = await self._run_once()
            if self._ending.is_set() and (last or not why):
                break
            wait = FIRST_WAIT if now() - began >= QUICK_END else wait
            self._note_down(why or "the ledger's loader ended by itself")
            await self._wait(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        if why:
            self._log.warning("%s; the journals in %s remain", why, self._settings.journals)

    async def _run_once(self) -> str:
        """Start the process and wait for its end. Return the reason of a failure, or an empty text."""
        try:
            child = await self._starter()
        except OSError as error:
            return f"the ledger's loader cannot be started: {error.strerror or error}"
        self.pid = child.process.pid
        try:
            async with Tasks() as beside:
                beside.start(self._end_in_time(child))
                child.writer.write(self._order)
                await self._follow(child.reader)
                # When the gateway ends, `_end_in_time` limits this wait. The process has loaded all rows by then, but
                # it has a low priority, and beside busy processes its interpreter takes seconds to end.
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._ending.is_set() else END_SLACK):
                        await child.process.wait()
        finally:
            child.writer.close()
            if child.process.returncode is None:
                child.process.kill()
            status = await child.process.wait()
        if not status:
            return ""
        how = f"on {Signals(-status).name}" if status < 0 else f"with status {status}"
        return f"the ledger's loader (process {self.pid}) ended {how}"

    async def _end_in_time(self, child: Child) -> None:
        """When this process ends, notify the loader by closing the link, and kill it if it takes too long."""
        await self._ending.wait()
        with suppress(OSError):  # The process has just ended.
            child.writer.write_eof()
        await asyncio.sleep(STOP_TIMEOUT + END_SLACK)
        child.process.kill()

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        """Apply the reports of the process until it ends or sends no report in time."""
        before = LedgerState(trouble=self._trouble)
        with suppress(
            TimeoutError, ConnectionError, ValueError
        ):  # ValueError means an incomplete report, or a line that is no report.
            while True:
                async with asyncio.timeout(REPORT_TIMEOUT):
                    line = await reader.readline()
                if not line.endswith(b"\n"):
                    return
                report = decode_report(line)
                self.state.follow(report, before)
                if self._trouble is not None:
                    self._log.info("the ledger is loaded again, by process %d", self.pid)
                before, self._trouble = report, None

    def _note_down(self, why: str) -> None:
        """Note that no process loads. The log reports each of several equal reasons once."""
        self.state.load_errors += 1
        self.state.loading = True  # No other process loads, so the backlog is this gateway's.
        if why != self._trouble:
            self._log.error("%s; requests stay in the journals in %s", why, self._settings.journals)
        self._trouble = self.state.trouble = why

    async def _wait(self, seconds: float) -> None:
        """Wait until the next start is due, or until `end` is called. Meanwhile the ledger falls behind and the
        journals grow."""
        now, state = asyncio.get_running_loop().time, self.state
        until = now() + seconds
        while (left := until - now()) > 0 and not self._ending.is_set():
            began = now()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, MEASURE_EVERY)):
                    await self._ending.wait()
            state.behind += now() - began
            with suppress(OSError):  # The journal itself reports the error of its folder.
                state.journal_bytes = await asyncio.to_thread(journal_bytes, self._settings.journals)
