"""Worker processes start together, are restarted, and act as one towards the supervisor."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.off_loop.child_process import Child
from proxy.process.freeze_watchdog import ThreadState
from proxy.process.load_table import LoadedTable, Source
from proxy.telemetry.metrics import WorkerMetrics
from proxy.workers import restart_workers as workers_module
from proxy.workers import worker_template as template_module
from proxy.workers.restart_workers import (
    BEGIN_LIMIT,
    LONGEST_PAUSE,
    MOST_BEGIN,
    WorkerPool,
    WorkerProcess,
    begun,
    restart_delay,
)
from proxy.workers.worker_channel import ChannelClient, PeerGone
from proxy.workers.worker_main import WorkerSettings
from proxy.workers.worker_template import start_program
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.kit.whole_gateway import MOCK
from tests.support.forked_program import fork_child
from tests.support.looped import looped
from tests.support.waiting import until

HASTY = MOCK + "server: {drain_grace: 0s}\n"


@dataclass(slots=True)
class Counted:
    """The counts of the instruments."""

    serving: list[float] = field(default_factory=list)
    restarts: int = 0

    def restarted(self) -> None:
        self.restarts += 1


@dataclass(frozen=True, slots=True)
class Rig:
    workers: WorkerPool
    counted: Counted
    keeping: "asyncio.Task[None]"
    path: Path
    port: int

    def table(self, text: str) -> LoadedTable:
        self.path.write_text(text, encoding="utf-8")
        return Source(self.path, {}).load()

    def pids(self) -> dict[int, int]:
        return {number: worker.process.pid for number, worker in self.workers._alive.items()}

    async def asked(self, count: int) -> set[bytes]:
        """Return the different lists of models that `count` new connections get."""
        answers = [await exchange(self.port, request("GET", "/v1/models")) for _ in range(count)]
        return {answer.body for answer in answers}


def settings_factory(path: Path, port: int) -> Callable[[LoadedTable], WorkerSettings]:
    """Return a function that makes a worker's settings of a configuration."""
    return lambda table: WorkerSettings(path, False, "127.0.0.1", port, 1, table.loaded.copies)


@asynccontextmanager
async def kept(folder: Path, count: int = 2) -> AsyncIterator[Rig]:
    path = folder / "t.yaml"
    path.write_text(HASTY, encoding="utf-8")
    source = Source(path, {})
    counted = Counted()
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        workers = WorkerPool(
            count, source.load(), settings_factory(path, port), WorkerMetrics(counted.serving.append, counted.restarted)
        )
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(workers.run())
            await workers.up.wait()
            try:
                yield Rig(workers, counted, keeping, path, port)
            finally:
                workers.stop()
                await asyncio.wait((keeping,), timeout=20.0)
                workers.kill()


