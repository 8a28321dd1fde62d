"""The idle connections, in one list for each destination, with one timer for all of them."""

import asyncio
from typing import Final

from proxy.http_client.http1_connection import Http1Connection
from proxy.loop_clock import loop_clock

SWEEP_EVERY: Final = 1.0
"""Seconds between two searches for connections that have been idle for too long, while any connection is idle. A
connection is never used after its idle time, however long it stays open."""

CLOSING_ITERATIONS: Final = 16
"""The most event loop iterations in which aborted connections close. Plain connections take one iteration, TLS
connections two."""


class ConnectionPool:
    """The pool of connections, without a limit on their number. A connection with the key `K` serves only calls with
    this key."""

    __slots__ = ("_closed", "_idle", "_loop", "_now", "_open", "_timer")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = loop_clock()
        self._idle: dict[object, list[Http1Connection]] = {}
        self._open: set[Http1Connection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def in_use(self) -> int:
        """The number of connections that serve a call."""
        return len(self._open) - sum(connection.state == "idle" for connection in self._open)

    def take(self, key: object) -> Http1Connection | None:
        """Return the idle connection that was used last; `None` if there is none. Connections that have received data
        or have ended are closed."""
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if self._now() < connection.idle_until and connection.has_no_input:
                return connection
            connection.abort()
        return None

    def remember(self, connection: Http1Connection) -> None:
        self._open.add(connection)
        if self._closed:
            connection.abort()

    def take_back(self, connection: Http1Connection) -> None:
        connection.idle_until = self._now() + connection.may_idle
        self._idle.setdefault(connection.key, []).append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(SWEEP_EVERY, self._sweep)

    def forget(self, connection: Http1Connection) -> None:
        """Remove a closed connection. If it was idle, it stays in its list until it is taken or swept."""
        self._open.discard(connection)

    def close_idle(self) -> None:
        """Close every idle connection."""
        for idle in self._idle.values():
            for connection in idle:
                connection.abort()
        self._idle.clear()

    def _sweep(self) -> None:
        now, kept = self._now(), {}
        for key, idle in self._idle.items():
            for connection in idle:
                if now >= connection.idle_until:
                    connection.abort()
            if alive := [connection for connection in idle if connection.state == "idle"]:
                kept[key] = alive
        self._idle = kept
        self._timer = self._loop.call_later(SWEEP_EVERY, self._sweep) if kept else None

    async def aclose(self) -> None:
        """Close every connection, including connections in use, and wait until the event loop has closed them."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._idle.clear()
        for _ in range(CLOSING_ITERATIONS):
            for connection in self._open:
                connection.abort()
            if not self._open:
                return
            await asyncio.sleep(0)
