"""A real gateway whose event loop is blocked, in Python and in native code that holds the interpreter's lock: it is
ended, replaced, and logs the request. Signals still end it."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest

from providers.json_types import JsonObject
from proxy.process.freeze_watchdog import main_thread
from proxy.process.shutdown import FORCED_EXIT_AFTER
from proxy.workers.assemble_supervisor import STOP_TIMEOUT
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of
from tests.support.gateway import ROOT, RunningGateway, running_gateway
from tests.support.nightly import by_day, some
from tests.support.waiting import until

KEY = "key-of-search"
AUTH = {"authorization": f"Bearer {KEY}"}
REQUEST_ID = "the-one-that-stands"
SECRET = "words of the prompt"
GUARDED = "the-one-that-stands on /v1/completions of team search"

WAYS = {
    "python": "while True: pass",
    "call": "time.sleep(3600)",
    "regex": "re.match('(a+)+$', 'a' * 64 + 'b')",
    "native": "sum(range(10**13))",
    "native-sleep": "ctypes.PyDLL(None).sleep(3600)",
}
"""Ways to block a loop. The last three hold the interpreter's lock, and the last one uses no CPU."""

SITE = "import ctypes, os, re, time\nfrom proxy.upstream.mock_transport import MockTransport\n" + (
    "whole = MockTransport.open\n"
    "def standing(way):\n"
    "    os.mknod(f'{FOLDER}/stands.{os.getpid()}')\n"
    "    exec(way)\n"
    "async def open(self, request, request_id, repeats=()):\n"
    "    found = re.search(rb'stand:(.*?):stand', request.body)\n"
    "    if found: standing(found[1].decode())\n"
    "    return await whole(self, request, request_id, repeats)\n"
    "MockTransport.open = open\n"
)
"""Code that runs before the gateway: a prompt can block its loop. A file in FOLDER names the process that does."""

IMPATIENT = "from proxy.process import shutdown\nshutdown.FORCED_EXIT_AFTER = 1.0\n"
"""More code that runs before it: after a second signal it waits for less than the built-in five seconds, in which a
blocked loop uses a whole processor. It is not for a supervisor, which ends its workers in that time."""

PATIENT = "from proxy.process import shutdown\nshutdown.FORCED_EXIT_AFTER = 600.0\n"
"""Code that runs before a supervisor: on a busy machine it may take longer than five seconds to end its workers and
itself. With this, no worker ends by itself."""


def table(*server: str) -> str:
    """Return a configuration of one team on the mock, with these lines in the section `server`."""
    lines = ["  port: ${PORT}", "  admin:", "    port: ${ADMIN_PORT}", *(f"  {line}" for line in server)]
    return "\n".join(
        [
            *("version: 1", "server:", *lines, "vendors: {mock: {}}", "models: {mock/echo: {}}"),
            f'teams: {{search: {{keys: ["{digest_of(KEY)}"], models: [mock/echo]}}}}',
        ]
    )


def environment(folder: Path, before: str = SITE) -> dict[str, str]:
    """Return the environment of a gateway whose loop a prompt can block."""
    (folder / "sitecustomize.py").write_text(f"FOLDER = {str(folder)!r}\n{before}", encoding="utf-8")
    return {"PYTHONPATH": f"{folder}:{ROOT}"}


def completion(prompt: str, request_id: str = "other") -> bytes:
    body: JsonObject = {"model": "mock/echo", "prompt": prompt, "max_tokens": 5}
    return request("POST", "/v1/completions", body, {**AUTH, "x-request-id": request_id})


async def answered(gateway: RunningGateway) -> Answer:
    """Return the response of a worker that serves: the kernel still gives connections to a blocked one."""
    while True:
        try:
            async with asyncio.timeout(10):
                return await exchange(port_of(gateway.url), completion("hi"))
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            continue


def alive(process: int) -> bool:
    """Return whether a process has not ended, even if no parent has waited for it."""
    thread = main_thread(process)
    return thread is not None and thread.state not in "ZX"


async def ended(gateway: RunningGateway) -> int:
    gateway.exit_code = await asyncio.to_thread(gateway.process.wait, 60)
    return gateway.exit_code


async def standing(folder: Path) -> int:
    """Wait until a process is blocked, and return its id."""
    await until(lambda: any(folder.glob("stands.*")))
    process = int(next(folder.glob("stands.*")).suffix[1:])  # noqa: ASYNC240 - a folder of the test's own
    await gone_on(process)
    return process


async def gone_on(process: int) -> None:
    """Wait until the main thread has been running for a while, or sleeps. It is then blocked, and the C handler of an
    earlier signal has run."""
    pending = re.compile(r"^(?:SigPnd|ShdPnd):\t(?!0+$)", re.MULTILINE)
    await until(lambda: pending.search(Path(f"/proc/{process}/status").read_text()) is None)
    before = main_thread(process)
    assert before is not None
    enough = before.cpu + 0.2

    def is_there() -> bool:
        now = main_thread(process)
        return now is None or now.state == "S" or now.cpu >= enough

    await until(is_there)


@pytest.mark.parametrize("way", by_day(["python", "native-sleep"], [*WAYS]))
async def test_a_worker_that_stands_is_killed_named_and_replaced(way: str, tmp_path: Path) -> None:
    text = table("workers: 2", "stall_limit: 1s")
    async with running_gateway(text, tmp_path, environment(tmp_path)) as gateway:
        await gateway.serving(2)
        before = set(await gateway.in_flight())
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"{SECRET} stand:{WAYS[way]}:stand", REQUEST_ID))
            assert (await answered(gateway)).status == 200
            await gateway.serving(2, restarts=1)
        after = set(await gateway.in_flight())
        assert len(before & after) == 1
        (victim,) = before - after
        (line,) = [
            line for line in gateway.messages().splitlines() if "has stood still for" in line and "ended" in line
        ]
        assert f"(process {victim})" in line
        assert f"the last request begun: {GUARDED}" in line
        assert f"(process {victim}) ended on SIGKILL; it is replaced" in gateway.messages()
        assert SECRET not in gateway.messages()
        assert KEY not in gateway.messages()
        assert await gateway.stop() == 0


