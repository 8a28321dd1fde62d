"""The composition root of one process: every long-lived part is made here, in order, and closed here, in reverse.

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
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any

from config.server import Admin as AdminSettings
from config.server import Server, ServerLimits
from proxy.admin import Admin
from proxy.admin import envelope as admin_envelope
from proxy.admission import Admission, Lids, Reason, ShedRules
from proxy.answer_checks import AnswerChecks
from proxy.browser_guard import ADMIN, BrowserGuard
from proxy.credentials.transport import AuthorizedTransport
from proxy.deployments import Rules
from proxy.descriptors import LoopComplaints, allow_all
from proxy.dispatch import Dispatcher
from proxy.door import Door
from proxy.ending import AT_ONCE, DRAINING, Ending, drain_or_stop
from proxy.gateway import Gateway, outcome_of
from proxy.guarded import GuardedServer
from proxy.lag import LagRules, Lags, LoopLag, Watchdog
from proxy.line import Line, LineRules
from proxy.live import Live
from proxy.logs import DOOR_LINES, LINES, MALFORMED_LINES, set_up
from proxy.malformed import Malformed
from proxy.memory import MemoryMeter, groups
from proxy.metrics import Metrics
from proxy.native_memory import return_large_buffers
from proxy.off_loop import OffLoop
from proxy.operated import OneProcess, Operated
from proxy.pulse import Pulse
from proxy.record import RequestRecord
from proxy.reload import EMBEDDED, Reloader, Source, Table
from proxy.server import PublicServer
from proxy.shared import SharedState
from proxy.standstill import LastLine
from proxy.tls import Presented, Secured, keep_small_buffers
from proxy.upstream import HttpTransport
from proxy.writer import LineWriter, Sink, unbuffered

BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted."""

ACCEPTED_AT_ONCE = 32
"""Connections that are accepted in one turn of the loop. asyncio (3.11 at least) takes as many as the backlog holds,
which makes everybody wait while a crowd arrives."""

YOUNG = 10_000
"""Objects that may come before the collector looks for cycles among them. At 700, its own default, every full round
through what 1,500 requests under way hold takes 160 ms, and there is one in each second."""

ADMIN_BODY = 1024
"""Bytes of a body that the admin listener reads past; it takes none."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. Port 0 lets the system choose."""

    host: str
    port: int
    admin_host: str
    admin_port: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What a serving process lets others see: a line of the access log for each request, and its loop's pulse."""

    log: Sink
    pulse: Pulse


Work = Coroutine[None, None, None]


@dataclass(frozen=True, slots=True)
class Serving:
    """A gateway that takes requests. `url` has the real port; `listener` accepts the public connections; `work` is
    what has to run beside it."""

    gateway: Gateway
    dispatcher: Dispatcher
    admission: Admission
    transport: HttpTransport
    live: Live
    metrics: Metrics
    operated: OneProcess
    guard: BrowserGuard
    public: PublicServer
    listener: asyncio.Server
    presented: Presented
    url: str
    work: Sequence[Callable[[], Work]]

    @property
    def secured(self) -> Secured:
        """How its connections are secured."""
        return self.presented.secured()

    async def take(self, table: Table) -> None:
        """Put a table in force for requests that begin from now on."""
        self.live.swap(table.snapshot)
        self.dispatcher.keep(table.snapshot)
        self.presented.exchange(table.tls)
        server = table.loaded.config.server
        self.guard.exchange(server.hosts, server.cors.origins)


@dataclass(frozen=True, slots=True)
class Running(Serving):
    """The same with an operator's listener."""

    reloader: Reloader
    admin_url: str


class Telling:
    """What becomes of requests, for the metrics and the access log of the form `json` or `text`."""

    def __init__(self, metrics: Metrics, lines: LineWriter, form: str) -> None:
        self._metrics = metrics
        self._lines = lines
        self._line = LINES[form]
        self._door_line = DOOR_LINES[form]
        self._malformed_line = MALFORMED_LINES[form]

    def finished(self, record: RequestRecord) -> None:
        """One that has ended."""
        self._metrics.observe(record)
        self._lines.write(self._line(record))

    def refused(self, surface: str, reason: Reason, count: int) -> None:
        """So many that were not let in."""
        self._metrics.shed_at_the_door(surface, reason, count)
        self._lines.write(self._door_line(surface, reason, count))

    def malformed(self, counts: Mapping[int, int]) -> None:
        """So many, by status, that were no requests."""
        for status, count in counts.items():
            self._metrics.malformed(status, outcome_of(status), count)
        self._lines.write(self._malformed_line(counts))


