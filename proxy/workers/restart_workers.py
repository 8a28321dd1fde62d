"""Starts worker processes, restarts workers that end by themselves, and communicates with all of them.

It never serves a request, and never reads the files of the configuration.
"""

import asyncio
import logging
import os
import secrets
import signal
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.admin.status import ProcessStatus
from proxy.background_tasks import Tasks
from proxy.off_loop.child_process import Child, ProcessHandle
from proxy.process.freeze_watchdog import FROZEN, LOOK_EVERY, FreezeDetector, ThreadState, main_thread
from proxy.process.heartbeat import Heartbeat, shared_file
from proxy.process.load_table import LoadedTable
from proxy.telemetry.merged_metrics import MetricFamily, WorkerCounts, lasting, merged, of_worker
from proxy.telemetry.metrics import WorkerMetrics
from proxy.workers.lease_channel import LEASES, WORKER_ENDED, LeaseService
from proxy.workers.worker_channel import ChannelClient, PeerGone
from proxy.workers.worker_main import COPIES, FAMILIES, SETTINGS, STATUS, WorkerSettings
from proxy.workers.worker_template import start_program

BEGIN_LIMIT: Final = 60.0
"""The most seconds that a worker may run or sleep until it has begun. Seconds in which it waits for a core or a disk do
not count, because a machine that is short of cores or disk throughput starts everything slowly."""

MOST_BEGIN: Final = 600.0
"""The most seconds until a worker has begun, including the seconds in which it waited for a core or a disk."""

TABLE_LIMIT: Final = 30.0
STATUS_LIMIT: Final = 1.0
"""The most seconds for a worker to accept a configuration, and to respond with its status or metrics."""

QUICK_END: Final = 10.0
"""If a worker ends within this many seconds after its start, the pause before the next start becomes longer."""

LONGEST_PAUSE: Final = 30.0
"""The longest pause in seconds before the next start of a worker that ends again and again."""

LAST_ENDED: Final = 16
"""The most ended workers of which a new worker is notified."""


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """One worker. `digest` belongs to its configuration, empty until it takes requests. `counts` are the metrics of its
    last report; a worker also sends reports without a request. `counted_as` is the name of the process under which its
    limits are counted."""

    number: int
    process: ProcessHandle
    channel: ChannelClient
    heartbeat: Heartbeat
    counts: WorkerCounts
    counted_as: str
    digest: str = ""

    @property
    def name(self) -> str:
        return f"worker {self.number} (process {self.process.pid})"

    async def families(self) -> list[MetricFamily]:
        """Return its current metrics, or the metrics of its last report if it does not respond."""
        with suppress(PeerGone):
            self.counts.update(FAMILIES.validate_json(await self.channel.request("families", STATUS_LIMIT)))
        return self.counts.families()

    async def status(self, team: str | None = None) -> ProcessStatus | None:
        """Return its status, with all limits or the limits of a team; `None` if it does not respond."""
        try:
            return STATUS.validate_json(await self.channel.request("status", STATUS_LIMIT, (team or "").encode()))
        except PeerGone:
            return None

    def kill(self) -> None:
        """Send SIGKILL unless it has ended."""
        if self.process.returncode is None:
            self.process.kill()


