"""How a gateway ends: who asks for it, and a drain that loses nothing. Never why it ends."""

import asyncio
import faulthandler
import os
import signal
import socket
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from types import FrameType
from typing import Protocol

from config.server import Server
from proxy.gateway import Gateway
from proxy.native_signals import reset_after_first
from proxy.server import PublicServer
from proxy.tls import Secured

SETTLE = 1.0
"""Seconds between closing the listener and asking whether anything is still running."""

LAST_WORDS = 2.0
"""Seconds that the last answers of a drain have to reach their clients."""

AT_ONCE = 0.05
"""Seconds that handlers have, and as many after they were told to end, where nobody waits for answers any more; aiohttp
takes 0 for no limit."""

LAST_CALL = 5.0
"""Seconds after the second signal within which the process has to have ended, before it is ended."""

DRAINING = "draining, at most %g s; a second signal ends at once"


class Front(Protocol):
    """What is drained."""

    @property
    def gateway(self) -> Gateway: ...
    @property
    def public(self) -> PublicServer: ...
    @property
    def listener(self) -> asyncio.Server: ...
    @property
    def secured(self) -> Secured: ...


async def drain(app: Front, grace: float, limit: float) -> None:
    """End well: not ready and `Connection: close` on every answer, after `grace` seconds no new connections, then wait.

    After `limit` seconds what is left gets an error, streams in-band. The second of patience lets clients on idle
    keep-alive connections learn that theirs closes: without it a deploy fails about one request per client.
    """
    gateway = app.gateway
    gateway.ready = False
    gateway.draining = True
    await asyncio.sleep(grace)
    await _stop_listening(app)
    await asyncio.sleep(min(SETTLE, limit))
    await _until_idle(gateway, limit)
    gateway.cut()
    app.public.pre_shutdown()
    await app.public.shutdown(LAST_WORDS)


async def _stop_listening(app: Front) -> None:
    """Close the listener and take on whoever is connected by then: the loop and the kernel would reset them."""
    loop = asyncio.get_running_loop()
    doors = [socket.socket(fileno=os.dup(listening.fileno())) for listening in app.listener.sockets]
    for listening in app.listener.sockets:
        loop.remove_reader(listening.fileno())
    # A turn for those that the loop has accepted: it cannot begin with them once the listener is closed.
    await asyncio.sleep(0)
    last = [connection for door in doors for connection in _waiting(door)]
    app.listener.close()
    for door in doors:
        door.close()
    async with asyncio.TaskGroup() as group:
        for connection in last:
            group.create_task(_take_on(app, connection))


async def _take_on(app: Front, connection: socket.socket) -> None:
    """Serve a connection that was accepted here; one that does not shake hands soon ends as it came."""
    secured = app.secured
    if secured:
        secured["ssl_handshake_timeout"] = SETTLE
    with suppress(OSError):
        await asyncio.get_running_loop().connect_accepted_socket(app.public, connection, **secured)


def _waiting(door: socket.socket) -> Iterator[socket.socket]:
    """The connections that nobody has accepted yet."""
    door.setblocking(False)
    while True:
        try:
            connection, _ = door.accept()
        except ConnectionAbortedError:
            continue
        except OSError:  # no more of them, or no descriptor for one
            return
        connection.setblocking(False)
        yield connection


async def _until_idle(gateway: Gateway, limit: float) -> None:
    """Returns when nothing is running, or after `limit` seconds."""
    waiting = asyncio.timeout(limit)
    try:
        async with waiting:
            await gateway.idle.wait()
    except TimeoutError:
        if not waiting.expired():
            raise


class Ending:
    """Who wants the process to end: `first` is set once it shall, `second` once nobody waits any longer."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self._signals = 0

    def ask(self) -> None:
        """Somebody wants it to end; whoever asks again does not want to wait."""
        (self.second if self.first.is_set() else self.first).set()

    def listen(self) -> None:
        """Let SIGTERM and SIGINT ask.

        The second signal ends the process also where the loop stands: after LAST_CALL seconds while Python code runs,
        at once (the default action) while native code has held the interpreter's lock since before the first one.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.ask)
            # The loop hears of a signal through its wakeup descriptor, whatever Python function is its handler.
            signal.signal(number, self._noticed)
            reset_after_first(number)

    def _noticed(self, number: int, frame: FrameType | None) -> None:
        """A signal has come; runs in the main thread between two bytecodes, whatever the loop does."""
        signal.signal(number, self._noticed)  # of which the next one is noticed too
        self._signals += 1
        if self._signals == 2:
            # A thread in C, which needs nothing of the interpreter; it writes where the process stood.
            faulthandler.dump_traceback_later(LAST_CALL, exit=True)


async def end(work: Coroutine[None, None, None], impatient: asyncio.Event) -> None:
    """Do the work of ending until it is done, or until somebody does not want to wait for it."""
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work, name="drain")
        waiting = group.create_task(impatient.wait(), name="second signal")
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        waiting.cancel()


async def drain_or_stop(app: Front, server: Server, ending: Ending) -> None:
    """End as the table says, or at once where somebody does not want to wait."""
    await end(drain(app, server.drain_grace, server.drain_timeout), ending.second)
    if ending.second.is_set():
        app.gateway.cut()
        await app.public.shutdown(AT_ONCE)
