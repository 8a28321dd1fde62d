"""Answers held against constraints in processes of their own, which may be ended when one costs too much.

Never compiles or runs a client's schema or pattern in this process. The processes are started when they are needed, at
most MAX_PROCESSES, and ended when they have had nothing to do for a while; no team has more than one of them at a time.
"""

import asyncio
import hashlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL
from collections import OrderedDict
from typing import Final

from providers.verify import AnswerCheck, verifier
from proxy.check_process import ANSWER_HEAD, FAILED, Verdict, answer_head, question
from proxy.child_process import Child, start_child
from proxy.fair_slots import FairSlots

MAX_PROCESSES: Final = 2

IDLE_SECONDS: Final = 60.0
"""How long a process without a question is kept, and up to twice as long."""

LAST_RESORT: Final = 15.0
"""Seconds of wall time for one question. CPU time is what is limited; this is for a process that does not get any."""

KEPT_PROBLEMS: Final = 1024
"""Constraints of which it is known whether they compile."""


class TooCostly(Exception):
    """A check took more CPU time, memory or stack than one may; the message says which, as far as it is known."""


class CheckFailed(Exception):
    """No process could be started, or it ended without having been asked too much."""


class AnswerChecks:
    """The processes of one gateway process. `aclose` ends them; what is under way then raises TooCostly."""

    def __init__(self) -> None:
        self._slots = FairSlots(MAX_PROCESSES)
        self._idle: list[_CheckProcess] = []
        self._all: set[_CheckProcess] = set()
        self._problems: OrderedDict[bytes, str | None] = OrderedDict()
        self._log = logging.getLogger("dragoman")

    async def problem(self, check: AnswerCheck, owner: str) -> str | None:
        """Why the constraint cannot be checked, as a clause for the client; None when it can. Raises CheckFailed.

        `owner` is the team, or the client where there are no teams: owners take turns.
        """
        if not check.compiled:
            return None
        key = hashlib.blake2b(check.kind.encode() + check.written, digest_size=16).digest()
        if key not in self._problems:
            try:
                verdict, reason = await self._ask(check, None, owner)
            except TooCostly as error:
                verdict, reason = Verdict.UNCHECKABLE, f"the answer could not be checked, since to compile it {error}"
            self._problems[key] = reason if verdict is Verdict.UNCHECKABLE else None
            if len(self._problems) > KEPT_PROBLEMS:
                self._problems.popitem(last=False)
        return self._problems[key]

    async def breach(self, check: AnswerCheck, text: str, owner: str) -> str | None:
        """Why a text breaks the constraint, in words that hold nothing of it; None when it keeps it.

        Raises TooCostly and CheckFailed.
        """
        if check.brief(text):
            return verifier(check)(text)
        verdict, reason = await self._ask(check, text, owner)
        return None if verdict is Verdict.KEEPS else reason

    async def aclose(self) -> None:
        """End all processes."""
        self._idle.clear()
        await asyncio.gather(*(each.end() for each in tuple(self._all)))
        self._all.clear()

    async def run(self) -> None:
        """End processes that have nothing to do, for ever."""
        while True:
            resting = set(self._idle)
            await asyncio.sleep(IDLE_SECONDS)
            for process in resting.intersection(self._idle):
                if not process.asked:
                    self._idle.remove(process)
                    await self._end(process)
                process.asked = False

    async def _ask(self, check: AnswerCheck, text: str | None, owner: str) -> tuple[Verdict, str]:
        frame = question(check, text)
        async with self._slots.taken(owner):
            process = await self._taken()
            try:
                answer = await process.ask(frame)
            except BaseException:
                # Also of a cancelled request: the answer that is still to come would be taken for another's.
                await asyncio.shield(self._end(process))
                raise
            self._idle.append(process)
            return answer

    async def _taken(self) -> "_CheckProcess":
        """A process that waits for a question."""
        while self._idle:
            process = self._idle.pop()
            if not process.over:
                return process
            await self._end(process)
        try:
            process = await _CheckProcess.start()
        except OSError as error:
            self._log.error("a process to check answers cannot be started: %s", error.strerror or error)
            raise CheckFailed("no process to check answers could be started") from None
        self._all.add(process)
        return process

    async def _end(self, process: "_CheckProcess") -> None:
        self._all.discard(process)
        await process.end()


class _CheckProcess:
    """One process, which takes one question at a time. `asked` tells its owner whether it has been of use lately."""

    def __init__(self, child: Child) -> None:
        self.asked = True
        self._process, self._reader, self._writer = child

    @classmethod
    async def start(cls) -> "_CheckProcess":
        """Raises OSError."""
        return cls(await start_child("check_process", output=DEVNULL, environment=_environment()))

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._reader.at_eof()

    async def ask(self, frame: bytes) -> tuple[Verdict, str]:
        """The verdict and its reason. Raises TooCostly and CheckFailed."""
        self.asked = True
        try:
            async with asyncio.timeout(LAST_RESORT):
                self._writer.write(frame)
                await self._writer.drain()
                verdict, length = answer_head(await self._reader.readexactly(ANSWER_HEAD))
                return verdict, (await self._reader.readexactly(length)).decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            raise _why(await self._process.wait()) from None
        except TimeoutError:
            raise TooCostly(f"takes more than {LAST_RESORT:g} s") from None

    async def end(self) -> None:
        """End it at once, whatever it is doing."""
        self._writer.close()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


def _environment() -> dict[str, str]:
    """What the interpreter needs of this process's environment, and none of the secrets in it. A backtrace made while
    there is no memory left hangs, so Rust makes none."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "LD_", "DYLD_"))}
    return {**kept, "RUST_BACKTRACE": "0"}


def _why(status: int) -> TooCostly | CheckFailed:
    """What the status of a process says that ended in the middle of a question."""
    if status == -signal.SIGPROF:
        return TooCostly("takes too much time")
    if status in (-signal.SIGSEGV, -signal.SIGBUS):
        return TooCostly("nests too deeply")
    if status in (-signal.SIGABRT, -signal.SIGKILL, FAILED):
        return TooCostly("takes too much memory")  # Rust aborts, Python raises MemoryError, the kernel's killer kills
    return CheckFailed(f"the process that checks answers ended with status {status}")
