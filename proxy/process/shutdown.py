"""Shutdown: the signals that request it, and a drain that loses no request."""

import asyncio
import faulthandler
import os
import signal
import socket
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from types import FrameType
from typing import Protocol

from config.sections.server_section import ServerSection
from proxy.gateway.handle_request import Gateway
from proxy.listener.http_connection import PublicServer
from proxy.listener.tls import Secured
from proxy.process.c_signal_handlers import reset_after_first

SETTLE = 1.0
"""Seconds between closing the listener and checking that nothing is in flight."""

LAST_RESPONSES_TIMEOUT = 2.0
"""Seconds for the last responses of a drain to reach their clients."""

STOP_AT_ONCE_TIMEOUT = 0.05
"""Seconds for handlers to end by themselves, and the same again after they were cancelled, in a shutdown without a
drain. It is not 0, because aiohttp takes 0 as no limit."""

FORCED_EXIT_AFTER = 5.0
"""Seconds from the second signal until the process ends itself."""

DRAINING = "draining, at most %g s; a second signal ends at once"


class Drainable(Protocol):
    """A gateway that can be drained."""

    @property
    def gateway(self) -> Gateway: ...
    @property
    def public(self) -> PublicServer: ...
    @property
    def listener(self) -> asyncio.Server: ...
    @property
    def secured(self) -> Secured: ...


async def drain(app: Drainable, grace: float, limit: float) -> None:
    """Become not ready and send `Connection: close` with every response. After `grace` seconds accept no further
    connections, and wait until nothing is in flight.

    After `limit` seconds the remaining requests get an error, streams in-band. Another SETTLE seconds let clients on
    idle keep-alive connections notice that their connection closes. Without these seconds, about one request per client
    would fail at each restart.
    """
    gateway = app.gateway
    gateway.ready = False
    gateway.draining = True
    await asyncio.sleep(grace)
    await _stop_listening(app)
    await asyncio.sleep(min(SETTLE, limit))
    await _until_idle(gateway, limit)
    gateway.end_calls()
    app.public.pre_shutdown()
    await app.public.shutdown(LAST_RESPONSES_TIMEOUT)


async def _stop_listening(app: Drainable) -> None:
    """Close the listener and serve the connections in its backlog, which would otherwise be reset by the loop and the
    kernel."""
    loop = asyncio.get_running_loop()
    listeners = [socket.socket(fileno=os.dup(listening.fileno())) for listening in app.listener.sockets]
    for listening in app.listener.sockets:
        loop.remove_reader(listening.fileno())
    # Wait one event loop iteration for connections that the loop has accepted, because they cannot start after the
    # listener is closed.
    await asyncio.sleep(0)
    last = [connection for listener in listeners for connection in _backlog(listener)]
    app.listener.close()
    for listener in listeners:
        listener.close()
    async with asyncio.TaskGroup() as group:
        for connection in last:
            group.create_task(_serve_accepted(app, connection))


async def _serve_accepted(app: Drainable, connection: socket.socket) -> None:
    """Serve a connection that was accepted here; drop it if its TLS handshake fails or is late."""
    secured = app.secured
    if secured:
        secured["ssl_handshake_timeout"] = SETTLE
    with suppress(OSError):
        await asyncio.get_running_loop().connect_accepted_socket(app.public, connection, **secured)


def _backlog(listener: socket.socket) -> Iterator[socket.socket]:
    listener.setblocking(False)
    while True:
        try:
            connection, _ = listener.accept()
        except ConnectionAbortedError:
            continue
        except OSError:  # the backlog is empty, or there is no descriptor
            return
        connection.setblocking(False)
        yield connection


async def _until_idle(gateway: Gateway, limit: float) -> None:
    waiting = asyncio.timeout(limit)
    try:
        async with waiting:
            await gateway.idle.wait()
    except TimeoutError:
        if not waiting.expired():
            raise


class Shutdown:
    """Requests to end the process. The first one sets `requested`, which drains. The second one sets `urgent`, which
    does not wait for a drain."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.urgent = asyncio.Event()
        self._signals = 0

    def request(self) -> None:
        """Request a drain or, the second time, an immediate end."""
        (self.urgent if self.requested.is_set() else self.requested).set()

    def listen(self) -> None:
        """Let SIGTERM and SIGINT request a shutdown.

        The second signal ends the process even if the loop is frozen: after FORCED_EXIT_AFTER seconds if Python code
        runs, or at once (the default action) if native code has held the interpreter's lock since before the first
        signal.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.request)
            # The loop receives a signal through its wakeup descriptor, whichever Python function is the handler.
            signal.signal(number, self._on_signal)
            reset_after_first(number)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Count a signal; runs in the main thread between two bytecodes, whatever the loop does."""
        signal.signal(number, self._on_signal)  # makes the handler permanent, see reset_after_first
        self._signals += 1
        if self._signals == 2:
            # A C thread that does not need the interpreter; it writes the stacks of the process.
            faulthandler.dump_traceback_later(FORCED_EXIT_AFTER, exit=True)


async def run_unless(work: Coroutine[object, object, object], cancelled: asyncio.Event) -> None:
    """Run `work` to its end, or until `cancelled` is set."""
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work, name="drain")
        waiting = group.create_task(cancelled.wait(), name="second signal")
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        waiting.cancel()


async def drain_or_stop(app: Drainable, server: ServerSection, shutdown: Shutdown) -> None:
    """Drain with the times of the `server` section, or stop at once when the shutdown becomes urgent."""
    await run_unless(drain(app, server.drain_grace, server.drain_timeout), shutdown.urgent)
    if shutdown.urgent.is_set():
        app.gateway.end_calls()
        await app.public.shutdown(STOP_AT_ONCE_TIMEOUT)
