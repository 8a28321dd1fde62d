"""The composition root of one process: creates every long-lived object in order, and closes them in reverse order."""

import asyncio
import logging
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial

from config.sections.server_section import AdminSection, ServerSection
from proxy.accounting.gateway_lock import sole_gateway
from proxy.accounting.ledger_service import settings_of
from proxy.accounting.limits_and_ledger import LimitsAndLedger, limits_and_ledger
from proxy.accounting.limits_coordinator import SINGLE_PROCESS, Siblings
from proxy.admin.admin_endpoints import Admin
from proxy.admin.admin_server import AdminServer
from proxy.admin.failed_requests import FailedRequests
from proxy.admin.last_hour.hour_counter import HourCounter
from proxy.admin.recent_requests import RecentRequests
from proxy.admin.status import OneProcess, RequestWatch, StatusSource
from proxy.background_tasks import Work, background
from proxy.discovery.discovered_models import DiscoveredModels
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.dispatch.single_attempt import Dispatcher
from proxy.gateway.handle_request import Gateway
from proxy.hooks.team_hooks import TeamHooks
from proxy.http_client.http_transport import HttpTransport
from proxy.listener.cors_and_host_names import ADMIN, BrowserGuard
from proxy.listener.http_connection import PublicServer
from proxy.listener.tls import Presented, Secured
from proxy.off_loop.answer_check_pool import AnswerChecks
from proxy.off_loop.request_threads import OffLoop
from proxy.overload.admission_limits import Admission, AdmissionLimits, ShedRules
from proxy.overload.event_loop_lag import LagRules, Lags, LoopLag, Watchdog
from proxy.overload.malformed_requests import MalformedRequests
from proxy.overload.memory_usage import MemoryMeter, groups
from proxy.overload.refuse_before_parsing import EarlyRefusal
from proxy.overload.refusing_connection import EarlyRefusingServer
from proxy.overload.start_queue import StartQueue, StartQueueRules
from proxy.payload_log.payload_hook import attach_payload_log
from proxy.payload_log.payload_log import opened_payload_log
from proxy.process.choose_storage import GatewayFeatures, attach_features, set_up_storage, use_settings
from proxy.process.file_descriptors import client_share, when_exhausted
from proxy.process.freeze_watchdog import FreezeWatchdog
from proxy.process.heartbeat import Heartbeat
from proxy.process.huge_pages import use_huge_pages
from proxy.process.load_table import LoadedTable, Source
from proxy.process.plugins_in_use import PluginsInUse, plugins_in_use, sinks_of_process
from proxy.process.reload import Reloader
from proxy.process.request_observer import RequestObserver
from proxy.process.set_up_process import collect_by_load, late_services, log_table, objects_held, set_up_process
from proxy.process.shutdown import DRAINING, Shutdown, drain_or_stop
from proxy.process.start_listener import (
    OPERATOR_ACCEPTS,
    ListenerOpener,
    close_with,
    open_listener,
    scheme_of,
    url_of,
    with_reach,
)
from proxy.routing.resolve_model import targets_of_names
from proxy.routing.snapshot import CurrentSnapshot
from proxy.shared_state.redis_sync import SharedState
from proxy.telemetry.limit_metrics import ledger_families, limit_families
from proxy.telemetry.log_writer import ByteSink, LineWriter, unbuffered
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.table_metrics import ConfigurationFamilies, ExpiringKey
from proxy.tracing.trace_hook import attach_tracing
from proxy.tracing.tracing_service import TracingService
from proxy.upstream.transport import Transport
from proxy.vendor_credentials.authorizing_transport import AuthorizedTransport


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the listeners. With port 0 the system chooses a port."""

    host: str
    port: int
    admin_host: str
    admin_port: int


@dataclass(frozen=True, slots=True)
class ProcessOutputs:
    """The access log and the heartbeat of a serving process, and the siblings with which it shares limits."""

    log: ByteSink
    heartbeat: Heartbeat
    siblings: Siblings = SINGLE_PROCESS


@dataclass(frozen=True, slots=True)
class PublicGateway:
    """A gateway that receives requests. `url` has the actual port; `listener` accepts connections; the caller must run
    `services`."""

    gateway: Gateway
    dispatcher: Dispatcher
    admission: Admission
    transport: HttpTransport
    live: CurrentSnapshot
    metrics: Metrics
    status: OneProcess
    guard: BrowserGuard
    public: PublicServer
    listener: asyncio.Server
    presented: Presented
    url: str
    services: Sequence[Callable[[], Work]]
    discovered: DiscoveredModels
    limits: LimitsAndLedger
    shown: ConfigurationFamilies
    tracing: TracingService
    plugins: PluginsInUse
    features: GatewayFeatures

    @property
    def secured(self) -> Secured:
        """The TLS options of the listener's connections; empty without TLS."""
        return self.presented.secured()

    def objects_held(self) -> int:
        """Return the approximate number of objects that requests in flight and open connections hold."""
        return objects_held(self.gateway.in_flight, self.public.open_connections)

    async def use_table(self, table: LoadedTable) -> None:
        """Make a configuration current for requests that begin from now on."""
        self.live.swap(table.snapshot)
        self.plugins.use_guards(table)
        self.dispatcher.keep(table.snapshot)
        self.limits.use(table.snapshot)
        self.presented.exchange(table.tls)
        show_table(self.shown, table)
        use_settings(self.gateway, self.guard, table.loaded.config.server)
        await self.tracing.use(table.loaded.config.server.tracing, table.snapshot)
        await self.discovered.use(table.snapshot)
        await self.plugins.use_sinks(table)


