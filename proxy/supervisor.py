"""The composition root of several processes: this one has the table, the operators' listener and the signals, its
workers serve.

Never serves a completion.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from config.server import Server
from proxy.app import (
    Listen,
    background,
    operating,
    prepare,
    reloads,
    scheme_of,
    settle_down,
    tell_table,
    told_listening,
    url_of,
)
from proxy.ending import DRAINING, LAST_WORDS, SETTLE, Ending, end
from proxy.families import merged
from proxy.live import Live
from proxy.metrics import KEPT, Metrics, exposition
from proxy.operated import facts_of, together
from proxy.reload import Reloader, Source, Table
from proxy.worker import Orders
from proxy.workers import Workers

HURRY: Final = 2.0
"""Seconds that workers have to end at once, before they are killed."""

SLACK: Final = 10.0
"""Seconds beyond what the table grants a drain, for a machine that is busy."""


class SeveralProcesses:
    """A supervisor and its workers, as one gateway."""

    def __init__(self, live: Live, metrics: Metrics, workers: Workers) -> None:
        self._live = live
        self._metrics = metrics
        self._workers = workers
        self._rendering = asyncio.Lock()
        self._shown = (float("-inf"), b"")

    @property
    def ready(self) -> bool:
        """See Operated."""
        return self._workers.ready

    async def facts(self) -> dict[str, object]:
        """See Operated; `workers` has a line for each."""
        moments = await self._workers.moments()
        facts = facts_of(self._live.snapshot, together(moment for _, moment in moments))
        told = [f"{worker.name}, table {worker.digest[:12]}, {each.in_flight} in flight" for worker, each in moments]
        return {**facts, "ready": self.ready, "workers": told}

    async def scrape(self) -> bytes:
        """See Operated."""
        async with self._rendering:
            then, text = self._shown
            return text if time.monotonic() - then < KEPT else await self._render()

    async def render(self) -> bytes:
        """See Operated."""
        async with self._rendering:
            return await self._render()

    async def _render(self) -> bytes:
        theirs = await self._workers.families()
        text = await asyncio.to_thread(lambda: exposition(merged(self._metrics.families(), theirs)))
        self._shown = (time.monotonic(), text)
        return text


@asynccontextmanager
async def reserved(host: str, port: int) -> AsyncIterator[asyncio.Server]:
    """Hold a port, without listening on it, so that it is nobody else's while workers come and go. Raises OSError when
    somebody has it."""
    loop = asyncio.get_running_loop()
    # A port that several may share is also shared with another gateway; without that it must be free.
    alone = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    found = alone.sockets[0].getsockname()[1]
    alone.close()
    await alone.wait_closed()
    door = await loop.create_server(asyncio.Protocol, host, found, start_serving=False, reuse_port=True)
    try:
        yield door
    finally:
        door.close()


async def supervise(source: Source, table: Table, listen: Listen, count: int) -> str:
    """Run `count` workers until SIGTERM or SIGINT, let them drain, and return; a second signal ends them at once.
    SIGHUP reloads the table. Gives why they could not begin, if they could not. Raises OSError when a port cannot be
    had."""
    server = table.loaded.config.server
    log = prepare(server.log)
    tell_table(log, source)
    if count > (there_are := cores()):
        log.warning("%d workers on %d cores: more than there are cores serve no more requests", count, there_are)
    async with AsyncExitStack() as stack:
        door = await stack.enter_async_context(reserved(listen.host, listen.port))
        metrics = Metrics()
        metrics.config(table.snapshot.digest)
        live = Live(table.snapshot, int(time.time()))
        port = door.sockets[0].getsockname()[1]

        def orders(now: Table) -> Orders:
            place = (source.path, source.insecure_open, listen.host, port)
            return Orders(*place, live.since, now.loaded.copies, source.log)

        workers = Workers(count, table, orders, metrics.supervising())

        async def take(new: Table) -> None:
            live.swap(new.snapshot)
            await workers.take(new)

        reloader = Reloader(source, table, metrics, take)
        operated = SeveralProcesses(live, metrics, workers)
        admin_url = await stack.enter_async_context(operating(operated, reloader, listen, server.admin))
        ending = Ending()
        ending.listen()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
        for warning in table.warnings:
            log.warning("%s", warning)
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(workers.keep())
            await _either(workers.up, ending.first)
            if not workers.failure and not ending.first.is_set():
                public = told_listening(url_of(scheme_of(server), listen.host, door), listen.host)
                admin = told_listening(admin_url, listen.admin_host)
                log.info("listening on %s with %d workers, admin on %s", public, count, admin)
                settle_down()
                async with background(reloads(reloader, server)):
                    await ending.first.wait()
            if not workers.failure:
                log.info(DRAINING, server.drain_timeout)
                workers.drain()
                await end(_over(keeping, patience(server)), ending.second)
            workers.stop()
            await _over(keeping, HURRY)
            workers.kill()
    log.info("stopped")
    return workers.failure


def cores() -> int:
    """How many cores this process may use, as far as the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def patience(server: Server) -> float:
    """Seconds that workers may take to drain."""
    return server.drain_grace + SETTLE + server.drain_timeout + LAST_WORDS + SLACK


async def _over(task: asyncio.Task[None], seconds: float) -> None:
    """Wait for the end of a task, or so long."""
    await asyncio.wait((task,), timeout=seconds)


async def _either(one: asyncio.Event, other: asyncio.Event) -> None:
    """Wait until one of two things has happened."""
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(each.wait()) for each in (one, other)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
