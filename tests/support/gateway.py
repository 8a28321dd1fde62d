"""The real gateway as its operator runs it: a process with a table, seen only from outside.

Never the gateway's insides: what a test learns here comes over HTTP, from signals, from the log and from the exit code.
"""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import orjson

from providers.unified import JsonObject

ROOT = Path(__file__).resolve().parents[2]

SERVER = "server:\n  port: ${PORT}\n  admin:\n    port: ${ADMIN_PORT}\n"
"""What a table without a `server` section gets; one with it names these two variables itself."""

WORKER = re.compile(r"worker \d+ \(process (\d+)\), table [0-9a-f]{12}, (\d+) in flight")
"""A worker's line on the status page."""

FRESH = {"Cache-Control": "no-cache"}
"""Asks for a scrape of this moment."""


def free_ports(count: int) -> list[int]:
    """Loopback ports nobody listens on, all different. Another process may still take one before it is used."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [listening.getsockname()[1] for listening in sockets]
    finally:
        for listening in sockets:
            listening.close()


@dataclass(slots=True)
class RunningGateway:
    """A gateway that was ready. `url` and `admin_url` have no slash at their end; `exit_code` is None while it runs."""

    url: str
    admin_url: str
    table: Path
    process: "subprocess.Popen[bytes]"
    stdout: Path
    stderr: Path
    exit_code: int | None = field(default=None, init=False)

    def log(self) -> list[JsonObject]:
        """The whole lines of the access log so far, but for those about bytes that were no request. They arrive a
        moment after their answer."""
        whole, _, _ = self.stdout.read_bytes().rpartition(b"\n")
        return [line for line in map(orjson.loads, whole.splitlines()) if line["message"] != "malformed HTTP"]

    async def logged(self, count: int) -> list[JsonObject]:
        """Wait until the access log has that many lines; all of them."""
        while len(lines := self.log()) < count:  # noqa: ASYNC110 - a file tells no one
            await asyncio.sleep(0.01)
        return lines

    def messages(self) -> str:
        """The process's own messages so far."""
        return self.stderr.read_text(encoding="utf-8")

    async def metrics(self) -> dict[str, float]:
        """The series of a scrape, `name{labels}` to value."""
        async with aiohttp.ClientSession(headers=FRESH) as http, http.get(f"{self.admin_url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {series: float(value) for series, _, value in pairs}

    async def serving(self, workers: int, restarts: int = 0) -> None:
        """Wait until so many workers take requests, after so many had to be replaced."""
        while True:
            series = await self.metrics()
            if (series["dragoman_workers"], series["dragoman_worker_restarts_total"]) == (workers, restarts):
                return
            await asyncio.sleep(0.01)

    async def in_flight(self) -> dict[int, int]:
        """The workers' processes, each with the requests it has in flight."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.admin_url}/status") as answer:
            lines = (await answer.json())["workers"]
        return {int(found[1]): int(found[2]) for found in map(WORKER.fullmatch, lines) if found}

    async def unready(self) -> None:
        """Wait until it says that it drains."""
        async with aiohttp.ClientSession() as http:
            while True:
                async with http.get(f"{self.admin_url}/health/ready") as answer:
                    if answer.status != 200:
                        return
                await asyncio.sleep(0.01)

    async def reload(self, table: str) -> None:
        """Write another table, send SIGHUP, and wait until the gateway took it or refused it: ask `metrics` which."""
        before = await self._reloads()
        self.table.write_text(with_server(table), encoding="utf-8")
        self.process.send_signal(signal.SIGHUP)
        while await self._reloads() == before:  # noqa: ASYNC110 - the counter tells no one
            await asyncio.sleep(0.01)

    async def _reloads(self) -> float:
        name = "dragoman_config_reloads_total"
        return sum(value for series, value in (await self.metrics()).items() if series.startswith(name))

    async def stop(self) -> int:
        """SIGTERM, and wait for the drain to end; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.exit_code = await asyncio.to_thread(self.process.wait)
        return self.exit_code


def with_server(table: str) -> str:
    """The table with the ports of this run; appended, so that the lines of the test's own text keep their numbers."""
    if any(line.startswith("server:") for line in table.splitlines()):
        return table
    return table.rstrip("\n") + "\n" + SERVER


def start_gateway(table: str, folder: Path, environment: Mapping[str, str]) -> RunningGateway:
    """Start the process and return at once. It sees no variable of this process but PATH, and writes into `folder`."""
    port, admin_port = free_ports(2)
    path, stdout, stderr = folder / "gateway.yaml", folder / "stdout.log", folder / "stderr.log"
    path.write_text(with_server(table), encoding="utf-8")
    variables = {"PATH": os.environ.get("PATH", ""), "PORT": str(port), "ADMIN_PORT": str(admin_port)}
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "proxy", "serve", "-c", str(path)],
            cwd=ROOT,
            env={**variables, **environment},
            stdout=out,
            stderr=err,
        )
    url, admin_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}"
    return RunningGateway(url, admin_url, path, process, stdout, stderr)


async def until_ready(gateway: RunningGateway) -> None:
    """Wait for `/health/ready`; raises AssertionError with the gateway's words when it ended instead."""
    async with aiohttp.ClientSession() as http:
        while gateway.process.poll() is None:
            try:
                async with http.get(f"{gateway.admin_url}/health/ready") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.005)
    raise AssertionError(f"the gateway ended with {gateway.process.returncode}:\n{gateway.messages()}")


@asynccontextmanager
async def running_gateway(
    table: str, folder: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[RunningGateway]:
    """A gateway for as long as the block, killed at its end unless it was stopped.

    Raises AssertionError when it ended by itself, or when a traceback is among its messages.
    """
    gateway = start_gateway(table, folder, environment or {})
    try:
        await until_ready(gateway)
        yield gateway
    finally:
        ended = gateway.process.poll()
        gateway.process.kill()
        gateway.process.wait()
    messages = gateway.messages()
    assert ended == gateway.exit_code, f"the gateway ended by itself with {ended}:\n{messages}"
    assert "Traceback" not in messages, messages