@dataclass(frozen=True, slots=True)
class WholeGateway:
    """A public gateway, `front`, together with the operator's listener."""

    front: PublicGateway
    reloader: Reloader
    admin_url: str

    @property
    def url(self) -> str:
        """The URL of the public listener."""
        return self.front.url


@asynccontextmanager
async def public_gateway(
    table: LoadedTable,
    since: int,
    host: str,
    open_public: ListenerOpener,
    outputs: ProcessOutputs,
    rules: DeploymentRules | None = None,
) -> AsyncIterator[PublicGateway]:
    """Start the public part of the gateway on `host`. Leaving the block aborts requests in flight, unless the gateway
    was drained.

    `since` is the start of the gateway in unix seconds; `rules` replace the built-in rules. Raises OSError if the port
    is taken.
    """
    server = table.loaded.config.server
    async with AsyncExitStack() as stack:
        metrics, log, loop = Metrics(), logging.getLogger("dragoman"), asyncio.get_running_loop()
        metrics.config(table.snapshot.digest)
        lines, transport = LineWriter(outputs.log, log.warning, recovered=log.info), HttpTransport()
        stack.callback(lines.close)
        http = AuthorizedTransport(transport, loop.time)
        stack.push_async_callback(http.aclose)
        live, checks = CurrentSnapshot(table.snapshot, since), AnswerChecks()
        stack.push_async_callback(checks.aclose)
        off_loop = OffLoop(checks)
        stack.callback(off_loop.threads.close)
        dispatcher = Dispatcher(http, metrics, off_loop, rules, secrets=http.secrets)
        shared = _set_up_sharing(server, dispatcher)
        limits = await _set_up_limits(stack, dispatcher, table, shared, outputs.siblings)
        watch, observer, hooks = await _set_up_observers(stack, dispatcher, lines, table, limits)
        queue = StartQueue(StartQueueRules(), loop)

        def ticked(lags: Lags) -> None:
            outputs.heartbeat.beat()
            metrics.lag(lags.max)
            queue.tick()

        lag, memory = LoopLag(LagRules(), ticked), MemoryMeter(groups())
        maximum = AdmissionLimits(server.limits.requests, server.limits.streams, server.limits.body_bytes)
        admission = Admission(maximum, ShedRules(), lag.lags, queue, memory, random.random)
        gateway = Gateway(live, dispatcher, limits.team, observer.finished, admission, queue)
        gateway.on_begin, gateway.usage, gateway.hooks = outputs.heartbeat.begin, limits.reports.answer, hooks
        features = attach_features(gateway, dispatcher, live.now)
        attached = gateway, observer, metrics, table
        tracing, plugins = await _start_tracing(outputs.siblings, *attached), await _start_plugins(off_loop, *attached)
        stack.push_async_callback(_deliver_last, tracing, plugins)
        discovered = await _set_up_discovery(stack, gateway, http, table)
        presented, guard = Presented(table.tls), BrowserGuard(host, server.hosts, server.cors.origins)
        malformed, refused = MalformedRequests(observer.malformed), watch.hour.with_refusals(observer.refused)
        early = EarlyRefusal(gateway, admission, queue, server.max_body, guard, refused)
        public = EarlyRefusingServer(gateway.handle, server.max_body, early, guard, gateway.refuse, malformed)
        public.most_open = client_share()
        when_exhausted(partial(_close_idle, transport, public))
        listener = await open_public(public, presented.secured())
        close_with(stack, public, listener)
        stack.enter_context(Watchdog(lag, log))
        outputs.heartbeat.beat()  # requests may arrive before the first tick
        status = OneProcess(gateway, dispatcher, live, watch, discovered, limits)
        use_settings(gateway, guard, server)
        late = [*late_services(transport.dialer, table.snapshot), *limits.services]
        services = [lag.run, memory.run, checks.run, *set_up_storage(features, shared, server, metrics), *late]
        url, shown = url_of(scheme_of(server), host, listener), _set_up_metrics(dispatcher, table, memory)
        rest = (public, listener, presented, url, services, discovered, limits, shown, tracing, plugins, features)
        yield PublicGateway(gateway, dispatcher, admission, transport, live, metrics, status, guard, *rest)


