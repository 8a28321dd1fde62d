"""What happens when descriptors run out: how it is told, and how many there may be. Never closes one.

asyncio stops accepting for a second and tries again by itself; what is open stays served.
"""

import asyncio
import errno
import logging
import os
import resource
from collections.abc import Mapping
from typing import Any

_LACKS = frozenset({errno.EMFILE, errno.ENFILE})

TOLD_EVERY = 10.0
"""Seconds between two lines about it. asyncio (3.11 at least) reports as many failures a second as the backlog has
places, each with a traceback."""

AGAIN = 2.0
"""Seconds within which asyncio has tried again to accept; on a listener that was closed meanwhile it finds a bad
descriptor, as often as it had reported the lack."""


def lacking(error: OSError) -> bool:
    """Whether this process, or the system, has no descriptor left."""
    return error.errno in _LACKS


class LoopComplaints:
    """The event loop's exception handler: says rarely, and in one line, that connections cannot be accepted."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told = float("-inf")
        self._lacked = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:  # asyncio's own signature
        """See loop.set_exception_handler."""
        error = context.get("exception")
        now = loop.time()
        if not isinstance(error, OSError):
            loop.default_exception_handler(dict(context))
        elif lacking(error):
            self._lacked = now
            self._tell(error, now)
        elif error.errno != errno.EBADF or now - self._lacked > AGAIN:
            loop.default_exception_handler(dict(context))

    def _tell(self, error: OSError, now: float) -> None:
        if now - self._told >= TOLD_EVERY:
            self._told = now
            self._log.error("no connection can be accepted: %s", os.strerror(error.errno or errno.EMFILE))


def allow_all() -> int:
    """Raise the limit on descriptors to what the system grants without asking anybody; the limit then in force.

    A stream takes two, and shells grant 1024 by default.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
