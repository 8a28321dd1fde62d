"""The worker processes of a supervisor: begun, asked, told, and each followed by another when it ends unasked.

Never serves a request, and never reads the table's files.
"""

import asyncio
import logging
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.channel import Asker, Gone
from proxy.child_process import start_child
from proxy.families import Family, Kept, lasting, merged, of_worker
from proxy.metrics import Supervised
from proxy.operated import Moment
from proxy.pulse import Pulse, shared_file
from proxy.reload import Table
from proxy.standstill import LOOK, STANDS, Standstill, main_thread
from proxy.worker import COPIES, FAMILIES, MOMENT, ORDERS, Orders

BEGIN_LIMIT: Final = 60.0
TABLE_LIMIT: Final = 30.0
ASK_LIMIT: Final = 1.0
"""Seconds that a worker has to begin, to take a table, and to say what it is about."""

QUICK: Final = 10.0
"""Seconds within which a worker that ends again and again did not get anywhere."""

LONGEST_PAUSE: Final = 30.0
"""Seconds before the next try of a worker that ends again and again."""


@dataclass(slots=True, eq=False)
class Worker:
    """One process. `digest` is that of the table it has, empty until it takes requests; `kept` is what it had counted
    when it last said so, which it does unasked as well."""

    number: int
    process: Process
    asker: Asker
    pulse: Pulse
    kept: Kept
    digest: str = ""

    @property
    def name(self) -> str:
        return f"worker {self.number} (process {self.process.pid})"

    async def families(self) -> list[Family]:
        """What it has counted by now, or by when it last said so."""
        try:
            self.kept.take(FAMILIES.validate_json(await self.asker.ask("families", ASK_LIMIT)))
        except Gone:
            return self.kept.families()
        return self.kept.families()

    async def moment(self) -> Moment | None:
        """What it is about, if it says so."""
        try:
            return MOMENT.validate_json(await self.asker.ask("moment", ASK_LIMIT))
        except Gone:
            return None


