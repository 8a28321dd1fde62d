"""A worker process, seen from its supervisor's end of the socket pair and from its clients."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.reading.table_files import Copies
from proxy.admin.last_hour.hour_figures import HourFigures
from proxy.admin.recent_requests import RecentUses
from proxy.admin.status import ProcessStatus
from proxy.off_loop.child_process import ROOT, program
from proxy.process.heartbeat import shared_file
from proxy.process.load_table import Source
from proxy.workers.worker_channel import ChannelClient, PeerGone
from proxy.workers.worker_main import COPIES, FAMILIES, REPORT_EVERY, SETTINGS, STATUS, WorkerSettings
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.whole_gateway import MOCK, REST, START, table_before
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Until

OTHER = MOCK.replace("mock/echo", "mock/other")
HASTY = "server: {drain_grace: 0s}\n"


def copies(text: str, path: Path) -> Copies:
    path.write_text(text, encoding="utf-8")
    return Source(path, {}).load().loaded.copies


@dataclass(frozen=True, slots=True)
class Started:
    """A worker that has its settings; `reports` are the messages that it sent without a request."""

    process: Process
    channel: ChannelClient
    reports: list[bytes]
    port: int
    failure: str

    async def post(self) -> Answer:
        return await exchange(self.port, request("POST", "/v1/completions", ask("mock/echo")))

    async def models(self) -> bytes:
        return (await exchange(self.port, request("GET", "/v1/models"))).body

    async def counted(self) -> dict[str, float]:
        families = FAMILIES.validate_json(self.reports[-1])
        (requests,) = (family for family in families if family.name == "dragoman_requests")
        return {dict(labels)["code"]: value for (_, labels), value in requests.samples}


async def started_worker(stderr: int = DEVNULL) -> tuple[Process, socket.socket]:
    """Return a worker process that waits for its settings, and the supervisor's end of the socket pair."""
    here, there = socket.socketpair()
    pulse = shared_file()
    with there:
        command = (
            sys.executable,
            "-P",
            "-c",
            program("proxy.workers.worker_main"),
            str(ROOT),
            str(there.fileno()),
            str(pulse),
        )
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=stderr, pass_fds=[there.fileno(), pulse]
        )
    os.close(pulse)
    return process, here


@asynccontextmanager
async def started(text: str, folder: Path, port: int = 0, stderr: int = DEVNULL) -> AsyncIterator[Started]:
    path = folder / "t.yaml"
    with socket.create_server(("127.0.0.1", port), reuse_port=True) as probe:
        place = probe.getsockname()[1]
    settings = WorkerSettings(path, False, "127.0.0.1", place, 1, copies(text, path))
    path.unlink()
    process, here = await started_worker(stderr)
    reports: list[bytes] = []
    channel = ChannelClient(*await asyncio.open_unix_connection(sock=here), lambda name, body: reports.append(body))
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(channel.run())
            failure = await channel.request("begin", 30.0, SETTINGS.dump_json(settings))
            yield Started(process, channel, reports, place, failure.decode())
            if process.returncode is None:
                channel.notify("stop")
            await running
    finally:
        if process.returncode is None:
            await asyncio.wait_for(process.communicate(), 30.0)


async def test_it_serves_the_copies_whatever_has_become_of_the_files(tmp_path: Path) -> None:
    async with started(MOCK, tmp_path) as worker:
        assert worker.failure == ""
        assert (await worker.post()).status == 200


async def test_it_takes_another_table_from_copies_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    async with started(MOCK, tmp_path) as worker:
        new = copies(OTHER, path)
        digest = await worker.channel.request("table", 30.0, COPIES.dump_json(new))
        assert digest.decode() == Source(path, {}).load().snapshot.digest
        assert b"mock/other" in await worker.models()


async def test_it_tells_what_it_is_about(tmp_path: Path) -> None:
    async with started(MOCK, tmp_path) as worker:
        status = STATUS.validate_json(await worker.channel.request("status", 5.0))
        seconds = status.recent.seconds
        newest = status.hour.newest
        assert 0 < seconds < 300
        assert 0 <= time.time() // 60 - newest <= 1
        assert status == ProcessStatus(True, 0, 0, {}, recent=RecentUses(seconds), hour=HourFigures(newest))


