"""A worker: one of several processes that serve on one port, started and controlled by a supervisor.

It loads the configuration from copies that the supervisor sends, so that all workers have the same one even if the
files change. If the worker was forked with a configuration made from the same copies, it serves this configuration. It
has no listener for operators.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable
from contextlib import AsyncExitStack, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from config.reading.table_files import Copies
from proxy.accounting.limits_coordinator import EndedSiblings, Siblings
from proxy.admin.status import ProcessStatus
from proxy.background_tasks import background
from proxy.listener.http_connection import PublicServer
from proxy.listener.tls import Secured
from proxy.process.assemble_app import ProcessOutputs, PublicGateway, public_gateway
from proxy.process.freeze_watchdog import FreezeWatchdog
from proxy.process.heartbeat import Heartbeat
from proxy.process.load_table import LoadedTable, LogForm, Source
from proxy.process.set_up_process import collect_by_load, set_up_process
from proxy.process.shutdown import Shutdown, drain_or_stop
from proxy.process.start_listener import open_listener
from proxy.process_name import name_process
from proxy.telemetry.log_writer import unbuffered
from proxy.telemetry.merged_metrics import MetricFamily
from proxy.telemetry.metrics import Metrics
from proxy.workers.lease_channel import LEASES, WORKER_ENDED, SupervisorLeases
from proxy.workers.worker_channel import ChannelHandlers, PeerGone, receive, respond, send

BEGIN_WAIT: Final = 600.0
"""The most seconds that a supervisor may take to send the settings. If the supervisor ends, the wait ends too."""

REPORT_EVERY: Final = 0.5
"""Seconds between two reports of metrics. If a worker is killed, at most the counts of this time are lost."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker. `path` only names the configuration in messages; its content is in the `copies`.
    `since` is the start of the gateway in unix seconds, which must be the same from all workers. `log` is the log
    format if the configuration sets none. `workers` is the number of workers, and `number` the number of this one, from
    1. `name` is its name among the processes of all gateways."""

    path: Path | None
    insecure_open: bool
    host: str
    port: int
    since: int
    copies: Copies
    log: LogForm = "json"
    workers: int | None = None
    number: int = 1
    name: str = ""


SETTINGS: Final = TypeAdapter(WorkerSettings)
COPIES: Final = TypeAdapter(Copies)
STATUS: Final = TypeAdapter(ProcessStatus)
FAMILIES: Final = TypeAdapter(list[MetricFamily])
"""The JSON forms of the bodies that supervisor and worker send each other."""


def main(descriptor: int, shared: int, table: LoadedTable | None = None) -> None:
    """Serve until the supervisor or a signal ends it. `descriptor` is one end of a socket pair, `shared` the file of
    the heartbeat, and `table` a configuration that is already loaded."""
    name_process("dragoman-worker")
    link = socket.socket(fileno=descriptor)
    link.set_inheritable(False)
    # A reload comes from the supervisor; a SIGHUP to the whole process group must not end this process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.set_inheritable(shared, False)
    asyncio.run(serve(link, Heartbeat.shared(shared), table))
    sys.stdout = sys.stderr  # plugins may still print while the interpreter ends


async def serve(link: socket.socket, heartbeat: Heartbeat, shared_table: LoadedTable | None) -> None:
    """Serve with the settings that the supervisor sends over `link`."""
    reader, writer = await asyncio.open_unix_connection(sock=link)
    try:
        async with asyncio.timeout(BEGIN_WAIT):
            number, name, body = await receive(reader)
    except (PeerGone, TimeoutError):
        return
    settings = SETTINGS.validate_json(body)
    place = (settings.path, os.environ, settings.insecure_open, settings.host)
    source = Source(*place, log=settings.log, workers=settings.workers)
    table = shared_table
    if table is None or table.loaded.copies != settings.copies:
        table = source.load(settings.copies)
        table = replace(table, loaded=table.loaded.without_positions())
    server = table.loaded.config.server
    log = set_up_process(server.log.form)
    shutdown = Shutdown()
    shutdown.listen()

    def open_public(public: PublicServer, secured: Secured) -> Awaitable[asyncio.Server]:
        return open_listener(public, settings.host, settings.port, {"reuse_port": True, **secured})

    leases = SupervisorLeases(partial(send, writer, 0, LEASES))
    ended = EndedSiblings()
    siblings = Siblings(settings.workers or 1, leases, settings.number, settings.name, ended)
    outputs = ProcessOutputs(unbuffered(sys.stdout), heartbeat, siblings)
    async with AsyncExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # standard output is the access log; plugins may print
        # Normally the supervisor acts first. This detector is for a worker that freezes after its supervisor has ended.
        stack.enter_context(FreezeWatchdog(heartbeat, 2 * server.stall_limit, server.log.form))
        try:
            gateway = public_gateway(table, settings.since, settings.host, open_public, outputs)
            app = await stack.enter_async_context(gateway)
        except OSError as error:
            send(writer, number, name, str(error).encode())
            await close(writer)
            return
        collecting = partial(collect_by_load, app.objects_held)
        await stack.enter_async_context(background((*app.services, collecting)))
        send(writer, number, name)

        async def respond_to_supervisor() -> None:
            await respond(reader, writer, handlers(app, source, shutdown, leases, ended))
            if not shutdown.requested.is_set():
                log.warning(
                    "the supervisor is gone: this worker finishes its requests and ends; start the gateway again"
                )
                shutdown.requested.set()

        async with asyncio.TaskGroup() as group:
            responding = group.create_task(respond_to_supervisor())
            reporting = group.create_task(report_counts(writer, app.metrics))
            await shutdown.requested.wait()
            await drain_or_stop(app, server, shutdown)
            responding.cancel()
            reporting.cancel()
        send(writer, 0, "counted", FAMILIES.dump_json(app.metrics.families()))
        await close(writer)


async def report_counts(writer: asyncio.StreamWriter, metrics: Metrics) -> None:
    """Send the changed series to the supervisor, in case this worker is killed. Reports are sent no faster than the
    supervisor reads them."""
    while not writer.is_closing():
        await asyncio.sleep(REPORT_EVERY)
        if touched := metrics.touched():
            body = await asyncio.to_thread(lambda series: FAMILIES.dump_json(metrics.changes(series)), touched)
            send(writer, 0, "counted", body)
            try:
                await writer.drain()
            except ConnectionError:
                return


async def close(writer: asyncio.StreamWriter) -> None:
    """Close, and wait until everything has been sent or the other end is gone."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def handlers(
    app: PublicGateway, source: Source, shutdown: Shutdown, leases: SupervisorLeases, siblings: EndedSiblings
) -> ChannelHandlers:
    """Return the handlers of the supervisor's requests."""

    async def table(body: bytes) -> bytes:
        loaded = await asyncio.to_thread(source.load, COPIES.validate_json(body))
        await app.use_table(loaded)
        return loaded.snapshot.digest.encode()

    async def families(body: bytes) -> bytes:
        return await asyncio.to_thread(lambda: FAMILIES.dump_json(app.metrics.families()))

    async def status(body: bytes) -> bytes:
        found = await app.status.full_status(body.decode() or None)
        return await asyncio.to_thread(STATUS.dump_json, found)

    async def granted(body: bytes) -> bytes:
        leases.receive_grants(body)
        return b""

    async def ended(body: bytes) -> bytes:
        await siblings.notify(body.decode())
        return b""

    async def drain(body: bytes) -> bytes:
        shutdown.requested.set()
        return b""

    async def stop(body: bytes) -> bytes:
        shutdown.requested.set()
        shutdown.urgent.set()
        return b""

    limits = {LEASES: granted, WORKER_ENDED: ended}
    return {"table": table, "families": families, "status": status, "drain": drain, "stop": stop, **limits}
