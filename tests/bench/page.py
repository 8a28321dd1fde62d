"""The cost of the operator's page, and whether it delays requests: `python -m tests.bench.page`.

The gateway has many deployments, half of which were called lately, some with failures. One connection requests a light
response all the time while others load the page. The bench reports how long the light response takes without other
requests, and while the page is loaded: by one visitor after the other, by many visitors at once, by visitors who do not
read, and by a storm of wrong tokens.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from tests.bench.cpu import cpu_seconds, resident_bytes
from tests.bench.load import LENGTH
from tests.bench.programs.gateway import wait_until_ready
from tests.bench.programs.program import running_process
from tests.support.gateway import ROOT, free_ports

TOKEN: Final = "bench-admin-token"
SIZES: Final = (1000, 2000)
VISITORS: Final = 200
WRONG: Final = 2000
SLOW: Final = 50
LOADS: Final = 10
PAUSE: Final = 0.005
"""Seconds between two light requests."""

WATCHER: Final = """\
import json, select, socket, sys, time
port, pause = int(sys.argv[1]), float(sys.argv[2])
link = socket.create_connection(("127.0.0.1", port))
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
answers = link.makefile("rb")
times, refused = [], 0
print("begun", flush=True)
while not select.select([sys.stdin], [], [], pause)[0]:
    begun = time.perf_counter()
    link.sendall(b"GET /v1/models/mock/light HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\n\\r\\n")
    line, size = answers.readline(), 0
    while (field := answers.readline()) != b"\\r\\n":
        if field.lower().startswith(b"content-length:"):
            size = int(field.partition(b":")[2])
    answers.read(size)
    times.append(time.perf_counter() - begun)
    refused += b" 200 " not in line
print(json.dumps({"times": times, "refused": refused}))
"""
HEAD: Final = ("GET / HTTP/1.1", "host: 127.0.0.1", "accept: text/html", "connection: close")


def table(deployments: int, port: int, admin: int) -> str:
    """Return a configuration with so many deployments, ten of each model, and a route over each ten models."""
    models, routes = ["  mock/light: {}"], []
    for number in range(deployments // 10):
        names = ", ".join(f"d{place}: {{}}" for place in range(10))
        models.append(f"  mock/m{number}: {{deployments: {{{names}}}}}")
    for number in range(deployments // 100):
        routes.append(f"  r{number}: {{targets: [{', '.join(f'mock/m{10 * number + each}' for each in range(10))}]}}")
    server = f"{{port: {port}, watch: false, admin: {{port: {admin}, token: {TOKEN}}}}}"
    parts = (f"version: 1\nserver: {server}\nvendors: {{mock: {{}}}}\nmodels:", *models, "routes:", *routes)
    return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class Waits:
    """Times of light requests in seconds, and how many were refused."""

    times: Sequence[float]
    refused: int = 0

    def quantile(self, share: float) -> float:
        """Return the time within which this share of the requests finished."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def line(self, what: str, more: str = "") -> str:
        """Return the line of figures."""
        half, most = self.quantile(0.5) * 1000, max(self.times) * 1000
        tail = self.quantile(0.99) * 1000
        refused = f", {self.refused} refused" if self.refused else ""
        figures = f"p50 {half:.1f}, p99 {tail:.1f}, longest {most:.1f} ms of {len(self.times)}"
        return f"{what}: light request {figures}{refused}{more}"


async def answered(reader: asyncio.StreamReader) -> tuple[bytes, int]:
    """Read one response with a content-length. Return its first line and its size."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    size = int(length[1]) if length else 0
    await reader.readexactly(size)
    return head.partition(b"\r\n")[0], size


async def asked(port: int, request: bytes) -> tuple[bytes, int]:
    """Send a request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await answered(reader)
    finally:
        writer.transport.abort()


async def watched(port: int, until: Callable[[], Awaitable[object]]) -> Waits:
    """Request the light response all the time until `until` is done. It runs in a process of its own, so that it
    measures the gateway, not the visitors."""
    command = (sys.executable, "-c", WATCHER, str(port), str(PAUSE))
    watcher = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert watcher.stdout is not None
    await watcher.stdout.readline()
    await until()
    said, _ = await watcher.communicate(b"end")
    told = json.loads(said)
    return Waits(told["times"], told["refused"])