@pytest.mark.parametrize("way", some(["call", "python"], 2))
async def test_one_process_that_stands_ends_and_names_the_request(way: str, tmp_path: Path) -> None:
    async with running_gateway(table("stall_limit: 1s"), tmp_path, environment(tmp_path)) as gateway:
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"{SECRET} stand:{WAYS[way]}:stand", REQUEST_ID))
            assert await ended(gateway) == 70
        (line,) = [line for line in gateway.messages().splitlines() if "is ended" in line]
        assert re.search(r"the event loop has stood still for \d+\.\d s and is ended; ", line)
        assert f"the last request begun: {GUARDED}; it stands at " in line
        assert " standing" in line
        assert SECRET not in gateway.messages()


@pytest.mark.parametrize("way", some(["regex", "native"], 2))
async def test_one_process_that_stands_in_native_code_ends_and_says_where(way: str, tmp_path: Path) -> None:
    async with running_gateway(table("stall_limit: 1s"), tmp_path, environment(tmp_path)) as gateway:
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"{SECRET} stand:{WAYS[way]}:stand", REQUEST_ID))
            assert await ended(gateway) == signal.SIGPROF
        assert " in standing\n" in gateway.messages()
        assert SECRET not in gateway.messages()


@pytest.mark.parametrize("workers", some([2, 1], 2))
async def test_a_process_that_was_stopped_for_longer_than_the_limit_goes_on(workers: int, tmp_path: Path) -> None:
    text = table(f"workers: {workers}", "stall_limit: 1s")
    async with running_gateway(text, tmp_path) as gateway:
        if workers > 1:
            await gateway.serving(workers)
        stopped = min(await gateway.in_flight()) if workers > 1 else gateway.process.pid
        for _ in range(2):
            os.kill(stopped, signal.SIGSTOP)
            await asyncio.sleep(2)
            os.kill(stopped, signal.SIGCONT)
            assert (await answered(gateway)).status == 200
        if workers > 1:
            await gateway.serving(workers)
            assert stopped in await gateway.in_flight()
        assert "is ended" not in gateway.messages()
        assert await gateway.stop() == 0


@pytest.mark.parametrize("way", some(["native", "call"], 2))
async def test_a_worker_that_stands_does_not_outlive_its_supervisor_for_long(way: str, tmp_path: Path) -> None:
    text = table("workers: 2", "stall_limit: 1s")
    async with running_gateway(text, tmp_path, environment(tmp_path)) as gateway:
        await gateway.serving(2)
        workers = set(await gateway.in_flight())
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"stand:{WAYS[way]}:stand", REQUEST_ID))
            await standing(tmp_path)
            gateway.process.kill()
            assert await ended(gateway) == -signal.SIGKILL
            while any(map(alive, workers)):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.1)


async def test_a_limit_of_zero_lets_a_loop_stand(tmp_path: Path) -> None:
    async with running_gateway(table("stall_limit: 0s"), tmp_path, environment(tmp_path)) as gateway:
        answer = await exchange(port_of(gateway.url), completion("stand:time.sleep(2):stand"))
        assert answer.status == 200
        assert await gateway.stop() == 0


@pytest.mark.parametrize("way", by_day(["call", "native"], ["python", "call", "regex", "native"]))
async def test_a_second_sigterm_ends_one_process_that_stands(way: str, tmp_path: Path) -> None:
    async with (
        running_gateway(table("stall_limit: 0s"), tmp_path, environment(tmp_path, SITE + IMPATIENT)) as gateway,
        connected(port_of(gateway.url)) as client,
    ):
        await client.send(completion(f"stand:{WAYS[way]}:stand", REQUEST_ID))
        assert await standing(tmp_path) == gateway.process.pid
        gateway.process.send_signal(signal.SIGTERM)
        await gone_on(gateway.process.pid)
        assert gateway.process.poll() is None
        gateway.process.send_signal(signal.SIGTERM)
        assert await ended(gateway) in {1, -signal.SIGTERM}


@pytest.mark.parametrize("way", some(["native", "python"], 2))
async def test_a_second_sigterm_ends_workers_that_stand(way: str, tmp_path: Path) -> None:
    text = table("workers: 2", "stall_limit: 0s")
    async with running_gateway(text, tmp_path, environment(tmp_path, SITE + PATIENT)) as gateway:
        await gateway.serving(2)
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"stand:{WAYS[way]}:stand", REQUEST_ID))
            worker = await standing(tmp_path)
            gateway.process.send_signal(signal.SIGTERM)
            await gateway.unready()
            gateway.process.send_signal(signal.SIGTERM)
            assert await ended(gateway) == 0
            assert not alive(worker)


def test_a_supervisor_ends_its_workers_before_it_would_end_itself() -> None:
    assert STOP_TIMEOUT < FORCED_EXIT_AFTER


async def test_a_drain_ends_although_a_worker_stands(tmp_path: Path) -> None:
    text = table("workers: 2", "stall_limit: 1s", "drain_grace: 0s", "drain_timeout: 600s")
    async with running_gateway(text, tmp_path, environment(tmp_path)) as gateway:
        await gateway.serving(2)
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"stand:{WAYS['native']}:stand", REQUEST_ID))
            assert await gateway.stop() == 0
        assert GUARDED in gateway.messages()
