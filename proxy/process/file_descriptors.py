"""File descriptors of this process: raise their limit, divide them, and log one line if no descriptor is free.

If no descriptor is free, asyncio stops accepting connections for a second and then tries again. Open connections are
still served.
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
"""Seconds between two log lines. asyncio (at least 3.11) reports as many failures per second as the backlog has
slots."""

CLOSE_IDLE_EVERY = 0.5
"""Seconds between two closings of idle connections."""

ACCEPT_RETRY = 2.0
"""Seconds within which asyncio has retried to accept. If the listener was closed meanwhile, the retry reports a bad
descriptor, as often as asyncio had reported that there were no descriptors."""


def no_descriptor_left(error: OSError) -> bool:
    """Return whether the error means that this process or the system has no free descriptor."""
    return error.errno in _EXHAUSTED


class AcceptFailureLog:
    """The exception handler of the event loop. If connections cannot be accepted, it logs that every LOGGED_EVERY
    seconds and calls `make_room` to close idle connections."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged = float("-inf")
        self._exhausted = float("-inf")
        self._closed_idle = float("-inf")
        self.close_idle: Callable[[], None] = lambda: None

    def __call__(
        self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]
    ) -> None:  # the type is asyncio's own
        """Handle an error as described for `loop.set_exception_handler`."""
        error = context.get("exception")
        now = loop.time()
        if not isinstance(error, OSError):
            loop.default_exception_handler(dict(context))
        elif no_descriptor_left(error):
            self._exhausted = now
            self._log_failure(error, now)
            if now - self._closed_idle >= CLOSE_IDLE_EVERY:
                self._closed_idle = now
                self.close_idle()
        elif error.errno != errno.EBADF or now - self._exhausted > ACCEPT_RETRY:
            loop.default_exception_handler(dict(context))

    def _log_failure(self, error: OSError, now: float) -> None:
        if now - self._logged >= LOGGED_EVERY:
            self._logged = now
            self._log.error("no connection can be accepted: %s", os.strerror(error.errno or errno.EMFILE))


def when_exhausted(close_idle: Callable[[], None]) -> None:
    """Set the function that the running loop calls if the process has no descriptor for a new connection."""
    handler = asyncio.get_running_loop().get_exception_handler()
    if isinstance(handler, AcceptFailureLog):
        handler.close_idle = close_idle


def raise_limit() -> int:
    """Raise the soft limit on descriptors to the hard limit and return it.

    A stream takes two descriptors, and the default of shells is 1024.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


OWN_DESCRIPTORS = 64
"""The number of descriptors that are reserved for other uses than connections of clients and vendors: listeners, files,
pipes, Redis, databases (34 were counted)."""

FEWEST_CLIENTS = 16


def client_share() -> int:
    """Return the most client connections for which each one also has a descriptor for a connection to a vendor."""
    granted, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(FEWEST_CLIENTS, (granted - OWN_DESCRIPTORS) // 2)