@dataclass(slots=True, eq=False)
class WorkerPool:
    """`count` worker processes with the same configuration and port.

    `settings` returns the settings of a worker for a configuration; `starter` starts a process with the file of its
    heartbeat. `up` is set when all workers take requests, and also if one cannot begin at the start of the gateway;
    `failure` is then the reason.
    """

    count: int
    table: LoadedTable
    settings: Callable[[LoadedTable], WorkerSettings]
    metrics: WorkerMetrics
    starter: Callable[[int], Awaitable[Child]] = start_program
    up: asyncio.Event = field(default_factory=asyncio.Event)
    failure: str = ""
    _alive: dict[int, WorkerProcess] = field(default_factory=dict)
    _counted_by_ended: list[MetricFamily] = field(default_factory=list)
    _ending: asyncio.Event = field(default_factory=asyncio.Event)
    _log: logging.Logger = field(default_factory=lambda: logging.getLogger("dragoman"))
    _stall_limit: float = field(init=False)
    _leases: LeaseService = field(default_factory=LeaseService)
    _gateway: str = field(default_factory=lambda: secrets.token_hex(8))
    _starts: int = 0
    _ended: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_ENDED))

    def __post_init__(self) -> None:
        self._stall_limit = self.table.loaded.config.server.stall_limit

    @property
    def ready(self) -> bool:
        """True while at least one worker takes requests and the workers have not been stopped."""
        return not self._ending.is_set() and any(worker.digest for worker in self._alive.values())

    async def run(self) -> None:
        """Keep `count` workers alive until `drain`, `stop` or `kill`, and return when they have ended."""
        async with asyncio.TaskGroup() as group:
            for number in range(1, self.count + 1):
                group.create_task(self._keep_alive(number))

    async def use_table(self, table: LoadedTable) -> None:
        """Pass a valid configuration to every worker."""
        self.table = table
        async with asyncio.TaskGroup() as group:
            for worker in self._serving():
                group.create_task(self._pass_configuration(worker))

    async def families(self) -> list[list[MetricFamily]]:
        """Return the counts of ended workers, then the metrics of each worker."""
        workers = self._serving()
        found = await asyncio.gather(*(worker.families() for worker in workers))
        labelled = (of_worker(worker.number, own) for worker, own in zip(workers, found, strict=True))
        return [self._counted_by_ended, *labelled]

    async def statuses(self, team: str | None = None) -> list[tuple[WorkerProcess, ProcessStatus]]:
        """Return the status of each worker that responds, with all limits or the limits of a team."""
        workers = self._serving()
        found = await asyncio.gather(*(worker.status(team) for worker in workers))
        return [(worker, status) for worker, status in zip(workers, found, strict=True) if status is not None]

    def drain(self) -> None:
        """Let all workers drain, without a restart."""
        self._end(lambda worker: worker.channel.notify("drain"))

    def stop(self) -> None:
        """Let all workers end at once, without a restart."""
        self._end(lambda worker: worker.channel.notify("stop"))

    def kill(self) -> None:
        """Send SIGKILL to the remaining workers, without a restart."""
        self._end(WorkerProcess.kill)

    def _end(self, end: Callable[[WorkerProcess], None]) -> None:
        self._ending.set()
        for worker in self._alive.values():
            end(worker)

    def _serving(self) -> list[WorkerProcess]:
        return [worker for worker in self._alive.values() if worker.digest]

    async def _keep_alive(self, number: int) -> None:
        now = asyncio.get_running_loop().time
        quick_ends = 0
        while not self._ending.is_set():
            started = now()
            try:
                worker = await self._start(number)
            except OSError as error:
                reason = f"worker {number} cannot be started: {error.strerror or error}"
            else:
                reason = await self._until_ended(worker)
            if self._ending.is_set():
                return
            quick_ends = quick_ends + 1 if now() - started < QUICK_END else 0
            self._log.error("%s; it is replaced", reason)
            self.metrics.restarted()
            await self._sleep(restart_delay(quick_ends))

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    async def _start(self, number: int) -> WorkerProcess:
        shared = shared_file()
        try:
            process, reader, writer = await self.starter(shared)
        finally:
            heartbeat = Heartbeat.shared(shared)
            os.close(shared)
        counts = WorkerCounts()

        def on_message(name: str, body: bytes) -> None:
            if name == LEASES:
                channel.notify(LEASES, self._leases.response(str(process.pid), body))
            else:
                counts.update(FAMILIES.validate_json(body))

        channel = ChannelClient(reader, writer, on_message)
        self._starts += 1  # the system may reuse the process id of an ended worker at once
        return WorkerProcess(number, process, channel, heartbeat, counts, f"{self._gateway}.{self._starts}")

    async def _until_ended(self, worker: WorkerProcess) -> str:
        """Let a started process serve, wait for its end and return how it ended."""
        self._alive[worker.number] = worker
        if self._ending.is_set():  # draining began while the worker was starting, so the worker was not notified
            worker.kill()
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.channel.run())
            group.create_task(self._begin(worker))
            guard = group.create_task(self._kill_when_frozen(worker))
            status = await worker.process.wait()
            guard.cancel()
        self._leases.forget(str(worker.process.pid))
        del self._alive[worker.number]
        self._ended.append(worker.counted_as)
        for each in self._serving():
            each.channel.notify(WORKER_ENDED, worker.counted_as.encode())
        self._count_serving()
        self._counted_by_ended = merged(self._counted_by_ended, [lasting(worker.counts.families())])
        end = f"on {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return f"{worker.name} ended {end}"

    async def _kill_when_frozen(self, worker: WorkerProcess) -> None:
        """Kill a worker whose event loop is frozen: native code may hold its interpreter's lock without end."""
        detector, now = FreezeDetector(self._stall_limit), asyncio.get_running_loop().time
        process = worker.process.pid
        while self._stall_limit:
            await asyncio.sleep(LOOK_EVERY)
            if detector.look(worker.heartbeat.beats, now(), lambda: main_thread(process)):
                facts = (f"the event loop of {worker.name}", detector.frozen_for, worker.heartbeat.last_request)
                self._log.error(FROZEN, *facts)
                worker.kill()
                return

    async def _begin(self, worker: WorkerProcess) -> None:
        table = self.table
        settings = SETTINGS.dump_json(replace(self.settings(table), number=worker.number, name=worker.counted_as))
        try:
            beginning = worker.channel.request("begin", MOST_BEGIN, settings)
            failure = (await begun(beginning, lambda: main_thread(worker.process.pid))).decode()
        except PeerGone as gone:
            failure = str(gone)
        if failure:
            if not self._ending.is_set():  # the worker may have been stopped before it had begun
                self._fail_start(f"{worker.name} could not begin: {failure}")
            worker.kill()
            return
        worker.digest = table.snapshot.digest
        for each in self._ended:  # the worker may have missed the notification
            worker.channel.notify(WORKER_ENDED, each.encode())
        if self.up.is_set():
            self._log.info("%s takes requests", worker.name)
        self._count_serving()
        if table is not self.table:
            await self._pass_configuration(worker)

    def _fail_start(self, reason: str) -> None:
        """Fail the start of the gateway; if the gateway is already up, the other workers continue."""
        if self.up.is_set():
            self._log.error("%s", reason)
        else:
            self.failure = reason
            self._ending.set()
            self.up.set()

    def _count_serving(self) -> None:
        serving = len(self._serving())
        self.metrics.workers(serving)
        if serving == self.count:
            self.up.set()

    async def _pass_configuration(self, worker: WorkerProcess) -> None:
        """Pass the current configuration to a worker. A worker that does not accept it drains and is replaced."""
        table = self.table
        try:
            digest = await worker.channel.request("table", TABLE_LIMIT, COPIES.dump_json(table.loaded.copies))
        except PeerGone as gone:
            self._log.error("%s did not accept configuration %s: %s", worker.name, table.snapshot.digest[:12], gone)
            worker.channel.notify("drain")
            return
        worker.digest = digest.decode()


async def begun(beginning: Awaitable[bytes], thread: Callable[[], ThreadState | None]) -> bytes:
    """Return the response to `begin` of a worker; `thread` returns the state of its main thread. Raises PeerGone after
    BEGIN_LIMIT."""
    detector, now = FreezeDetector(BEGIN_LIMIT), asyncio.get_running_loop().time

    async def watch() -> None:
        while True:
            if detector.look(1, now(), thread):  # this is the state of an event loop that has run once and not since
                limit.reschedule(now())
            await asyncio.sleep(LOOK_EVERY)

    try:
        async with asyncio.timeout(None) as limit, Tasks() as tasks:
            tasks.start(watch())
            return await beginning
    except TimeoutError:
        raise PeerGone(f"no response to 'begin' within {BEGIN_LIMIT:g} s") from None


def restart_delay(quick_ends: int) -> float:
    """Return the seconds before the next start after quick ends in a row: 0, then doubling up to LONGEST_PAUSE."""
    return 0.0 if quick_ends < 2 else min(LONGEST_PAUSE, 2.0 ** min(quick_ends - 2, 10))