class Workers:
    """As many processes as were asked for, on one table and one port.

    `orders` are what a worker begins with on a table. `up` is set once all take requests, and where one cannot begin at
    all, of which `failure` says why.
    """

    def __init__(self, count: int, table: Table, orders: Callable[[Table], Orders], told: Supervised) -> None:
        self._count = count
        self._stall_limit = table.loaded.config.server.stall_limit
        self._table = table
        self._orders = orders
        self._told = told
        self._log = logging.getLogger("dragoman")
        self._alive: dict[int, Worker] = {}
        self._gone: list[Family] = []
        self._ending = asyncio.Event()
        self.up = asyncio.Event()
        self.failure = ""

    @property
    def ready(self) -> bool:
        """Whether requests are taken on."""
        return not self._ending.is_set() and any(worker.digest for worker in self._alive.values())

    async def keep(self) -> None:
        """Keep all of them alive until they are to end, and until they have ended."""
        async with asyncio.TaskGroup() as group:
            for number in range(1, self._count + 1):
                group.create_task(self._keep(number))

    async def take(self, table: Table) -> None:
        """Let every worker have a table that is sound."""
        self._table = table
        async with asyncio.TaskGroup() as group:
            for worker in self._serving():
                group.create_task(self._hand_over(worker))

    async def families(self) -> list[list[Family]]:
        """What each has counted, and what those did that are gone."""
        those = self._serving()
        found = await asyncio.gather(*(worker.families() for worker in those))
        return [self._gone, *(of_worker(each.number, families) for each, families in zip(those, found, strict=True))]

    async def moments(self) -> list[tuple[Worker, Moment]]:
        """What each is about that says so."""
        those = self._serving()
        found = await asyncio.gather(*(worker.moment() for worker in those))
        return [(worker, moment) for worker, moment in zip(those, found, strict=True) if moment is not None]

    def drain(self) -> None:
        """Let all of them end well, and none be followed by another."""
        self._end(lambda worker: worker.asker.tell("drain"))

    def stop(self) -> None:
        """Let all of them end at once."""
        self._end(lambda worker: worker.asker.tell("stop"))

    def kill(self) -> None:
        """End those that do not end by themselves."""
        self._end(_kill)

    def _end(self, how: Callable[[Worker], None]) -> None:
        self._ending.set()
        for worker in self._alive.values():
            how(worker)

    def _serving(self) -> list[Worker]:
        return [worker for worker in self._alive.values() if worker.digest]

    async def _keep(self, number: int) -> None:
        clock = asyncio.get_running_loop().time
        quickly = 0
        while not self._ending.is_set():
            began = clock()
            try:
                worker = await self._spawn(number)
            except OSError as error:
                why = f"worker {number} cannot be started: {error.strerror or error}"
            else:
                why = await self._life(worker)
            if self._ending.is_set():
                return
            quickly = quickly + 1 if clock() - began < QUICK else 0
            self._log.error("%s; another takes its place", why)
            self._told.restarted()
            await self._pause(pause(quickly))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return

    async def _spawn(self, number: int) -> Worker:
        shown = shared_file()
        try:
            child = await start_child("worker", shown)
        finally:
            pulse = Pulse.shared(shown)
            os.close(shown)
        kept = Kept()
        asker = Asker(child.reader, child.writer, lambda body: kept.take(FAMILIES.validate_json(body)))
        return Worker(number, child.process, asker, pulse, kept)

    async def _life(self, worker: Worker) -> str:
        """From the first order to the end of the process; gives how it ended."""
        self._alive[worker.number] = worker
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.asker.run())
            group.create_task(self._begin(worker))
            guarding = group.create_task(self._guard(worker))
            status = await worker.process.wait()
            guarding.cancel()
        del self._alive[worker.number]
        self._count_up()
        self._gone = merged(self._gone, [lasting(worker.kept.families())])
        how = f"on {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return f"{worker.name} ended {how}"

    async def _guard(self, worker: Worker) -> None:
        """Kill a worker whose event loop stands still: native code may hold its interpreter's lock, so that nothing
        else ends it."""
        standstill, clock = Standstill(self._stall_limit), asyncio.get_running_loop().time
        process = worker.process.pid
        while self._stall_limit:
            await asyncio.sleep(LOOK)
            if standstill.look(worker.pulse.beats, clock(), lambda: main_thread(process)):
                facts = (f"the event loop of {worker.name}", standstill.stood, worker.pulse.last_request)
                self._log.error(STANDS, *facts)
                _kill(worker)
                return

    async def _begin(self, worker: Worker) -> None:
        table = self._table
        orders = ORDERS.dump_json(self._orders(table))
        try:
            failure = (await worker.asker.ask("begin", BEGIN_LIMIT, orders)).decode()
        except Gone as gone:
            failure = str(gone)
        if failure:
            self._not_begun(f"{worker.name} could not begin: {failure}")
            _kill(worker)
            return
        worker.digest = table.snapshot.digest
        if self.up.is_set():
            self._log.info("%s takes requests", worker.name)
        self._count_up()
        if table is not self._table:
            await self._hand_over(worker)

    def _not_begun(self, why: str) -> None:
        """The first that cannot begin is a reason not to begin at all; later the others go on."""
        if self.up.is_set():
            self._log.error("%s", why)
        else:
            self.failure = why
            self._ending.set()
            self.up.set()

    def _count_up(self) -> None:
        serving = len(self._serving())
        self._told.workers(serving)
        if serving == self._count:
            self.up.set()

    async def _hand_over(self, worker: Worker) -> None:
        """Let a worker have the table in force. One that cannot take it would go on with an old one: another has to
        take its place, once it has finished what it is about."""
        table = self._table
        try:
            digest = await worker.asker.ask("table", TABLE_LIMIT, COPIES.dump_json(table.loaded.copies))
        except Gone as gone:
            self._log.error("%s did not take table %s: %s", worker.name, table.snapshot.digest[:12], gone)
            worker.asker.tell("drain")
            return
        worker.digest = digest.decode()


def pause(quickly: int) -> float:
    """Seconds before the next try, after so many in a row that did not get anywhere: none after the first, then longer
    and longer."""
    return 0.0 if quickly < 2 else min(LONGEST_PAUSE, 2.0 ** min(quickly - 2, 10))


def _kill(worker: Worker) -> None:
    if worker.process.returncode is None:
        worker.process.kill()
