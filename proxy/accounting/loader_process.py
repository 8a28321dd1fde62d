"""The process that loads the ledger, as its parent keeps it: started, started again when it ends, and let end last.

Loading takes some 10 us of CPU a row, and statements of many ms: within a process that serves, the interpreter's lock
would hold requests up for them. Without this process requests go on to be answered, and the journals grow up to their
limit; the log and the ledger's state say so.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from signal import Signals
from typing import Final

from proxy.accounting.loader_program import read_report, written_order
from proxy.background_tasks import SharedTask, Tasks
from proxy.ledger.journal_files import journal_bytes
from proxy.ledger.ledger_settings import LedgerSettings, LedgerState
from proxy.ledger.loading import LAST
from proxy.off_loop.child_process import Child, start_child

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0
"""Seconds before it is started again; each end within QUICK doubles them."""

QUICK: Final = 10.0

SILENCE: Final = 60.0
"""Seconds without a report after which it is taken for stuck, and killed."""

SLACK: Final = 3.0
"""Seconds that it has to end after the time for loading, or after its last report if the gateway goes on."""

LOOK_EVERY: Final = 1.0

Starter = Callable[[], Awaitable[Child]]
"""Starts the process. Raises OSError."""


async def start_program() -> Child:
    """Start it as a program of its own. Raises OSError."""
    return await start_child("proxy.accounting.loader_program")


@asynccontextmanager
async def loading(
    settings: LedgerSettings | None, state: LedgerState, form: str, starter: Starter = start_program
) -> AsyncIterator[None]:
    """Load journals into the database for the block, and all that is left at its end; nothing without a ledger. `state`
    is kept up with the process, whose log has the given form."""
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
    """Keeps the process alive from `run` until `end`, and then until it has loaded what was left."""

    def __init__(self, settings: LedgerSettings, state: LedgerState, form: str, starter: Starter) -> None:
        self.state = state
        self.pid = 0
        self._settings = settings
        self._order = written_order(settings, form)
        self._starter = starter
        self._ending = asyncio.Event()
        self._trouble: str | None = None
        self._log = logging.getLogger("dragoman")

    def end(self) -> None:
        """Let it load what there is, and end. To be called when every journal has been closed."""
        self._ending.set()

    async def run(self) -> None:
        """Start it, and start it again when it ends; return when it has ended after `end`."""
        now, wait = asyncio.get_running_loop().time, FIRST_WAIT
        while True:
            began, last = now(), self._ending.is_set()
            why = await self._one_life()
            if self._ending.is_set() and (last or not why):
                break
            wait = FIRST_WAIT if now() - began >= QUICK else wait
            self._down(why or "the ledger's loader ended by itself")
            await self._wait(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        if why:
            self._log.warning("%s; the journals in %s remain", why, self._settings.journals)

    async def _one_life(self) -> str:
        """Start it and wait for its end. Return what went wrong, an empty text where nothing did."""
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
                # At the end of the gateway `_end_in_time` limits this: it has loaded all, but it is nice, and beside
                # busy neighbours its interpreter takes seconds to end.
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._ending.is_set() else SLACK):
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
        """Once this process ends, tell it so by the end of its link, and kill it where that takes too long."""
        await self._ending.wait()
        with suppress(OSError):  # it has just ended
            child.writer.write_eof()
        await asyncio.sleep(LAST + SLACK)
        child.process.kill()

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        """Take over what it reports until it ends, or falls silent."""
        before = LedgerState(trouble=self._trouble)
        with suppress(TimeoutError, ConnectionError, ValueError):  # the last for half a report, or none of ours
            while True:
                async with asyncio.timeout(SILENCE):
                    line = await reader.readline()
                if not line.endswith(b"\n"):
                    return
                report = read_report(line)
                self.state.follow(report, before)
                if self._trouble is not None:
                    self._log.info("the ledger is loaded again, by process %d", self.pid)
                before, self._trouble = report, None

    def _down(self, why: str) -> None:
        """Note that nobody loads. The log has a reason once for each row of equal ones."""
        self.state.load_errors += 1
        self.state.loading = True  # nobody else's work: what is behind is this gateway's
        if why != self._trouble:
            self._log.error("%s; requests are kept in %s meanwhile", why, self._settings.journals)
        self._trouble = self.state.trouble = why

    async def _wait(self, seconds: float) -> None:
        """Wait for the next start, or the end. The ledger falls behind meanwhile, and the journals grow."""
        now, state = asyncio.get_running_loop().time, self.state
        until = now() + seconds
        while (left := until - now()) > 0 and not self._ending.is_set():
            began = now()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_EVERY)):
                    await self._ending.wait()
            state.behind += now() - began
            with suppress(OSError):  # the journal itself says what is wrong with its folder
                state.journal_bytes = await asyncio.to_thread(journal_bytes, self._settings.journals)
