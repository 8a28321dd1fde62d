"""The composition root: every long-lived part is made here, in order, and closed here, in reverse.

Never holds request logic.
"""

import asyncio
import gc
import logging
import os
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from config.schema import ServerLimits
from proxy.admin import Admin
from proxy.admin import envelope as admin_envelope
from proxy.admission import Admission, Lids, ShedRules
from proxy.credentials.transport import AuthorizedTransport
from proxy.deadlines import Phase
from proxy.deployments import Rules
from proxy.descriptors import LoopComplaints, allow_all
from proxy.dispatch import Dispatcher
from proxy.gateway import Gateway
from proxy.lag import LagRules, LoopLag, Watchdog
from proxy.live import Live
from proxy.logs import LINES, set_up
from proxy.memory import MemoryMeter, groups
from proxy.metrics import Metrics
from proxy.record import RequestRecord
from proxy.reload import Reloader, Source, Table
from proxy.server import PublicServer
from proxy.upstream import HttpTransport
from proxy.writer import LineWriter, Sink, unbuffered

BACKLOG = 1024

ADMIN_BODY = 1024
"""Bytes of a body that the admin listener reads past; it takes none."""

SETTLE = 1.0
"""Seconds between closing the listener and asking whether anything is still running."""

LAST_WORDS = 2.0
"""Seconds that the last answers of a drain have to reach their clients."""

AT_ONCE = 0.05
"""Seconds that handlers have, and as many after they were told to end, where nobody waits for answers any more; aiohttp
takes 0 for no limit."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. Port 0 lets the system choose."""

    host: str
    port: int
    admin_host: str
    admin_port: int


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway that is up. `url` and `admin_url` have the real ports; `listener` accepts the public connections."""

    gateway: Gateway
    dispatcher: Dispatcher
    admission: Admission
    transport: HttpTransport
    reloader: Reloader
    public: PublicServer
    listener: asyncio.Server
    url: str
    admin_url: str


@asynccontextmanager
async def running(
    source: Source, table: Table, listen: Listen, log: Sink, rules: Rules | None = None
) -> AsyncIterator[Running]:
    """Bring the gateway up, and take it down at once on leaving; `drain` before that loses nothing.

    `log` receives one line per request; `rules` stand in for the built-in ones. Raises OSError when a port cannot be
    had.
    """
    server = table.loaded.config.server
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        metrics.config(table.snapshot.digest)
        own = logging.getLogger("dragoman")
        lines = LineWriter(log, own.warning)
        stack.callback(lines.close)

        line = LINES[server.log]

        def emit(record: RequestRecord) -> None:
            metrics.observe(record)
            lines.write(line(record))

        transport = HttpTransport()
        http = AuthorizedTransport(transport, asyncio.get_running_loop().time)
        stack.push_async_callback(http.aclose)
        live = Live(table.snapshot, int(time.time()))
        dispatcher = Dispatcher(http, metrics, rules)
        lag, memory = LoopLag(LagRules(), metrics.lag), MemoryMeter(groups())
        admission = Admission(lids_of(server.limits), ShedRules(), lag.lags, memory, random.random)
        gateway = Gateway(live, dispatcher, metrics, emit, admission)
        reloader = Reloader(source, table, live, metrics, dispatcher.keep)
        public = PublicServer(gateway.handle, server.max_body)
        listener = await asyncio.get_running_loop().create_server(public, listen.host, listen.port, backlog=BACKLOG)
        _close_with(stack, public, listener)
        admin = PublicServer(
            Admin(gateway, live, metrics, reloader, lines, server.admin.token).handle, ADMIN_BODY, admin_envelope
        )
        door = await asyncio.get_running_loop().create_server(admin, listen.admin_host, listen.admin_port)
        _close_with(stack, admin, door)
        stack.enter_context(Watchdog(lag, own))
        work = [reloader.run(), lag.run(), memory.run(), *([reloader.watch()] if server.watch else [])]
        async with _background(work):
            url = _url(listen.host, listener.sockets[0].getsockname()[1])
            admin_url = _url(listen.admin_host, door.sockets[0].getsockname()[1])
            yield Running(gateway, dispatcher, admission, transport, reloader, public, listener, url, admin_url)


def _close_with(stack: AsyncExitStack, server: PublicServer, listener: asyncio.Server) -> None:
    """Leave with the stack: first no new connections, then no new requests on the old ones, then no connections."""
    stack.push_async_callback(server.shutdown, AT_ONCE)
    stack.callback(server.pre_shutdown)
    stack.callback(listener.close)


@asynccontextmanager
async def _background(work: Iterable[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """The owner of every task that outlives a request; a crash in one takes the process down, loudly."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        yield
        for task in tasks:
            task.cancel()


def lids_of(limits: ServerLimits) -> Lids:
    """The table's limits of the process, as admission keeps them."""
    return Lids(limits.requests, limits.streams, limits.body_bytes)


def _url(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - shown
    return f"http://{shown}:{port}"


async def drain(app: Running, grace: float, limit: float) -> None:
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
    for clock in tuple(gateway.clocks):
        clock.expire(Phase.DRAIN)
    app.public.pre_shutdown()
    await app.public.shutdown(LAST_WORDS)


async def _stop_listening(app: Running) -> None:
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
    for connection in last:
        await loop.connect_accepted_socket(app.public, connection)


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


async def serve(source: Source, table: Table, listen: Listen) -> None:
    """Run until SIGTERM or SIGINT, drain, and return; a second signal ends at once. SIGHUP reloads the table."""
    server = table.loaded.config.server
    log = set_up(server.log)
    loop = asyncio.get_running_loop()
    allow_all()
    loop.set_exception_handler(LoopComplaints(log))
    async with running(source, table, listen, unbuffered(sys.stdout)) as app:
        first, second = asyncio.Event(), asyncio.Event()

        def stop() -> None:
            (second if first.is_set() else first).set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, app.reloader.request)
        for warning in table.warnings:
            log.warning("%s", warning)
        log.info("listening on %s, admin on %s", app.url, app.admin_url)
        # The modules and the table are here to stay; looking through them again and again holds everybody up for 40 ms.
        gc.freeze()
        await first.wait()
        log.info("draining, at most %g s; a second signal ends at once", server.drain_timeout)
        async with asyncio.TaskGroup() as group:
            draining = group.create_task(drain(app, server.drain_grace, server.drain_timeout), name="drain")
            impatient = group.create_task(second.wait(), name="second signal")
            await asyncio.wait((draining, impatient), return_when=asyncio.FIRST_COMPLETED)
            draining.cancel()
            impatient.cancel()
        if second.is_set():
            await app.public.shutdown(AT_ONCE)
    log.info("stopped")
