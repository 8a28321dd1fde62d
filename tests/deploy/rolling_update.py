"""Two gateways behind a proxy that are restarted one after the other, and clients that must not notice."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.proxies import ProxyProgram, proxying
from tests.proxy.kit.raw_client import RawClient, connected
from tests.proxy.kit.tables import digest_of
from tests.support.gateway import ROOT, RunningGateway, free_ports, until_ready
from tests.trust.load_client import KEY, End, Ended, ask, ask_on, asking

GRACE = 0.5
"""Seconds from not being ready to closing the listener. With checks every 100 ms, this is as 5 s with checks every
second."""

INTER = "100ms"

TABLE = f"""\
version: 1
server:
  port: ${{PORT}}
  admin:
    port: ${{ADMIN_PORT}}
  drain_grace: {GRACE}s
  watch: false
vendors: {{mock: {{}}}}
models:
  mock/echo: {{}}
  mock/slow-50: {{}}
teams:
  search: {{keys: ["{digest_of(KEY)}"], models: ["mock/*"]}}
"""

KINDS = (
    asking("mock/echo"),
    asking("mock/echo", stream=True),
    asking("mock/slow-50", stream=True),
    asking("mock/echo", user="x" * 60_000),
)
"""The requests of the clients, in rotation: non-streaming, streaming, streaming for most of a second, with a larger
body."""


@dataclass(slots=True)
class ReplacedGateway:
    """A gateway of the pair, which has the same ports after each restart."""

    folder: Path
    port: int
    admin_port: int
    running: RunningGateway | None = field(default=None, init=False)
    codes: list[int] = field(default_factory=list, init=False)

    async def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.running = self._started()
        await until_ready(self.running)

    def _started(self) -> RunningGateway:
        self.folder.mkdir(exist_ok=True)
        table, out, err = (self.folder / name for name in ("table.yaml", "stdout.log", "stderr.log"))
        table.write_text(TABLE, encoding="utf-8")
        variables = {"PATH": os.environ["PATH"], "PORT": str(self.port), "ADMIN_PORT": str(self.admin_port)}
        with out.open("ab") as said, err.open("ab") as told:
            command = [sys.executable, "-m", "proxy", "serve", "-c", str(table)]
            process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=said, stderr=told)
        urls = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.admin_port}"
        return RunningGateway(*urls, table, process, out, err)

    async def replace(self) -> None:
        """Stop it as a rollout does, and start it again."""
        assert self.running is not None
        self.codes.append(await self.running.stop())
        await self.start()

    def logged(self) -> int:
        """Return the size of its access log in bytes."""
        return (self.folder / "stdout.log").stat().st_size

    def kill(self) -> None:
        """Kill it immediately."""
        if self.running is not None:
            self.running.process.send_signal(signal.SIGKILL)
            self.running.process.wait()


@asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[tuple[ReplacedGateway, ReplacedGateway]]:
    """Yield two gateways that are ready. At the end, neither may have had a fault of its own."""
    ports = free_ports(4)
    nodes = (ReplacedGateway(folder / "one", *ports[:2]), ReplacedGateway(folder / "two", *ports[2:]))
    try:
        await asyncio.gather(*(node.start() for node in nodes))
        yield nodes
    finally:
        for node in nodes:
            node.kill()
    for node in nodes:
        told = (node.folder / "stderr.log").read_text(encoding="utf-8")
        assert "Traceback" not in told, told


@dataclass(slots=True)
class RollingClients:
    """Clients that send requests until `over` is set. `ends` records how each request ended.

    `shed` counts the requests that a gateway refused because of overload; they are sent again. On a machine with other
    work such refusals do not show a fault of the update.
    """

    port: int
    over: bool = False
    ends: list[Ended] = field(default_factory=list)
    shed: int = 0
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def _next(self) -> bytes:
        return KINDS[next(self._numbers) % len(KINDS)]

    def _note(self, ended: Ended) -> None:
        if ended.end is End.REFUSED and ended.status == 503:
            self.shed += 1
        else:
            self.ends.append(ended)

    async def keep(self, pause: float) -> None:
        """Send requests on one connection until the proxy closes it, then on another, with pauses between."""
        while not self.over:
            async with connected(self.port) as client:
                await self._ask_on(client, pause)

    async def _ask_on(self, client: RawClient, pause: float) -> None:
        while not self.over:
            ended = await ask_on(client, self._next())
            self._note(ended)
            if ended.closes or not ended.well:
                return
            await asyncio.sleep(pause)

    async def call(self, pause: float) -> None:
        """Open a new connection for each request."""
        while not self.over:
            self._note(await ask(self.port, self._next()))
            await asyncio.sleep(pause)

    def lost(self) -> Counter[str]:
        """Return how the failed requests ended, with their status."""
        return Counter(f"{ended.end} {ended.status}" for ended in self.ends if not ended.well)


async def both_in_service(port: int, nodes: tuple[ReplacedGateway, ReplacedGateway]) -> None:
    """Wait until the proxy has passed a request to each gateway. Health checks are not in the access log."""
    before = [node.logged() for node in nodes]
    while any(node.logged() == size for node, size in zip(nodes, before, strict=True)):
        await ask(port, KINDS[0])
        await asyncio.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Rolled:
    """The result of a rolling update."""

    requests: int
    lost: Counter[str]
    shed: int
    codes: list[int]
    restarts: int


async def roll(program: ProxyProgram, folder: Path, least: int, clients: int, pause: float) -> Rolled:
    """Replace each gateway, one after the other, and repeat until at least `least` requests have ended."""
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(pair(folder))
        ports = (nodes[0].port, nodes[1].port)
        port = await stack.enter_async_context(proxying(program, folder / "proxy", ports, INTER))
        await both_in_service(port, nodes)
        crowd = RollingClients(port)
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(crowd.call(pause) if number % 4 == 0 else crowd.keep(pause))
            restarts = 0
            while not restarts or len(crowd.ends) < least:
                for node in nodes:
                    await node.replace()
                    # As a rollout does, wait until the new gateway is in service.
                    await both_in_service(port, nodes)
                    restarts += 1
            crowd.over = True
        codes = [code for node in nodes for code in node.codes]
        return Rolled(len(crowd.ends), crowd.lost(), crowd.shed, codes, restarts)