async def test_it_drains_when_told_and_its_last_words_are_what_it_counted(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with FakeVendor((START, Until(gate), *REST)) as vendor:
        async with started(table_before(vendor) + HASTY, tmp_path) as worker, connected(worker.port) as client:
            await client.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
            await client.head()
            worker.channel.notify("drain")
            while STATUS.validate_json(await worker.channel.request("status", 5.0)).ready:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
            gate.set()
            body, whole = await client.chunks()
            assert whole
            assert body.endswith(b"[DONE]\n\n")
            assert await worker.process.wait() == 0
        assert await worker.counted() == {"200": 1}
        out, _ = await worker.process.communicate()
        assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["ok"]


async def test_it_drains_by_itself_on_sigterm(tmp_path: Path) -> None:
    async with started(MOCK + HASTY, tmp_path) as worker:
        assert (await worker.post()).status == 200
        worker.process.send_signal(signal.SIGTERM)
        assert await worker.process.wait() == 0
    assert await worker.counted() == {"200": 1}


async def test_it_drains_when_its_supervisor_is_gone_and_says_what_to_do(tmp_path: Path) -> None:
    async with started(MOCK + HASTY, tmp_path, stderr=PIPE) as worker:
        worker.channel._writer.close()
        _, told = await asyncio.wait_for(worker.process.communicate(), 30.0)
        assert worker.process.returncode == 0
    assert b"the supervisor is gone: this worker finishes its requests and ends; start the gateway again" in told


async def test_it_says_unasked_what_it_has_counted_and_nothing_where_it_counted_nothing(tmp_path: Path) -> None:
    async with started(MOCK, tmp_path) as worker:
        for count in (1, 2):
            assert (await worker.post()).status == 200
            while not worker.reports or await worker.counted() != {"200": count}:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        # It no longer reports families that have not changed.
        assert {family.name for family in FAMILIES.validate_json(worker.reports[-1])} < {
            family.name for family in FAMILIES.validate_json(await worker.channel.request("families", 5.0))
        }
        said = len(worker.reports)
        await asyncio.sleep(2 * REPORT_EVERY)
        assert len(worker.reports) == said
    assert REPORT_EVERY < 1


async def test_a_hangup_of_the_whole_group_does_not_end_it(tmp_path: Path) -> None:
    async with started(MOCK, tmp_path) as worker:
        os.kill(worker.process.pid, signal.SIGHUP)
        assert (await worker.post()).status == 200


async def test_it_says_when_it_cannot_listen(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(OSError, match="in use"):
            async with started(MOCK, tmp_path, taken.getsockname()[1]):
                raise AssertionError("the probe had to fail first")
        path = tmp_path / "t.yaml"
        settings = WorkerSettings(path, False, "127.0.0.1", taken.getsockname()[1], 1, copies(MOCK, path))
        process, here = await started_worker()
        reports: list[bytes] = []
        channel = ChannelClient(*await asyncio.open_unix_connection(sock=here), lambda name, body: reports.append(body))
        async with asyncio.TaskGroup() as group:
            group.create_task(channel.run())
            failure = await channel.request("begin", 30.0, SETTINGS.dump_json(settings))
        assert b"address already in use" in failure
        assert await process.wait() == 0


@pytest.mark.smoke
async def test_nobody_who_asks_for_nothing_is_served_for_ever(tmp_path: Path) -> None:
    async with started(MOCK, tmp_path) as worker:
        worker.channel.notify("stop")
        assert await asyncio.wait_for(worker.process.wait(), 30.0) == 0
        with pytest.raises(PeerGone):
            await worker.channel.request("status", 5.0)


async def test_without_a_supervisor_it_ends_without_a_word() -> None:
    process, here = await started_worker(stderr=PIPE)
    here.close()
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
