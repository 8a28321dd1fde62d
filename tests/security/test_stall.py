"""A real gateway whose event loop is made to stand still, in Python and in native code that holds the interpreter's
lock: it is ended, replaced, and says which request it was; signals end it all the same."""

import asyncio
import os
import re
import signal
import time
from pathlib import Path

import pytest

from providers.json_types import JsonObject
from proxy.process.freeze_watchdog import main_thread
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of
from tests.support.gateway import ROOT, RunningGateway, running_gateway

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
"""How a loop can stand: the last three hold the interpreter's lock, and the last one uses no CPU."""

SITE = "import ctypes, re, time\nfrom proxy.upstream.mock_transport import MockTransport\n" + (
    "whole = MockTransport.open\n"
    "def standing(way):\n"
    "    exec(way)\n"
    "async def open(self, request, request_id, repeats=()):\n"
    "    found = re.search(rb'stand:(.*?):stand', request.body)\n"
    "    if found: standing(found[1].decode())\n"
    "    return await whole(self, request, request_id, repeats)\n"
    "MockTransport.open = open\n"
)
"""Run before the gateway: a prompt can make its loop stand."""

IMPATIENT = "from proxy.process import shutdown\nshutdown.LAST_CALL = 1.0\n"
"""Run before it too: after a second signal it waits for less than the built-in five seconds, in which a loop that
stands uses a whole processor. Not for a supervisor, which ends its workers in that time."""


def table(*server: str) -> str:
    """One team on the mock, with these lines in the section `server`."""
    lines = ["  port: ${PORT}", "  admin:", "    port: ${ADMIN_PORT}", *(f"  {line}" for line in server)]
    return "\n".join(
        [
            *("version: 1", "server:", *lines, "vendors: {mock: {}}", "models: {mock/echo: {}}"),
            f'teams: {{search: {{keys: ["{digest_of(KEY)}"], models: [mock/echo]}}}}',
        ]
    )


def environment(folder: Path, before: str = SITE) -> dict[str, str]:
    """That of a gateway whose loop a prompt can stop."""
    (folder / "sitecustomize.py").write_text(before, encoding="utf-8")
    return {"PYTHONPATH": f"{folder}:{ROOT}"}


def completion(prompt: str, request_id: str = "other") -> bytes:
    body: JsonObject = {"model": "mock/echo", "prompt": prompt, "max_tokens": 5}
    return request("POST", "/v1/completions", body, {**AUTH, "x-request-id": request_id})


async def answered(gateway: RunningGateway) -> Answer:
    """The answer of a worker that serves: the kernel still gives connections to one that stands."""
    while True:
        try:
            async with asyncio.timeout(10):
                return await exchange(port_of(gateway.url), completion("hi"))
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            continue


def alive(process: int) -> bool:
    """Whether a process has not ended, whoever may be there to take note of its end."""
    thread = main_thread(process)
    return thread is not None and thread.state not in "ZX"


async def ended(gateway: RunningGateway) -> int:
    gateway.exit_code = await asyncio.to_thread(gateway.process.wait, 60)
    return gateway.exit_code


@pytest.mark.parametrize("way", WAYS)
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
        assert f"(process {victim}) ended on SIGKILL; another takes its place" in gateway.messages()
        assert SECRET not in gateway.messages()
        assert KEY not in gateway.messages()
        assert await gateway.stop() == 0


@pytest.mark.parametrize("way", ["python", "call"])
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


@pytest.mark.parametrize("way", ["regex", "native"])
async def test_one_process_that_stands_in_native_code_ends_and_says_where(way: str, tmp_path: Path) -> None:
    async with running_gateway(table("stall_limit: 1s"), tmp_path, environment(tmp_path)) as gateway:
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"{SECRET} stand:{WAYS[way]}:stand", REQUEST_ID))
            assert await ended(gateway) == signal.SIGPROF
        assert " in standing\n" in gateway.messages()
        assert SECRET not in gateway.messages()


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_process_that_was_stopped_for_longer_than_the_limit_goes_on(workers: int, tmp_path: Path) -> None:
    text = table(f"workers: {workers}", "stall_limit: 1s")
    async with running_gateway(text, tmp_path) as gateway:
        if workers > 1:
            await gateway.serving(workers)
        stopped = min(await gateway.in_flight()) if workers > 1 else gateway.process.pid
        for _ in range(2):
            os.kill(stopped, signal.SIGSTOP)
            await asyncio.sleep(3)
            os.kill(stopped, signal.SIGCONT)
            assert (await answered(gateway)).status == 200
        if workers > 1:
            await gateway.serving(workers)
            assert stopped in await gateway.in_flight()
        assert "is ended" not in gateway.messages()
        assert await gateway.stop() == 0


@pytest.mark.parametrize("way", ["call", "native"])
async def test_a_worker_that_stands_does_not_outlive_its_supervisor_for_long(way: str, tmp_path: Path) -> None:
    text = table("workers: 2", "stall_limit: 1s")
    async with running_gateway(text, tmp_path, environment(tmp_path)) as gateway:
        await gateway.serving(2)
        workers = set(await gateway.in_flight())
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"stand:{WAYS[way]}:stand", REQUEST_ID))
            await asyncio.sleep(0.2)
            gateway.process.kill()
            assert await ended(gateway) == -signal.SIGKILL
            while any(map(alive, workers)):  # noqa: ASYNC110 - tells no one
                await asyncio.sleep(0.1)


async def test_a_limit_of_zero_lets_a_loop_stand(tmp_path: Path) -> None:
    async with running_gateway(table("stall_limit: 0s"), tmp_path, environment(tmp_path)) as gateway:
        answer = await exchange(port_of(gateway.url), completion("stand:time.sleep(2):stand"))
        assert answer.status == 200
        assert await gateway.stop() == 0


@pytest.mark.parametrize("way", ["python", "call", "regex", "native"])
async def test_a_second_sigterm_ends_one_process_that_stands(way: str, tmp_path: Path) -> None:
    async with running_gateway(table("stall_limit: 0s"), tmp_path, environment(tmp_path, SITE + IMPATIENT)) as gateway:
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"stand:{WAYS[way]}:stand", REQUEST_ID))
            await asyncio.sleep(1)
            gateway.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.5)
            assert gateway.process.poll() is None
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            assert await ended(gateway) in {1, -signal.SIGTERM}
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("way", ["python", "native"])
async def test_a_second_sigterm_ends_workers_that_stand(way: str, tmp_path: Path) -> None:
    text = table("workers: 2", "stall_limit: 0s")
    async with running_gateway(text, tmp_path, environment(tmp_path)) as gateway:
        await gateway.serving(2)
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"stand:{WAYS[way]}:stand", REQUEST_ID))
            await asyncio.sleep(1)
            gateway.process.send_signal(signal.SIGTERM)
            await gateway.unready()
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            assert await ended(gateway) == 0
        assert time.monotonic() - began < 30


async def test_a_drain_ends_although_a_worker_stands(tmp_path: Path) -> None:
    text = table("workers: 2", "stall_limit: 1s", "drain_grace: 0s", "drain_timeout: 600s")
    async with running_gateway(text, tmp_path, environment(tmp_path)) as gateway:
        await gateway.serving(2)
        async with connected(port_of(gateway.url)) as client:
            await client.send(completion(f"stand:{WAYS['native']}:stand", REQUEST_ID))
            assert await gateway.stop() == 0
        assert GUARDED in gateway.messages()
