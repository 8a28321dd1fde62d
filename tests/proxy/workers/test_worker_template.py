"""Workers that are forked from a template: they share only its memory, and the gateway works without a template."""

import asyncio
import errno
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from proxy.off_loop.child_process import Child
from proxy.process.heartbeat import shared_file
from proxy.process.load_table import Source
from proxy.workers import worker_template as template_module
from proxy.workers.worker_template import WorkerTemplate, fork_template
from tests.bench.cpu import family, own_bytes, processes
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import MOCK, port_of
from tests.support.forked_program import Launch, forked, started
from tests.support.gateway import ROOT, SERVER, RunningGateway, running_gateway, start_gateway, until_ready
from tests.support.waiting import until

TABLE = MOCK + SERVER + "  workers: 2\n  drain_grace: 50ms\n  watch: false\n"

WITH_LEDGER = TABLE + f'teams: {{search: {{keys: ["{digest_of("k")}"], models: ["*"]}}}}\n'

MOST_MEMORY = 125 * 2**20
"""The greatest memory of a supervisor, the template and two workers together, without files, in bytes. Measured: 109
to 115 MB, with the process that loads the ledger up to 121, most on a busy machine."""


def name(pid: int) -> str:
    """Return the name of the process; empty if it has ended."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""


def children(gateway: RunningGateway, wanted: str) -> list[int]:
    """Return the supervisor's own children of this name."""
    found = processes().values()
    return [each.pid for each in found if each.parent == gateway.process.pid and name(each.pid) == wanted]


def workers(gateway: RunningGateway) -> list[int]:
    return children(gateway, "dragoman-worker")


def template_of(gateway: RunningGateway) -> int:
    (found,) = children(gateway, "dragoman-fork")
    return found


@asynccontextmanager
async def up(folder: Path, table: str = TABLE, launch: Launch = forked) -> AsyncIterator[RunningGateway]:
    async with running_gateway(table, folder, launch=launch) as gateway:
        await gateway.serving(2)
        # A process gets its name a moment after it has begun.
        await until(lambda: bool(children(gateway, "dragoman-fork")))
        yield gateway


async def ids(gateway: RunningGateway, count: int) -> list[str]:
    """Return the ids of new requests, on as many connections, so that they reach both workers."""
    answers = [
        await exchange(port_of(gateway.url), request("POST", "/v1/completions", ask("mock/echo"))) for _ in range(count)
    ]
    assert {answer.status for answer in answers} == {200}
    return [answer.headers["x-request-id"] for answer in answers]


@pytest.mark.smoke
async def test_no_two_workers_draw_the_same_id_nor_does_one_that_follows(tmp_path: Path) -> None:
    async with up(tmp_path) as gateway:
        drawn = await ids(gateway, 40)
        os.kill(workers(gateway)[0], signal.SIGKILL)
        await gateway.serving(2, restarts=1)
        drawn += await ids(gateway, 40)
        assert len(set(drawn)) == 80


async def test_they_share_what_was_loaded_and_so_does_one_that_follows(tmp_path: Path) -> None:
    async with up(tmp_path, launch=started) as gateway:
        assert own_bytes(gateway.process.pid) < MOST_MEMORY
        first, second = workers(gateway)
        os.kill(first, signal.SIGKILL)
        await gateway.serving(2, restarts=1)
        (new,) = set(workers(gateway)) - {first, second}
        assert own_bytes(gateway.process.pid) < MOST_MEMORY
        assert own_bytes(new) < 1.2 * own_bytes(second)
        assert await gateway.stop() == 0


@pytest.mark.smoke
async def test_a_forked_worker_has_no_descriptor_of_another_process(tmp_path: Path) -> None:
    async with up(tmp_path) as gateway:
        template = template_of(gateway)
        theirs = set(sockets(template)) | set(sockets(gateway.process.pid))
        for worker in workers(gateway):
            assert theirs.isdisjoint(sockets(worker))
            assert os.readlink(f"/proc/{worker}/fd/0") == os.devnull
            assert os.getsid(worker) == worker
        assert len(sockets(template)) == 1


def messages_of(gateway: RunningGateway) -> list[str]:
    """Return the gateway's messages, without stacks of an event loop that was blocked by a busy machine."""
    return [line for line in gateway.messages().splitlines() if "the event loop has stood still" not in line]