def _close_idle(transport: HttpTransport, public: PublicServer) -> None:
    """Close idle connections: first connections to vendors, then connections of clients."""
    transport.pool.close_idle()
    public.close_idle()


@asynccontextmanager
async def running(
    source: Source,
    table: LoadedTable,
    listen: Addresses,
    log: ByteSink,
    rules: DeploymentRules | None = None,
    heartbeat: Heartbeat | None = None,
) -> AsyncIterator[WholeGateway]:
    """Start `public_gateway` and the operator's listener in this process. Raises OSError if a port is taken."""
    server = table.loaded.config.server
    outputs = ProcessOutputs(log, Heartbeat.private() if heartbeat is None else heartbeat)

    def open_public(public: PublicServer, secured: Secured) -> Awaitable[asyncio.Server]:
        return open_listener(public, listen.host, listen.port, secured)

    async with public_gateway(table, int(time.time()), listen.host, open_public, outputs, rules) as front:
        reloader = Reloader(source, table, front.metrics, front.use_table)
        services = [*front.services, *reload_services(reloader, server)]
        async with admin_listener(front.status, reloader, listen, server.admin) as admin_url, background(services):
            yield WholeGateway(front, reloader, admin_url)


@asynccontextmanager
async def admin_listener(
    status: StatusSource, reloader: Reloader, listen: Addresses, settings: AdminSection
) -> AsyncIterator[str]:
    """Open the operator's listener for the block and yield its URL. Raises OSError if the port is taken."""
    async with AsyncExitStack() as stack:
        guard = BrowserGuard(listen.admin_host, settings.hosts, (), ADMIN)
        admin = AdminServer(Admin(status, reloader, settings.token), guard)
        listener = await open_listener(admin, listen.admin_host, listen.admin_port, {}, OPERATOR_ACCEPTS)
        close_with(stack, admin, listener)
        yield url_of("http", listen.admin_host, listener)


def reload_services(reloader: Reloader, server: ServerSection) -> Iterator[Callable[[], Work]]:
    """Yield the services that reload the configuration: on request and, unless switched off, when its files change."""
    yield reloader.run
    if server.watch:
        yield reloader.watch


def show_table(shown: ConfigurationFamilies, table: LoadedTable) -> None:
    """Show the names, keys and certificate of a configuration in the metrics from now on."""
    served = (
        (name, tuple(each.label for each in targets if not each.out_of_service))
        for name, targets in targets_of_names(table.snapshot)
    )
    names = {name: labels for name, labels in served if labels}
    keys = (ExpiringKey(key.team.name, key.label, key.ends) for key in table.snapshot.keys.values())
    pair = table.loaded.pair
    shown.use(names, keys, None if pair is None else pair.ends)


def _set_up_metrics(dispatcher: Dispatcher, table: LoadedTable, memory: MemoryMeter) -> ConfigurationFamilies:
    """Return the metrics of the configuration, and add the metric of memory use."""
    shown = ConfigurationFamilies(lambda: dispatcher.deployments.breakers.states(dispatcher.now()))
    show_table(shown, table)
    dispatcher.metrics.watch_families(shown)
    dispatcher.metrics.watch_memory(lambda: memory.share)
    return shown


def _set_up_sharing(server: ServerSection, dispatcher: Dispatcher) -> SharedState | None:
    """Return the state shared with the other gateways of a Redis; `None` if the configuration does not share it."""
    if server.shared is None:
        return None
    breakers = dispatcher.deployments.breakers
    shared = SharedState(server.shared, breakers.apply_cooldowns)
    breakers.share(shared.cooldowns)
    dispatcher.metrics.shared(lambda: shared.up)
    return shared


