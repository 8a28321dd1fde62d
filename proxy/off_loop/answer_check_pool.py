"""Validates responses against constraints in separate processes. A process is ended if a check takes too much time,
memory or stack.

A client's schema or pattern is never compiled in this process. Processes are started when they are needed, at most
MAX_PROCESSES, and ended after they have been idle for a while. A team uses at most one process at a time.
"""

import asyncio
import hashlib
import logging
import signal
from asyncio.subprocess import DEVNULL
from collections import OrderedDict
from typing import Final

from providers.emulation.check_answer import AnswerCheck, compile_check
from proxy.off_loop.answer_check_process import FAILED, RESPONSE_HEAD, CheckVerdict, check_request, response_head
from proxy.off_loop.child_process import Child, bare_environment, end_child, start_child
from proxy.off_loop.fair_slots import FairSlots

MAX_PROCESSES: Final = 2

IDLE_SECONDS: Final = 60.0
"""A process that gets no request for this many seconds is ended, at the latest after twice this time."""

WALL_SECONDS: Final = 15.0
"""Seconds of wall time for one request. The actual limit is on CPU time; this one is for a process that gets no CPU
time."""

KEPT_PROBLEMS: Final = 1024
"""The most constraints for which the result of compiling is cached."""


class TooCostly(Exception):
    """The failure if a check took more CPU time, memory or stack than allowed; the message names the cause, as far as
    it is known."""


class CheckFailed(Exception):
    """The failure if no process could be started, or if it ended for another reason than its limits."""


class _EndedBefore(Exception):
    """The process had ended by itself after its last response, because it held too much memory. The caller uses another
    process."""


class AnswerChecks:
    """The checking processes of one gateway process. `aclose` ends them; a check in flight then raises TooCostly."""

    def __init__(self) -> None:
        self._slots = FairSlots(MAX_PROCESSES)
        self._idle: list[_CheckProcess] = []
        self._all: set[_CheckProcess] = set()
        self._problems: OrderedDict[bytes, str | None] = OrderedDict()
        self._log = logging.getLogger("dragoman")

    async def problem(self, check: AnswerCheck, owner: str) -> str | None:
        """Return why the constraint cannot be checked, as a clause for the client, or `None`. Raises CheckFailed.

        `owner` is the team, or the client if there are no teams; owners are served in turn.
        """
        if not check.compiled:
            return None
        key = hashlib.blake2b(check.kind.encode() + check.written, digest_size=16).digest()
        if key not in self._problems:
            try:
                verdict, reason = await self._check(check, None, owner)
            except TooCostly as error:
                verdict, reason = (
                    CheckVerdict.UNCHECKABLE,
                    f"the response could not be checked, since to compile it {error}",
                )
            self._problems[key] = reason if verdict is CheckVerdict.UNCHECKABLE else None
            if len(self._problems) > KEPT_PROBLEMS:
                self._problems.popitem(last=False)
        return self._problems[key]

    async def breach(self, check: AnswerCheck, text: str, owner: str) -> str | None:
        """Return why a text breaks the constraint, without quoting it, or `None`. Raises TooCostly and CheckFailed."""
        if check.brief(text):
            return compile_check(check)(text)
        verdict, reason = await self._check(check, text, owner)
        return None if verdict is CheckVerdict.KEEPS else reason

    async def aclose(self) -> None:
        """End all processes."""
        self._idle.clear()
        await asyncio.gather(*(each.end() for each in tuple(self._all)))
        self._all.clear()

    async def run(self) -> None:
        """End idle processes; runs without end."""
        while True:
            idle = set(self._idle)
            await asyncio.sleep(IDLE_SECONDS)
            for process in idle.intersection(self._idle):
                if not process.used:
                    self._idle.remove(process)
                    await self._end(process)
                process.used = False

    async def _check(self, check: AnswerCheck, text: str | None, owner: str) -> tuple[CheckVerdict, str]:
        request = check_request(check, text)
        async with self._slots.taken(owner):
            while True:
                process = await self._idle_process()
                try:
                    result = await process.check(request)
                except _EndedBefore:
                    await self._end(process)
                    continue
                except BaseException:
                    # The process is ended even if only this task was cancelled. Otherwise its late response would be
                    # read as the response to another request.
                    await asyncio.shield(self._end(process))
                    raise
                self._idle.append(process)
                return result

    async def _idle_process(self) -> "_CheckProcess":
        """Return a process that waits for a request. Raises CheckFailed."""
        while self._idle:
            process = self._idle.pop()
            if not process.ended:
                return process
            await self._end(process)
        try:
            process = await _CheckProcess.start()
        except OSError as error:
            self._log.error("a process to check responses cannot be started: %s", error.strerror or error)
            raise CheckFailed("no process to check responses could be started") from None
        self._all.add(process)
        return process

    async def _end(self, process: "_CheckProcess") -> None:
        self._all.discard(process)
        await process.end()


class _CheckProcess:
    """One process, which takes one request at a time. Each request sets `used`, and AnswerChecks resets it to find idle
    processes."""

    def __init__(self, child: Child) -> None:
        self.used = True
        self._has_responded = False
        self._child = child
        self._process, self._reader, self._writer = child

    @classmethod
    async def start(cls) -> "_CheckProcess":
        """Start a process. Raises OSError."""
        return cls(await start_child("proxy.off_loop.answer_check_process", output=DEVNULL, environment=_environment()))

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._reader.at_eof()

    async def check(self, request: bytes) -> tuple[CheckVerdict, str]:
        """Return the verdict and its reason. Raises TooCostly, CheckFailed and _EndedBefore."""
        self.used = True
        try:
            async with asyncio.timeout(WALL_SECONDS):
                self._writer.write(request)
                await self._writer.drain()
                verdict, length = response_head(await self._reader.readexactly(RESPONSE_HEAD))
                reason = (await self._reader.readexactly(length)).decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            status = await self._process.wait()
            raise _EndedBefore if self._has_responded and not status else _error_of(status) from None
        except TimeoutError:
            raise TooCostly(f"takes more than {WALL_SECONDS:g} s") from None
        self._has_responded = True
        return verdict, reason

    async def end(self) -> None:
        """End the process at once, even during a check."""
        await end_child(self._child)


def _environment() -> dict[str, str]:
    """Return the part of this process's environment that the interpreter needs, without secrets. Rust creates no
    backtraces, because creating one without memory hangs."""
    return {**bare_environment(), "RUST_BACKTRACE": "0"}


def _error_of(status: int) -> TooCostly | CheckFailed:
    if status == -signal.SIGPROF:
        return TooCostly("takes too much time")
    if status in (-signal.SIGSEGV, -signal.SIGBUS):
        return TooCostly("nests too deeply")
    if status in (-signal.SIGABRT, -signal.SIGKILL, FAILED):
        return TooCostly("takes too much memory")  # without memory Rust aborts, Python raises an error, Linux kills
    return CheckFailed(f"the process that checks responses ended with status {status}")