def sockets(pid: int) -> list[str]:
    found = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
    return [each for each in found if each.startswith("socket:")]


async def test_a_signal_to_a_forked_worker_drains_it_and_one_to_the_template_is_nothing(tmp_path: Path) -> None:
    async with up(tmp_path) as gateway:
        template = template_of(gateway)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(template, number)
        first = workers(gateway)[0]
        os.kill(first, signal.SIGTERM)
        await gateway.serving(2, restarts=1)
        assert f"(process {first}) ended with status 0; it is replaced" in gateway.messages()
        assert template_of(gateway) == template
        assert len(workers(gateway)) == 2
        assert not [line for line in messages_of(gateway) if "template" in line]


async def test_without_its_template_a_gateway_starts_workers_as_programs(tmp_path: Path) -> None:
    async with up(tmp_path) as gateway:
        template = template_of(gateway)
        os.kill(template, signal.SIGKILL)
        await ids(gateway, 10)
        for restarts in (1, 2):
            os.kill(workers(gateway)[0], signal.SIGKILL)
            await gateway.serving(2, restarts)
        await ids(gateway, 10)
        assert gateway.messages().count("the template of the workers has ended; they are started as programs") == 1
        assert not children(gateway, "dragoman-fork")
        assert await gateway.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_nothing_outlives_the_supervisor(tmp_path: Path, number: signal.Signals) -> None:
    async with up(tmp_path) as gateway:
        everything = {each.pid for each in family(processes().values(), gateway.process.pid)}
        assert len(everything) == 4
        gateway.process.send_signal(number)
        gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
        await until(lambda: everything.isdisjoint(processes()))


async def test_a_worker_forked_after_a_reload_serves_the_new_table(tmp_path: Path) -> None:
    async with up(tmp_path) as gateway:
        await gateway.reload(TABLE.replace("mock/echo", "mock/new"))
        os.kill(workers(gateway)[0], signal.SIGKILL)
        await gateway.serving(2, restarts=1)
        answers = [await exchange(port_of(gateway.url), request("GET", "/v1/models")) for _ in range(20)]
        assert all(b"mock/new" in answer.body for answer in answers)
        assert not [line for line in messages_of(gateway) if "template" in line]


LOADS = """
import os
from proxy.process.load_table import Source
load = Source.load
def noted(self, *store):
    with open(os.environ["LOADS"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    return load(self, *store)
Source.load = noted
"""
"""Run before the gateway: notes which processes load a configuration in the way that workers do."""


async def test_a_worker_builds_no_table_of_its_own_before_there_is_another(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(LOADS, encoding="utf-8")
    loads = tmp_path / "loads"
    loads.touch()
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "LOADS": str(loads)}
    async with running_gateway(TABLE, tmp_path, environment) as gateway:
        await gateway.serving(2)
        assert loads.read_text() == ""
        await gateway.reload(TABLE.replace("mock/echo", "mock/new"))
        await until(lambda: set(map(int, loads.read_text().split())) == set(workers(gateway)))


FAULT = """
import os
from proxy.workers import worker_main
sound = worker_main.report_counts
async def report_counts(*given):
    if not os.path.exists(os.environ["MARK"]):
        open(os.environ["MARK"], "x").close()
        raise BrokenPipeError("a fault")
    await sound(*given)
worker_main.report_counts = report_counts
"""
"""Run before the gateway: one worker ends on a fault, of a kind that the program handles at its own end."""


async def test_a_fault_that_ends_a_forked_worker_is_logged_and_ends_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT, encoding="utf-8")
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "MARK": str(tmp_path / "mark")}
    gateway = start_gateway(TABLE, tmp_path, environment)
    try:
        await until_ready(gateway)
        await gateway.serving(2, restarts=1)
        assert "the gateway ended on a fault of its own" in gateway.messages()
        assert "ended with status 1; it is replaced" in gateway.messages()
        assert await gateway.stop() == 0
    finally:
        gateway.process.kill()
        gateway.process.wait()


