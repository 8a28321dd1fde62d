"""Connections that wait for their next call, one list for each destination, and one timer for all of them."""

import asyncio
from typing import Final

from proxy.http_client.http1_connection import Http1Connection
from proxy.loop_clock import loop_clock

SWEEP_EVERY: Final = 1.0
"""Seconds between two searches for connections that have been idle for too long, as long as any is idle. None is handed
out after its time, however long it stays open."""

CLOSING_TURNS: Final = 16
"""Turns of the loop in which aborted connections close: one for plain ones, two under TLS."""


class ConnectionPool:
    """See the module; there is no limit on their number. A connection whose key is `K` serves only calls of `K`."""

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
        """Connections that serve a call."""
        return len(self._open) - sum(connection.state == "idle" for connection in self._open)

    def take(self, key: object) -> Http1Connection | None:
        """Return the idle connection that was used last, if there is one that still serves: a connection on which
        something has come, or that has ended, is closed."""
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if self._now() < connection.idle_until and connection.untouched:
                return connection
            connection.abort()
        return None

    def remember(self, connection: Http1Connection) -> None:
        """See Home."""
        self._open.add(connection)
        if self._closed:
            connection.abort()

    def take_back(self, connection: Http1Connection) -> None:
        """See Home."""
        connection.idle_until = self._now() + connection.may_idle
        self._idle.setdefault(connection.key, []).append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(SWEEP_EVERY, self._sweep)

    def forget(self, connection: Http1Connection) -> None:
        """See Home. An idle one stays in its list until it is taken or swept."""
        self._open.discard(connection)

    def close_idle(self) -> None:
        """Close every connection that serves no call."""
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
        """Close every connection, those in use as well, and wait until the loop has done so."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._idle.clear()
        for _ in range(CLOSING_TURNS):
            for connection in self._open:
                connection.abort()
            if not self._open:
                return
            await asyncio.sleep(0)