def page_request(token: str = TOKEN) -> bytes:
    """Return the bytes of a request for the page."""
    return "\r\n".join((*HEAD, f"authorization: Bearer {token}", "", "")).encode()


async def loads(admin: int, count: int) -> list[float]:
    """Load the page `count` times, one after the other, and return the times."""
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        line, _ = await asked(admin, page_request())
        assert b" 200 " in line, line
        times.append(time.perf_counter() - begun)
    return times


async def at_once(admin: int, count: int, token: str) -> dict[bytes, int]:
    """Load the page `count` times at once, and return how often each status came."""
    found: dict[bytes, int] = {}
    visits = [asked(admin, page_request(token)) for _ in range(count)]
    for each in await asyncio.gather(*visits, return_exceptions=True):
        line = type(each).__name__.encode() if isinstance(each, BaseException) else each[0]
        found[line] = found.get(line, 0) + 1
    return found


@contextlib.asynccontextmanager
async def who_do_not_read(admin: int, count: int) -> AsyncIterator[None]:
    """Run `count` visitors who request the page and read nothing, for the duration of the block."""
    writers = []
    for _ in range(count):
        # A reader with a limit of one byte stops reading at once.
        _, writer = await asyncio.open_connection("127.0.0.1", admin, limit=1)
        writer.write(page_request())
        writers.append(writer)
    try:
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


async def bench(deployments: int, python: str, folder: Path) -> list[str]:
    """Run all loads with so many deployments, and return the figures."""
    port, admin = free_ports(2)
    (folder / "table.yaml").write_text(table(deployments, port, admin), encoding="utf-8")
    command = [python, "-m", "proxy", "serve", "-c", str(folder / "table.yaml")]
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT)}
    with running_process(command, folder, admin, environment) as pid:
        await asyncio.to_thread(wait_until_ready, f"http://127.0.0.1:{admin}/health/ready", folder / "output")
        for number in range(deployments // 20):
            for place in range(10):
                await asked(port, _completion(f"mock/m{number}/d{place}"))
        found = [(await watched(port, lambda: asyncio.sleep(3))).line("alone")]
        before, taken = cpu_seconds(pid), await loads(admin, LOADS)
        size = (await asked(admin, page_request()))[1]
        cpu = (cpu_seconds(pid) - before) / (LOADS + 1)
        figures = f"{min(taken) * 1000:.0f} ms, {cpu * 1000:.0f} ms of CPU, {size:,} bytes"
        found.append(f"a page of {deployments:,} deployments: {figures}")
        found.append((await watched(port, lambda: loads(admin, LOADS))).line("one load after the other"))
        told: dict[bytes, int] = {}

        async def many(token: str, count: int) -> None:
            told.clear()
            told.update(await at_once(admin, count, token))

        found.append((await watched(port, lambda: many(TOKEN, VISITORS))).line(f"{VISITORS} at once", f" {told}"))
        async with who_do_not_read(admin, SLOW):
            found.append((await watched(port, lambda: loads(admin, 3))).line(f"beside {SLOW} who do not read"))
        found.append((await watched(port, lambda: many("wrong", WRONG))).line(f"{WRONG} wrong tokens", f" {told}"))
        found.append(f"memory at the end: {resident_bytes(pid) / 2**20:.0f} MiB")
    return found


def _completion(model: str) -> bytes:
    body = f'{{"model": "{model}", "prompt": "hi"}}'.encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def main() -> None:
    """Measure as the command line orders."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the gateway")
    parser.add_argument("--deployments", type=int, nargs="*", default=SIZES, help="how many (%(default)s)")
    chosen = parser.parse_args()
    for deployments in chosen.deployments:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            for line in uvloop.run(bench(deployments, chosen.python, Path(folder))):
                print(line)


if __name__ == "__main__":
    main()