async def listening(public: PublicServer, host: str, port: int, options: Mapping[str, Any]) -> asyncio.Server:
    """Begin to accept connections; `options` are more of the loop's `create_server`. Raises OSError."""
    listener = await asyncio.get_running_loop().create_server(public, host, port, backlog=ACCEPTED_AT_ONCE, **options)
    for each in listener.sockets:
        with socket.socket(fileno=os.dup(each.fileno())) as same:
            same.listen(BACKLOG)
    return listener


Opener = Callable[[PublicServer, Secured], Awaitable[asyncio.Server]]
"""Begins to accept connections for a server, within TLS or not. Raises OSError."""


@asynccontextmanager
async def serving(
    table: Table, since: int, host: str, opener: Opener, shown: Shown, rules: Rules | None = None
) -> AsyncIterator[Serving]:
    """Bring the public half of the gateway up on `host`, and take it down at once on leaving; `drain` before that loses
    nothing.

    `since` is when it started, in unix seconds; `rules` stand in for the built-in ones. Raises OSError when the port
    cannot be had.
    """
    server = table.loaded.config.server
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        metrics.config(table.snapshot.digest)
        own = logging.getLogger("dragoman")
        lines = LineWriter(shown.log, own.warning)
        stack.callback(lines.close)
        telling = Telling(metrics, lines, server.log)
        transport = HttpTransport()
        http = AuthorizedTransport(transport, asyncio.get_running_loop().time)
        stack.push_async_callback(http.aclose)
        live = Live(table.snapshot, since)
        checks = AnswerChecks()
        stack.push_async_callback(checks.aclose)
        off_loop = OffLoop(checks)
        stack.callback(off_loop.threads.close)
        dispatcher = Dispatcher(http, metrics, off_loop, rules, secrets=http.secrets)
        shared = None if server.shared is None else SharedState(server.shared, dispatcher.deployments.healths)
        if shared is not None:
            metrics.shared(lambda: shared.up)
        pulse = shown.pulse
        loop = asyncio.get_running_loop()
        queue = Line(LineRules(), loop.time, loop.call_soon)

        def ticked(lags: Lags) -> None:
            pulse.beat()
            metrics.lag(lags.max)
            queue.tick(lags.last)

        lag, memory = LoopLag(LagRules(), ticked), MemoryMeter(groups())
        admission = Admission(lids_of(server.limits), ShedRules(), lag.lags, queue, memory, random.random)
        gateway = Gateway(live, dispatcher, metrics, telling.finished, admission, queue)
        gateway.begun = pulse.begin
        presented = Presented(table.tls)
        guard = BrowserGuard(host, server.hosts, server.cors.origins)
        door = Door(gateway, admission, queue, server.max_body, guard, telling.refused)
        malformed = Malformed(telling.malformed)
        public = GuardedServer(gateway.handle, server.max_body, door, guard, gateway.refuse, malformed)
        listener = await opener(public, presented.secured())
        _close_with(stack, public, listener)
        stack.enter_context(Watchdog(lag, own))
        pulse.beat()  # requests may come before the first tick
        operated = OneProcess(gateway, live, metrics, lines)
        url = url_of(scheme_of(server), host, listener)
        rest = (public, listener, presented, url)
        ticking = [lag.run, memory.run, checks.run, *([] if shared is None else [shared.run])]
        yield Serving(gateway, dispatcher, admission, transport, live, metrics, operated, guard, *rest, ticking)


@asynccontextmanager
async def running(
    source: Source, table: Table, listen: Listen, log: Sink, rules: Rules | None = None, pulse: Pulse | None = None
) -> AsyncIterator[Running]:
    """The whole gateway in this process, as `serving` brings its public half up; by `pulse` its loop can be guarded.
    Raises OSError when a port cannot be had."""
    server = table.loaded.config.server
    shown = Shown(log, Pulse.private() if pulse is None else pulse)

    def opener(public: PublicServer, secured: Secured) -> Awaitable[asyncio.Server]:
        return listening(public, listen.host, listen.port, secured)

    async with serving(table, int(time.time()), listen.host, opener, shown, rules) as app:
        reloader = Reloader(source, table, app.metrics, app.take)
        async with operating(app.operated, reloader, listen, server.admin) as admin_url:
            own = {field.name: getattr(app, field.name) for field in fields(app)}
            async with background([*app.work, *reloads(reloader, server)]):
                yield Running(**own, reloader=reloader, admin_url=admin_url)


