"""The composition root of a gateway with several processes: creates the objects of the supervisor, opens the operator's
listener, handles signals, and runs the workers that serve."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Final

from config.sections.server_section import ServerSection
from proxy.accounting import loader_process
from proxy.accounting.gateway_lock import sole_gateway
from proxy.accounting.ledger_service import settings_of
from proxy.accounting.usage_reports import UsageReports
from proxy.admin.status import GatewayView, WorkerNow, combined, combined_ledger, limit_facts
from proxy.background_tasks import background
from proxy.ledger.ledger_settings import LedgerSettings, LedgerState
from proxy.ledger.usage_report import UsageResponse
from proxy.process.assemble_app import Addresses, admin_listener, reload_services
from proxy.process.load_table import LoadedTable, Source
from proxy.process.reload import Reloader
from proxy.process.set_up_process import log_table, set_up_process, tune_garbage_collector
from proxy.process.shutdown import DRAINING, LAST_RESPONSES_TIMEOUT, SETTLE, Shutdown, run_unless
from proxy.process.start_listener import scheme_of, url_of, with_reach
from proxy.routing.snapshot import CurrentSnapshot
from proxy.telemetry.cached_exposition import CachedExposition
from proxy.telemetry.limit_metrics import ledger_families
from proxy.telemetry.merged_metrics import merged
from proxy.telemetry.metrics import Metrics, exposition
from proxy.workers.restart_workers import WorkerPool
from proxy.workers.usable_cores import usable_cores
from proxy.workers.worker_main import WorkerSettings
from proxy.workers.worker_template import WorkerTemplate, start_program

STOP_TIMEOUT: Final = 2.0
"""The most seconds for workers to end on request. After that they are killed."""

DRAIN_SLACK: Final = 10.0
"""Seconds that are added to the configured time of a drain, because a busy machine is slow."""


class SeveralProcesses:
    """The status of a gateway that consists of a supervisor and its workers."""

    def __init__(
        self, live: CurrentSnapshot, metrics: Metrics, workers: WorkerPool, ledger: LedgerSettings | None
    ) -> None:
        self._live = live
        self._metrics = metrics
        self._workers = workers
        self._ledger = ledger
        self._loads = LedgerState()
        self._reports = UsageReports(ledger)
        self.exposition = CachedExposition(self._render)

    @property
    def ready(self) -> bool:
        """Whether the gateway takes requests."""
        return self._workers.ready

    async def view(self) -> GatewayView:
        """Return the data of the status page."""
        statuses = await self._workers.statuses()
        status = combined(status for _, status in statuses)
        written = [] if status.ledger is None else [status.ledger]
        ledger = await self._reports.now(combined_ledger([*written, self._loads]) or self._loads)
        workers = tuple(WorkerNow(worker.name, worker.digest, each.in_flight) for worker, each in statuses)
        live = self._live
        return GatewayView(live.snapshot, replace(status, ready=self.ready), ledger, live.since, live.now(), workers)

    async def limits(self, team: str | None) -> dict[str, object]:
        """Return the remaining amounts of all limits, or of the limits of a team."""
        statuses = await self._workers.statuses(team)
        return limit_facts(self._live.snapshot, combined(status for _, status in statuses), team, time.time())

    async def usage(self, query_string: str) -> UsageResponse:
        """Return the response to `GET /usage`."""
        statuses = await self._workers.statuses()
        unwritten = sum(status.ledger.unwritten for _, status in statuses if status.ledger is not None)
        self._reports.unwritten = lambda: unwritten
        return await self._reports.answer(query_string)

    @asynccontextmanager
    async def loading(self, form: str, starter: loader_process.Starter) -> AsyncIterator[None]:
        """Load the workers' journals into the ledger during the block, and their remaining rows at its end. `starter`
        starts the process that loads them, and `form` is the format of its log."""
        if self._ledger is not None:
            self._metrics.watch_families(ledger_families(self._loads))
        async with loader_process.loading(self._ledger, self._loads, form, starter):
            try:
                yield
            finally:
                await self._reports.aclose()

    async def _render(self) -> bytes:
        of_workers = await self._workers.families()
        return await asyncio.to_thread(lambda: exposition(merged(self._metrics.families(), of_workers)))


@asynccontextmanager
async def reserved(host: str, port: int) -> AsyncIterator[asyncio.Server]:
    """Reserve a port for the block without listening on it, so that no other program takes it while workers start and
    end. Raises OSError if it is taken."""
    loop = asyncio.get_running_loop()
    # If a port is bound with sharing, another gateway may already share it. So the port is bound without sharing first.
    exclusive = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    found = exclusive.sockets[0].getsockname()[1]
    exclusive.close()
    await exclusive.wait_closed()
    holder = await loop.create_server(asyncio.Protocol, host, found, start_serving=False, reuse_port=True)
    try:
        yield holder
    finally:
        holder.close()


async def supervise(
    source: Source, table: LoadedTable, listen: Addresses, count: int, template: WorkerTemplate | None = None
) -> str:
    """Run `count` workers, forked from `template`, until SIGTERM or SIGINT; let them drain, and return. A second signal
    ends them at once; SIGHUP reloads the configuration.

    Returns why the workers could not begin, or an empty string. Raises OSError if a port is taken.
    """
    server = table.loaded.config.server
    log = set_up_process(server.log.form)
    log_table(log, source)
    if count > (cores := usable_cores()):
        log.warning("%d workers on %d cores: more workers than cores serve no more requests", count, cores)
    async with AsyncExitStack() as stack:
        if template is not None:
            stack.callback(template.end)
        await stack.enter_async_context(sole_gateway(settings_of(table.loaded)))
        holder = await stack.enter_async_context(reserved(listen.host, listen.port))
        metrics = Metrics()
        metrics.config(table.snapshot.digest)
        live = CurrentSnapshot(table.snapshot, int(time.time()))
        port = holder.sockets[0].getsockname()[1]

        def settings(now: LoadedTable) -> WorkerSettings:
            place = (source.path, source.insecure_open, listen.host, port)
            return WorkerSettings(*place, live.since, now.loaded.copies, source.log, count)

        start_worker = start_program if template is None else template.start
        workers = WorkerPool(count, table, settings, metrics.worker_metrics(), start_worker)

        async def use_table(new: LoadedTable) -> None:
            live.swap(new.snapshot)
            await workers.use_table(new)

        reloader = Reloader(source, table, metrics, use_table)
        status = SeveralProcesses(live, metrics, workers, settings_of(table.loaded))
        admin_url = await stack.enter_async_context(admin_listener(status, reloader, listen, server.admin))
        # This block is the outermost, so that it ends after the workers have closed their journals.
        start_loader = loader_process.start_program if template is None else template.start_loader
        await stack.enter_async_context(status.loading(server.log.form, start_loader))
        shutdown = Shutdown()
        shutdown.listen()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
        for warning in table.warnings:
            log.warning("%s", warning)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(workers.run())
            await run_unless(workers.up.wait(), shutdown.requested)
            if not workers.failure and not shutdown.requested.is_set():
                public = with_reach(url_of(scheme_of(server), listen.host, holder), listen.host)
                admin = with_reach(admin_url, listen.admin_host)
                log.info("listening on %s with %d workers, admin on %s", public, count, admin)
                tune_garbage_collector()
                async with background(reload_services(reloader, server)):
                    await shutdown.requested.wait()
            if not workers.failure:
                log.info(DRAINING, server.drain_timeout)
                workers.drain()
                await run_unless(asyncio.wait((running,), timeout=drain_limit(server)), shutdown.urgent)
            workers.stop()
            await asyncio.wait((running,), timeout=STOP_TIMEOUT)
            workers.kill()
    log.info("stopped")
    return workers.failure


def drain_limit(server: ServerSection) -> float:
    """Return the seconds that workers may take to drain."""
    return server.drain_grace + SETTLE + server.drain_timeout + LAST_RESPONSES_TIMEOUT + DRAIN_SLACK
