"""Child processes that this process did not fork itself but adopted from one of its children, on Linux.

A process whose parent ends becomes a child of its nearest ancestor that is a "subreaper". Therefore a child can fork
processes for this one, which waits for them and gets their exit status, even if that child has ended. Sources:
prctl(2), pidfd_open(2); Linux 5.3 or newer supports all of it.
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
"""The exit status if the real status is lost; asyncio's processes use the same value."""

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_ZERO: Final = ctypes.c_ulong(0)


def can_adopt() -> bool:
    """Return whether this system has the system calls that `adopting` and AdoptedProcess need."""
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
    """Adopt the descendants whose parents end during the block. Descendants whose parents end later are not adopted:
    they would stay as zombies, because this process does not wait for them. Raises OSError."""
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
    """An adopted child, with the part of asyncio's Process that its owner needs. Only this object may wait for it:
    until this object has waited, no other process gets the child's number."""

    def __init__(self, pid: int) -> None:
        """Begin to wait, on the running loop. Raises OSError."""
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._status: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._take_status)

    @property
    def returncode(self) -> int | None:
        """The exit status, or the negative number of the signal that ended it; `None` while it runs. It is UNKNOWN if
        this process was started with a setting that makes the system reap its children."""
        return self._status.result() if self._status.done() else None

    async def wait(self) -> int:
        """Return `returncode` after the process has ended."""
        return await asyncio.shield(self._status)

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended and been waited for."""
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
