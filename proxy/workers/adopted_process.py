"""Child processes that this process did not fork itself but adopted from a child of its own, on Linux.

A process whose parent ends becomes a child of its nearest ancestor that is a "subreaper". So a child can fork processes
for this one, which waits for them and learns how they ended, whatever becomes of that child. Sources: prctl(2),
pidfd_open(2); Linux 5.3 or newer has all of it.
"""

import asyncio
import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SET_CHILD_SUBREAPER: Final = 36
"""The number of the option in linux/prctl.h."""

UNKNOWN: Final = 255
"""The exit status where it is lost; asyncio's own processes have the same."""

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_ZERO: Final = ctypes.c_ulong(0)


def can_adopt() -> bool:
    """Return whether this system has what `adopting` and AdoptedProcess need."""
    if not hasattr(_LIBC, "prctl") or not hasattr(os, "pidfd_open"):
        return False
    try:
        descriptor = os.pidfd_open(os.getpid())
        try:
            signal.pidfd_send_signal(descriptor, 0)
        finally:
            os.close(descriptor)
        with adopting():
            return True
    except OSError:  # an older kernel, or a sandbox that forbids the call
        return False


@contextmanager
def adopting() -> Iterator[None]:
    """Adopt descendants whose parents end during the block, and none that end later: they would stay as zombies, for
    nobody here waits for them. Raises OSError."""
    _set_subreaper(1)
    try:
        yield
    finally:
        _set_subreaper(0)


def _set_subreaper(on: int) -> None:
    if _LIBC.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(on), _ZERO, _ZERO, _ZERO):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class AdoptedProcess:
    """An adopted child, with what its owner needs of asyncio's Process. Nobody else may wait for it: until it has been
    waited for here, no other process gets its number."""

    def __init__(self, pid: int) -> None:
        """Begin to wait, on the running loop. Raises OSError."""
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._status: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._take_status)

    @property
    def returncode(self) -> int | None:
        """The exit status, or the negative number of the signal that ended it; None while it runs. UNKNOWN where this
        process was started so that the system reaps its children."""
        return self._status.result() if self._status.done() else None

    async def wait(self) -> int:
        """Return `returncode` once it has ended."""
        return await asyncio.shield(self._status)

    def kill(self) -> None:
        """Send SIGKILL unless it has been waited for."""
        if not self._status.done():
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def _take_status(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:
            self._status.set_result(UNKNOWN)
        else:
            self._status.set_result(os.waitstatus_to_exitcode(status))