@pytest.fixture(autouse=True)
def cheap_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork instead of starting a program, which takes a second of CPU. test_worker_main.py checks that the program
    starts and serves."""
    monkeypatch.setattr(template_module, "start_child", fork_child)


@pytest.mark.smoke
async def test_all_take_requests_before_it_is_up(tmp_path: Path) -> None:
    async with kept(tmp_path, 3) as rig:
        assert rig.workers.ready
        assert rig.workers.failure == ""
        assert rig.counted.serving[-1] == 3
        statuses = await rig.workers.statuses()
        assert sorted(worker.number for worker, _ in statuses) == [1, 2, 3]
        assert all(status.ready for _, status in statuses)
    assert not rig.workers.ready


@pytest.mark.smoke
async def test_one_that_is_killed_is_followed_by_another_and_the_others_go_on(tmp_path: Path) -> None:
    async with kept(tmp_path) as rig:
        before = rig.pids()
        os.kill(before[1], signal.SIGKILL)
        await until(lambda: rig.pids().get(1) != before[1])
        assert rig.workers.ready
        assert await rig.asked(5)
        await until(lambda: rig.counted.serving[-1] == 2 and rig.counted.restarts == 1)
        after = rig.pids()
        assert after[2] == before[2]
        assert after[1] != before[1]


async def test_every_worker_takes_a_new_table_and_so_does_one_that_comes_later(tmp_path: Path) -> None:
    async with kept(tmp_path) as rig:
        new = rig.table(HASTY.replace("mock/echo", "mock/new"))
        await rig.workers.use_table(new)
        assert {worker.digest for worker in rig.workers._alive.values()} == {new.snapshot.digest}
        rig.path.unlink()
        os.kill(rig.pids()[1], signal.SIGKILL)
        await until(lambda: rig.counted.restarts == 1 and rig.counted.serving[-1] == 2)
        (models,) = await rig.asked(20)
        assert b"mock/new" in models
        assert b"mock/echo" not in models


async def test_one_that_begins_while_a_table_changes_gets_the_new_one(tmp_path: Path) -> None:
    async with kept(tmp_path) as rig:
        os.kill(rig.pids()[1], signal.SIGKILL)
        await until(lambda: rig.counted.restarts == 1 and 1 in rig.pids())
        new = rig.table(HASTY.replace("mock/echo", "mock/new"))
        await rig.workers.use_table(new)
        await until(lambda: {worker.digest for worker in rig.workers._alive.values()} == {new.snapshot.digest})


async def test_one_that_takes_no_table_makes_room_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with kept(tmp_path) as rig:
        stopped = rig.pids()[1]
        monkeypatch.setattr(workers_module, "TABLE_LIMIT", 0.2)
        os.kill(stopped, signal.SIGSTOP)
        new = rig.table(HASTY.replace("mock/echo", "mock/new"))
        await rig.workers.use_table(new)
        monkeypatch.undo()
        os.kill(stopped, signal.SIGCONT)
        await until(lambda: rig.counted.restarts >= 1 and rig.counted.serving[-1] == 2)
        assert {worker.digest for worker in rig.workers._alive.values()} == {new.snapshot.digest}


async def test_what_a_dead_one_had_counted_still_counts_and_one_that_is_silent_counts_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def served() -> float:
        found = await rig.workers.families()
        names = [family for each in found for family in each if family.name == "dragoman_requests"]
        return sum(value for family in names for _, value in family.samples)

    async with kept(tmp_path) as rig:
        await rig.asked(10)
        assert await served() == 10
        os.kill(rig.pids()[1], signal.SIGKILL)
        await until(lambda: rig.counted.restarts == 1 and rig.counted.serving[-1] == 2)
        assert await served() == 10
        monkeypatch.setattr(workers_module, "STATUS_LIMIT", 0.2)
        os.kill(rig.pids()[2], signal.SIGSTOP)
        assert await served() == 10
        assert [worker.number for worker, _ in await rig.workers.statuses()] == [1]
        os.kill(rig.pids()[2], signal.SIGCONT)


async def test_what_a_killed_one_had_counted_is_known_though_nobody_asked(tmp_path: Path) -> None:
    def known(worker: WorkerProcess) -> float:
        return sum(
            value
            for family in worker.counts.families()
            if family.name == "dragoman_requests"
            for _, value in family.samples
        )

    async with kept(tmp_path, 1) as rig:
        await rig.asked(7)
        (victim,) = rig.workers._alive.values()
        await until(lambda: known(victim) == 7)
        os.kill(victim.process.pid, signal.SIGKILL)
        await until(lambda: rig.counted.restarts == 1 and rig.counted.serving[-1] == 1)
        await rig.asked(2)
        found = [family for each in await rig.workers.families() for family in each]
        requests = [family for family in found if family.name == "dragoman_requests"]
        assert sum(value for family in requests for _, value in family.samples) == 9
        # The measurements of the dead process are gone, and each live one is labelled with its worker number.
        sizes = [family.samples for family in found if family.name == "process_resident_memory_bytes"]
        assert [[labels for (_, labels), _ in samples] for samples in sizes] == [[(("worker", "1"),)]]


async def test_after_a_drain_none_follows(tmp_path: Path) -> None:
    async with kept(tmp_path) as rig:
        rig.workers.drain()
        await asyncio.wait_for(asyncio.shield(rig.keeping), 30.0)
        assert rig.pids() == {}
        assert rig.counted.restarts == 0


async def test_those_that_do_not_end_are_killed(tmp_path: Path) -> None:
    async with kept(tmp_path) as rig:
        os.kill(rig.pids()[1], signal.SIGSTOP)
        rig.workers.stop()
        rig.workers.kill()
        await asyncio.wait_for(asyncio.shield(rig.keeping), 30.0)


async def test_one_that_cannot_begin_at_first_is_the_end_of_all_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(HASTY, encoding="utf-8")
    source = Source(path, {})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        counted = Counted()
        begin = settings_factory(path, taken.getsockname()[1])
        workers = WorkerPool(2, source.load(), begin, WorkerMetrics(counted.serving.append, counted.restarted))
        await asyncio.wait_for(workers.run(), 50.0)
    assert "could not begin: " in workers.failure
    assert "address already in use" in workers.failure
    assert counted.restarts == 0


@looped(
    ("state", "seconds", "limit"),
    [("S", 50, None), ("R", 500, None), ("D", 500, None), ("S", 100, BEGIN_LIMIT), ("D", 700, MOST_BEGIN)],
)
@in_virtual_time
async def test_one_that_waits_for_a_core_or_a_disk_has_longer_to_begin(
    state: str, seconds: float, limit: float | None
) -> None:
    async def respond() -> bytes:
        async with asyncio.timeout(MOST_BEGIN):
            await asyncio.sleep(seconds)
        return b"begun"

    now = asyncio.get_running_loop().time
    start = now()
    try:
        assert await begun(respond(), lambda: ThreadState(state, 1.0)) == b"begun"
    except PeerGone:
        assert limit is not None
        assert limit <= now() - start <= limit + 1
    else:
        assert limit is None


async def test_one_that_is_told_to_end_before_it_began_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(HASTY, encoding="utf-8")
    counted = Counted()
    workers = WorkerPool(
        1, Source(path, {}).load(), settings_factory(path, 0), WorkerMetrics(counted.serving.append, counted.restarted)
    )

    async def gone(self: ChannelClient, name: str, seconds: float, body: bytes = b"") -> bytes:
        workers.stop()
        raise PeerGone("the connection has ended")

    monkeypatch.setattr(ChannelClient, "request", gone)
    await asyncio.wait_for(workers.run(), 50.0)
    assert (workers.failure, counted.restarts) == ("", 0)


@given(st.integers(0, 10_000))
def test_whoever_ends_again_and_again_is_tried_more_and_more_seldom(quick_ends: int) -> None:
    assert restart_delay(quick_ends) <= restart_delay(quick_ends + 1) <= LONGEST_PAUSE
    assert restart_delay(1) == 0
    assert restart_delay(2) == 1


async def test_one_that_was_just_being_started_when_all_had_to_drain_ends_too(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(HASTY, encoding="utf-8")

    async def starter(shared: int) -> Child:
        child = await start_program(shared)
        workers.drain()
        return child

    counted = Counted()
    metrics = WorkerMetrics(counted.serving.append, counted.restarted)
    workers = WorkerPool(1, Source(path, {}).load(), settings_factory(path, 0), metrics, starter)
    async with asyncio.timeout(30):
        await workers.run()
    assert not counted.restarts