async def test_what_was_not_yet_written_is_written_once(tmp_path: Path) -> None:
    """Text that a start-up hook has left in the buffer of standard output belongs to one process."""
    (tmp_path / "sitecustomize.py").write_text('import sys\nsys.stdout.write(\'{"message": "hook"}\\n\')\n')
    async with running_gateway(TABLE, tmp_path, {"PYTHONPATH": f"{tmp_path}:{ROOT}"}) as gateway:
        await gateway.serving(2)
        assert await gateway.stop() == 0
        assert gateway.stdout.read_text().count("hook") == 1


# One end of a template, without a template ----------------------------------------------------------------------------


@contextmanager
def other_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[WorkerTemplate, socket.socket, list[int]]]:
    """Yield a supervisor's end, the socket that the template would read, and the heartbeats of workers that are
    started as programs."""
    programs: list[int] = []

    async def start_program(shared: int) -> Child:
        programs.append(shared)
        raise OSError(errno.ENOSYS, "not in this test")

    monkeypatch.setattr(template_module, "start_program", start_program)
    monkeypatch.setattr(template_module, "FORK_LIMIT", 0.2)
    here, there = socket.socketpair()
    here.setblocking(False)
    with subprocess.Popen(["sleep", "60"]) as instead, there:
        template = WorkerTemplate(instead.pid, here)
        yield template, there, programs
        instead.kill()
        here.close()


async def test_a_fork_that_failed_is_an_error_and_the_next_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with other_end(monkeypatch) as (template, there, programs):
        shared = shared_file()
        for _ in range(2):
            there.send(struct.pack("=i", -errno.EAGAIN))
            with pytest.raises(BlockingIOError):
                await template.start(shared)
        os.close(shared)
        assert not programs
        assert template.pid


def send_nothing(there: socket.socket) -> None:
    """Send nothing."""


def ended(there: socket.socket) -> None:
    there.close()


def halfway(there: socket.socket) -> None:
    there.send(b"\0")


@pytest.mark.parametrize(
    ("way", "words"), [(send_nothing, "does not respond"), (ended, "has ended"), (halfway, "has ended")]
)
async def test_a_template_that_does_not_answer_is_given_up_for_good(
    way: Callable[[socket.socket], None], words: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with other_end(monkeypatch) as (template, there, programs):
        shared = shared_file()
        way(there)
        for _ in range(2):
            with pytest.raises(OSError, match="not in this test"):
                await template.start(shared)
        os.close(shared)
        assert programs == [shared, shared]
        assert [words in record.getMessage() for record in caplog.records] == [True]
        assert template.pid == 0
        template.end()


def loader_of(gateway: RunningGateway) -> int | None:
    """Return the process that loads the ledger, if there is one."""
    return next(iter(children(gateway, "dragoman-ledger")), None)


async def replaced_loader(gateway: RunningGateway, loader: int | None) -> int:
    """Kill the process that loads the ledger, and return its replacement."""
    assert loader is not None
    os.kill(loader, signal.SIGKILL)
    await until(lambda: loader_of(gateway) not in (None, loader))
    found = loader_of(gateway)
    assert found is not None
    return found


async def test_the_process_that_loads_the_ledger_shares_it_too_and_so_does_one_that_follows(tmp_path: Path) -> None:
    async with up(tmp_path, WITH_LEDGER, started) as gateway:
        loader = await replaced_loader(gateway, loader_of(gateway))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(loader, number)
        await until(lambda: (tmp_path / "ledger.db").exists())
        assert os.getsid(loader) == loader
        assert len(sockets(loader)) == 1
        assert own_bytes(gateway.process.pid) < MOST_MEMORY
        assert gateway.messages().count("ended on SIGKILL; requests stay in the journals in") == 1
        assert await gateway.stop() == 0


@pytest.mark.nightly
async def test_without_its_template_a_gateway_starts_what_loads_the_ledger_as_a_program(tmp_path: Path) -> None:
    async with up(tmp_path, WITH_LEDGER) as gateway:
        os.kill(template_of(gateway), signal.SIGKILL)
        await replaced_loader(gateway, loader_of(gateway))
        assert gateway.messages().count("the template of the workers has ended") == 1
        assert await gateway.stop() == 0


def test_beside_another_thread_there_is_no_template() -> None:
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    assert fork_template(Source(None, {}).load()) is None
    end.set()
    other.join()


def test_on_a_system_that_cannot_adopt_there_is_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_module, "can_adopt", lambda: False)
    assert fork_template(Source(None, {}).load()) is None
