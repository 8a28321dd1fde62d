"""File descriptors of this process: raise their limit, divide them, and log in one line that they have run out.

asyncio stops accepting for a second and tries again by itself; open connections stay served.
"""

import asyncio
import errno
import logging
import os
import resource
from collections.abc import Callable, Mapping
from typing import Any

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE})

LOGGED_EVERY = 10.0
"""Seconds between two lines: asyncio (3.11 at least) reports as many failures a second as the backlog has places."""

ROOM_EVERY = 0.5
"""Seconds between two times at which room is made."""

ACCEPT_RETRY = 2.0
"""Seconds within which asyncio has tried again to accept. On a listener that was closed meanwhile it finds a bad
descriptor, as often as it had reported that there was none."""


def lacking(error: OSError) -> bool:
    """Return whether this process, or the system, has no descriptor left."""
    return error.errno in _EXHAUSTED


class AcceptFailureLog:
    """The event loop's exception handler: logs every LOGGED_EVERY seconds that connections cannot be accepted, and has
    `make_room` close what is idle."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged = float("-inf")
        self._exhausted = float("-inf")
        self._made_room = float("-inf")
        self.make_room: Callable[[], None] = lambda: None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:  # asyncio's own signature
        """See loop.set_exception_handler."""
        error = context.get("exception")
        now = loop.time()
        if not isinstance(error, OSError):
            loop.default_exception_handler(dict(context))
        elif lacking(error):
            self._exhausted = now
            self._complain(error, now)
            if now - self._made_room >= ROOM_EVERY:
                self._made_room = now
                self.make_room()
        elif error.errno != errno.EBADF or now - self._exhausted > ACCEPT_RETRY:
            loop.default_exception_handler(dict(context))

    def _complain(self, error: OSError, now: float) -> None:
        if now - self._logged >= LOGGED_EVERY:
            self._logged = now
            self._log.error("no connection can be accepted: %s", os.strerror(error.errno or errno.EMFILE))


def when_exhausted(make_room: Callable[[], None]) -> None:
    """Have this called where the running loop's process finds no descriptor for a connection."""
    handler = asyncio.get_running_loop().get_exception_handler()
    if isinstance(handler, AcceptFailureLog):
        handler.make_room = make_room


def raise_limit() -> int:
    """Raise the soft limit on descriptors to the hard limit and return it.

    A stream takes two descriptors, and shells grant 1024 by default.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


OWN = 64
"""Descriptors that are neither a client's nor a vendor's: listeners, files, pipes, Redis, databases (counted: 34)."""

FEWEST_CLIENTS = 16


def client_share() -> int:
    """Return how many connections of clients leave each of them a descriptor for its vendor."""
    granted, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(FEWEST_CLIENTS, (granted - OWN) // 2)
