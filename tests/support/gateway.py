"""The gateway as its operator runs it: a process with a config file, observed through HTTP, signals, its log and its
exit code."""

import asyncio
import fcntl
import itertools
import os
import re
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import aiohttp
import orjson

from providers.json_types import JsonObject
from tests.support.forked_program import Launch, Process, forked

ROOT = Path(__file__).resolve().parents[2]

SERVER = "server:\n  port: ${PORT}\n  admin:\n    port: ${ADMIN_PORT}\n"
"""Appended to a config file without a `server` section. A file with that section uses these two variables itself."""

WORKER = re.compile(r"worker \d+ \(process (\d+)\), table [0-9a-f]{12}, (\d+) in flight")
"""The line of a worker on the status page."""

FRESH = {"Cache-Control": "no-cache"}
"""Headers for a scrape that is not from the cache."""


_FIRST, _LAST = 10_000, 30_000
"""Ports below the range that Linux gives to connections and to listeners without a port of their own (32768 and up)."""

_ASKED_WITHIN = aiohttp.ClientTimeout(total=10)
"""Seconds after which an unresponsive gateway is requested again. It may have started to listen in the middle of a
request."""

_BLOCK = 200
"""Ports that a process reserves at a time, for as long as it lives."""


def ports_in_turn() -> Generator[int, None, None]:
    """Yield ports for ever. No other process gets one of these from this function. Raise RuntimeError if all ports are
    taken."""
    folder = Path(tempfile.gettempdir()) / f"dragoman-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for first in range(_FIRST, _LAST, _BLOCK):
        claim = os.open(folder / str(first), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        with open(claim, "rb"):
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield from itertools.cycle(range(first, first + _BLOCK))
    raise RuntimeError(f"other processes have taken all ports from {_FIRST} to {_LAST}")


_PORTS = ports_in_turn()
next(_PORTS)  # at import: some tests count open files


def free_ports(count: int) -> list[int]:
    """Return distinct loopback ports that are free.

    No other listener takes them before they are used. A port that the system chooses, or that another test process
    tries, may belong to another listener a moment later. The responses of that listener would then be taken for
    responses of the intended process.
    """
    return [next(filter(_is_free, _PORTS)) for _ in range(count)]


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def request_lines(log: bytes) -> list[JsonObject]:
    """Return the complete lines of an access log, except the lines about bytes that were no HTTP request."""
    whole, _, _ = log.rpartition(b"\n")
    return [line for line in map(orjson.loads, whole.splitlines()) if line["message"] != "malformed HTTP"]


def told_of(lines: Iterable[JsonObject]) -> int:
    """Return how many requests the lines of an access log count."""
    return sum(cast(int, line.get("count", 1)) for line in lines)


@dataclass(slots=True)
class RunningGateway:
    """A gateway that became ready. `url` and `admin_url` have no trailing slash. `exit_code` is `None` while it
    runs."""

    url: str
    admin_url: str
    table: Path
    process: Process
    stdout: Path
    stderr: Path
    exit_code: int | None = field(default=None, init=False)

    def log(self) -> list[JsonObject]:
        """Return the access log's lines about requests so far. A line arrives a moment after its response."""
        return request_lines(self.stdout.read_bytes())

    async def logged(self, count: int) -> list[JsonObject]:
        """Wait until the access log has counted that many requests, and return all of its lines. One line counts all
        requests that are refused within a second, as on a machine that is too busy for them."""
        while told_of(lines := self.log()) < count:  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.01)
        return lines

    def messages(self) -> str:
        """Return the process's log messages so far."""
        return self.stderr.read_text(encoding="utf-8")

    async def metrics(self) -> dict[str, float]:
        async with aiohttp.ClientSession(headers=FRESH) as http, http.get(f"{self.admin_url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {series: float(value) for series, _, value in pairs}

    async def serving(self, workers: int, restarts: int = 0) -> None:
        """Wait until `workers` workers serve, after `restarts` restarts."""
        while True:
            series = await self.metrics()
            if (series["dragoman_workers"], series["dragoman_worker_restarts_total"]) == (workers, restarts):
                return
            await asyncio.sleep(0.01)

    async def in_flight(self) -> dict[int, int]:
        """Return the number of requests in flight of each worker, by process id."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.admin_url}/status") as answer:
            lines = (await answer.json())["workers"]
        return {int(found[1]): int(found[2]) for found in map(WORKER.fullmatch, lines) if found}

    async def unready(self) -> None:
        """Wait until readiness reports a drain."""
        async with aiohttp.ClientSession() as http:
            while True:
                async with http.get(f"{self.admin_url}/health/ready") as answer:
                    if answer.status != 200:
                        return
                await asyncio.sleep(0.01)

    async def reload(self, table: str) -> None:
        """Write a new config file, send SIGHUP, and wait until the gateway has accepted or refused it; `metrics` shows
        which."""
        before = await self._reloads()
        self.table.write_text(with_server(table), encoding="utf-8")
        self.process.send_signal(signal.SIGHUP)
        while await self._reloads() == before:  # noqa: ASYNC110 - the counter has no event
            await asyncio.sleep(0.01)

    async def _reloads(self) -> float:
        name = "dragoman_config_reloads_total"
        return sum(value for series, value in (await self.metrics()).items() if series.startswith(name))

    async def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.exit_code = await asyncio.to_thread(self.process.wait)
        return self.exit_code


def with_server(table: str) -> str:
    """Return the configuration with the ports of this run. They are appended, so the lines of the test's text keep
    their numbers."""
    if any(line.startswith("server:") for line in table.splitlines()):
        return table
    return table.rstrip("\n") + "\n" + SERVER


def start_gateway(table: str, folder: Path, environment: Mapping[str, str], launch: Launch = forked) -> RunningGateway:
    """Start the process and return at once. It gets no environment variable of this process but PATH, and writes into
    `folder`."""
    port, admin_port = free_ports(2)
    path, stdout, stderr = folder / "gateway.yaml", folder / "stdout.log", folder / "stderr.log"
    path.write_text(with_server(table), encoding="utf-8")
    variables = {"PATH": os.environ.get("PATH", ""), "PORT": str(port), "ADMIN_PORT": str(admin_port)}
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = launch(("-m", "proxy", "serve", "-c", str(path)), {**variables, **environment}, out, err)
    url, admin_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}"
    return RunningGateway(url, admin_url, path, process, stdout, stderr)


async def until_ready(gateway: RunningGateway) -> None:
    """Wait until `/health/ready` succeeds. Raise AssertionError with the gateway's messages if it ended instead."""
    async with aiohttp.ClientSession(timeout=_ASKED_WITHIN) as http:
        while gateway.process.poll() is None:
            try:
                async with http.get(f"{gateway.admin_url}/health/ready") as answer:
                    if answer.status == 200:
                        return
            except (aiohttp.ClientConnectionError, TimeoutError):
                pass
            await asyncio.sleep(0.005)
    raise AssertionError(f"the gateway ended with {gateway.process.returncode}:\n{gateway.messages()}")


@asynccontextmanager
async def running_gateway(
    table: str, folder: Path, environment: Mapping[str, str] | None = None, launch: Launch = forked
) -> AsyncIterator[RunningGateway]:
    """Run a gateway for the duration of the block. It is killed at the end unless it was stopped.

    Raise AssertionError if it ended by itself, or if its messages contain a traceback.
    """
    gateway = start_gateway(table, folder, environment or {}, launch)
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