async def _set_up_limits(
    stack: AsyncExitStack, dispatcher: Dispatcher, table: LoadedTable, shared: SharedState | None, siblings: Siblings
) -> LimitsAndLedger:
    """Return the limits of teams, and apply the limits of deployments to their calls."""
    made = limits_and_ledger(table.loaded, table.snapshot, shared, siblings)
    limits = await stack.enter_async_context(made)
    dispatcher.limits.registry = limits.registry
    dispatcher.limits.use(table.snapshot)
    metrics, registry, team = dispatcher.metrics, limits.registry, limits.team
    team.refused = metrics.rate_limited
    metrics.watch_families(limit_families(lambda: tuple(registry.views(*team.times())), lambda: registry.alone))
    if limits.ledger is not None:
        metrics.watch_families(ledger_families(limits.ledger.state))
    return limits


async def _set_up_observers(
    stack: AsyncExitStack, dispatcher: Dispatcher, lines: LineWriter, table: LoadedTable, limits: LimitsAndLedger
) -> tuple[RequestWatch, RequestObserver, TeamHooks]:
    """Return the records of past requests, the observer of all requests, and the hooks, including the payload log's."""
    loop, metrics, hooks = asyncio.get_running_loop(), dispatcher.metrics, TeamHooks()
    watch = RequestWatch(RecentRequests(loop.time), HourCounter(loop.time, time.time), FailedRequests(time.time), lines)
    observer = RequestObserver(metrics, lines, table.loaded.config.server.log, limits.ledger, soon=loop.call_soon)
    for shown in (watch.recent, watch.hour, watch.failed):
        observer.add("page", shown.add)
    if (place := table.loaded.payloads) is not None:
        payloads = await stack.enter_async_context(opened_payload_log(place))
        metrics.watch_families(payloads.counts.families)
        attach_payload_log(hooks, dispatcher.guard, payloads.received)
        observer.add("payload_log", payloads.finished)
    stack.callback(observer.report)
    return watch, observer, hooks


async def _deliver_last(tracing: TracingService, plugins: PluginsInUse) -> None:
    """Send the last traces and the last rows of sinks concurrently, so that neither uses up the time of the other."""
    await asyncio.gather(tracing.aclose(), plugins.aclose())


async def _start_tracing(
    siblings: Siblings, gateway: Gateway, observer: RequestObserver, metrics: Metrics, table: LoadedTable
) -> TracingService:
    """Return the tracing service; it traces requests if the configuration enables tracing."""
    set_traces = partial(attach_tracing, gateway.hooks, gateway.guard)
    tracing = TracingService(set_traces, worker=siblings.number if siblings.processes > 1 else None)
    await tracing.use(table.loaded.config.server.tracing, table.snapshot)
    observer.add("tracing", tracing.finished)
    metrics.watch_families(tracing.families)
    return tracing


async def _start_plugins(
    off_loop: OffLoop, gateway: Gateway, observer: RequestObserver, metrics: Metrics, table: LoadedTable
) -> PluginsInUse:
    """Return the plugins of the configuration; requests pass through them from now on."""
    sinks = sinks_of_process()
    observer.add("plugins", sinks.add)
    return await plugins_in_use(gateway.hooks, sinks, off_loop.threads, table, metrics)


async def _set_up_discovery(
    stack: AsyncExitStack, gateway: Gateway, http: Transport, table: LoadedTable
) -> DiscoveredModels:
    """Return the service that fetches vendors' lists of models. It uses the transport and the credentials of calls."""
    gateway.catalogue.discovered = discovered = DiscoveredModels(http)
    stack.push_async_callback(discovered.aclose)
    await discovered.use(table.snapshot)
    return discovered


async def serve(source: Source, table: LoadedTable, listen: Addresses) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return. A second signal ends at once; SIGHUP reloads."""
    server = table.loaded.config.server
    log = set_up_process(server.log.form)
    log_table(log, source)
    heartbeat, lines = Heartbeat.private(), unbuffered(sys.stdout)
    # Standard output is the access log, so the prints of plugins go to standard error.
    with redirect_stdout(sys.stderr), FreezeWatchdog(heartbeat, server.stall_limit, server.log.form):
        started = running(source, table, listen, lines, heartbeat=heartbeat)
        async with sole_gateway(settings_of(table.loaded)), started as app:
            shutdown = Shutdown()
            shutdown.listen()
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, app.reloader.request)
            for warning in table.warnings:
                log.warning("%s", warning)
            urls = with_reach(app.url, listen.host), with_reach(app.admin_url, listen.admin_host)
            use_huge_pages()
            log.info("listening on %s, admin on %s", *urls)
            async with background([partial(collect_by_load, app.front.objects_held)]):
                await shutdown.requested.wait()
                log.info(DRAINING, server.drain_timeout)
                await drain_or_stop(app.front, server, shutdown)
    log.info("stopped")