@asynccontextmanager
async def operating(
    operated: Operated, reloader: Reloader, listen: Listen, settings: AdminSettings
) -> AsyncIterator[str]:
    """The operator's listener, for as long as the block; gives its address. Raises OSError when the port cannot be
    had."""
    async with AsyncExitStack() as stack:
        guard = BrowserGuard(listen.admin_host, settings.hosts, (), ADMIN)
        admin = PublicServer(Admin(operated, reloader, settings.token).handle, ADMIN_BODY, admin_envelope, guard)
        door = await asyncio.get_running_loop().create_server(admin, listen.admin_host, listen.admin_port)
        _close_with(stack, admin, door)
        yield url_of("http", listen.admin_host, door)


def reloads(reloader: Reloader, server: Server) -> Iterator[Callable[[], Work]]:
    """What looks out for reasons to load the table again."""
    yield reloader.run
    if server.watch:
        yield reloader.watch


def _close_with(stack: AsyncExitStack, server: PublicServer, listener: asyncio.Server) -> None:
    """Leave with the stack: first no new connections, then no new requests on the old ones, then no connections."""
    stack.push_async_callback(server.shutdown, AT_ONCE)
    stack.callback(server.pre_shutdown)
    stack.callback(listener.close)


@asynccontextmanager
async def background(works: Iterable[Callable[[], Work]]) -> AsyncIterator[None]:
    """The owner of every task that outlives a request; a crash in one takes the process down, loudly."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work()) for work in works]
        yield
        for task in tasks:
            task.cancel()


def lids_of(limits: ServerLimits) -> Lids:
    """The table's limits of the process, as admission keeps them."""
    return Lids(limits.requests, limits.streams, limits.body_bytes)


def scheme_of(server: Server) -> str:
    """How the public listener is addressed."""
    return "http" if server.tls is None else "https"


def url_of(scheme: str, host: str, listener: asyncio.Server) -> str:
    """The address of a listener on `host`; one that stands for all addresses can be called from this machine."""
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{listener.sockets[0].getsockname()[1]}"


def told_listening(url: str, host: str) -> str:
    """A listener's address for the log, with how far it reaches where that is further than one address."""
    reach = {"0.0.0.0": " (all addresses)", "::": " (all IPv6 addresses)"}.get(host, "")  # noqa: S104 - told
    return url + reach


def prepare(form: str) -> logging.Logger:
    """Make this process one that serves: its log, its descriptors, its last resort."""
    log = set_up(form)
    allow_all()
    keep_small_buffers()
    return_large_buffers()
    asyncio.get_running_loop().set_exception_handler(LoopComplaints(log))
    return log


def tell_table(log: logging.Logger, source: Source) -> None:
    """The first line of the log: which table is served."""
    if source.path is None:
        log.warning("%s", EMBEDDED)
    else:
        log.info("serving the table %s", source.title)


def settle_down() -> None:
    """Look for cycles among what requests leave only. The modules and the table are here to stay: looking through them
    again and again holds everybody up for 40 ms."""
    gc.freeze()
    gc.set_threshold(YOUNG)


async def serve(source: Source, table: Table, listen: Listen) -> None:
    """Run until SIGTERM or SIGINT, drain, and return; a second signal ends at once. SIGHUP reloads the table."""
    server = table.loaded.config.server
    log = prepare(server.log)
    tell_table(log, source)
    pulse = Pulse.private()
    with LastLine(pulse, server.stall_limit, server.log):
        async with running(source, table, listen, unbuffered(sys.stdout), pulse=pulse) as app:
            ending = Ending()
            ending.listen()
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, app.reloader.request)
            for warning in table.warnings:
                log.warning("%s", warning)
            own = told_listening(app.url, listen.host), told_listening(app.admin_url, listen.admin_host)
            log.info("listening on %s, admin on %s", *own)
            settle_down()
            await ending.first.wait()
            log.info(DRAINING, server.drain_timeout)
            await drain_or_stop(app, server, ending)
    log.info("stopped")
