"""Gateways to be broken, in front of the mock vendor, and the load on them."""

import asyncio
import ipaddress
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

import aiohttp
from cryptography import x509

from tests.support.authority import DAY, NOW, Authority
from tests.support.gateway import ROOT, WORKER

MAIN_TABLE: Final = """
version: 1
server:
  port: {port}
  admin: {{port: {admin}}}
  tls: {{cert: {folder}/tls.crt, key: {folder}/tls.key}}
  shared: {{redis: "{redis}"}}
  ledger: "sqlite:{folder}/ledger.db"
  watch: false
  drain_timeout: 1s
vendors: {{mock: {{profile: openai_compatible, base_url: "{vendor}", allow_private: true}}}}
models:
  mock/one: {{upstream_model: {one}, concurrent: 90, price: {{input: 1, output: 2}}}}
  mock/two: {{upstream_model: {two}, price: {{input: 1, output: 2}}}}
  mock/account: {{upstream_model: {account}}}
  mock/cut: {{upstream_model: echo+cut-2}}
  mock/thinker: {{upstream_model: {thinker}}}
routes:
  fast: {{targets: [mock/one, mock/two]}}
teams:
  search:
    keys: [{{hash: "{search}", name: ci, expires: {soon}}}]
    models: ["*"]
  noisy: {{keys: ["{noisy}"], models: ["*"], limits: {{requests_per_minute: 30}}}}
  spender: {{keys: ["{spender}"], models: ["*"], budget: {{tokens: {budget}, per: day}}}}
"""

SIDE_TABLE: Final = """
version: 1
server: {{port: {port}, workers: {workers}, watch: false, drain_timeout: 1s, admin: {{port: {admin}}}}}
vendors: {{mock: {{}}}}
models: {models}
"""

BUDGET: Final = 1_000_000
"""The budget of the team `spender`, in tokens."""

GOOD: Final[Mapping[str, str | int]] = {
    "one": "echo",
    "two": "echo",
    "account": "echo",
    "thinker": "echo",
    "budget": BUDGET,
}
"""The mock models of the main config file and the team's budget while nothing is broken."""


@dataclass(slots=True)
class ObservedGateway:
    """A gateway as a process with its own folder. `bounds` are the environment variables of `small_gateway`."""

    folder: Path
    module: str
    port: int
    admin: int
    bounds: Mapping[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self, table: str) -> None:
        """Start the process. Its log is discarded, so that a limit on file sizes stops only the ledger."""
        self.write(table)
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module, "serve", "-c", str(self.folder / "table.yaml")],
            cwd=ROOT,
            env={"PATH": os.environ.get("PATH", ""), **self.bounds},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def write(self, table: str) -> None:
        (self.folder / "table.yaml").write_text(table, encoding="utf-8")

    async def ready(self) -> None:
        """Wait until it serves. Raises AssertionError if the process exits instead."""
        async with aiohttp.ClientSession() as http:
            while self.process is not None and self.process.poll() is None:
                with suppress(aiohttp.ClientConnectionError):
                    async with http.get(f"http://127.0.0.1:{self.admin}/health/ready") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.05)
        raise AssertionError(f"the gateway in {self.folder} ended")

    async def reload(self, table: str) -> int:
        """Write a config file, reload the gateway, and return the status of the response."""
        self.write(table)
        async with aiohttp.ClientSession() as http, http.post(f"http://127.0.0.1:{self.admin}/-/reload") as answer:
            return answer.status

    async def workers(self) -> list[int]:
        """Return the process ids of its workers."""
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{self.admin}/status") as answer:
            lines = (await answer.json())["workers"]
        return [int(found[1]) for found in map(WORKER.fullmatch, lines) if found]

    def limit(self, kind: int, soft: int) -> int:
        """Set a soft limit of the running process and return the previous one."""
        before, hard = resource.prlimit(self.pid, kind)
        resource.prlimit(self.pid, kind, (soft, hard))
        return before

    def descriptors(self) -> int:
        """Return the number of its open file descriptors."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    async def stop(self) -> int:
        """Stop it with SIGTERM as an operator does, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.process.wait, 60)
        self.process = None
        return code


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The files of a control group with a limit of 100 MiB, as the kernel writes them."""

    folder: Path

    def use(self, share: float) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "memory.max").write_text(f"{100 << 20}\n", encoding="ascii")
        (self.folder / "memory.stat").write_text("inactive_file 0\n", encoding="ascii")
        (self.folder / "memory.current").write_text(f"{int(share * (100 << 20))}\n", encoding="ascii")


def digest(key: str) -> str:
    return "sha256:" + sha256(key.encode()).hexdigest()


def main_table(gateway: ObservedGateway, vendor: str, redis: str, changes: Mapping[str, str | int] = GOOD) -> str:
    """Return the main gateway's config file with some values changed. Its key and its certificate expire within three
    days."""
    soon = (NOW + 3 * DAY).date().isoformat()
    keys = {team: digest(team) for team in ("search", "noisy", "spender")}
    places = {"port": gateway.port, "admin": gateway.admin, "folder": gateway.folder, "redis": redis, "soon": soon}
    places["vendor"] = vendor
    return MAIN_TABLE.format_map({**GOOD, **places, **keys, **changes})


def side_table(gateway: ObservedGateway, workers: int, *models: str) -> str:
    rows = "{" + ", ".join(f"{model}: {{}}" for model in models) + "}"
    return SIDE_TABLE.format(port=gateway.port, admin=gateway.admin, workers=workers, models=rows)


def write_certificate(folder: Path) -> None:
    """Write the certificate and the key of the main gateway's listener."""
    names = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate, key = Authority().pair(names, until=NOW + 3 * DAY)
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)


@dataclass(slots=True)
class Load:
    """Clients that send requests periodically. `lost` counts the requests without a complete response, by the
    exception."""

    base_url: str
    statuses: Counter[int] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    _running: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    def begin(self, team: str, model: str, every: float) -> None:
        """Send a team's requests for a model every `every` seconds, without waiting for earlier responses."""
        name = f"{team} {model}"
        self._running[name] = asyncio.create_task(self._ask_for_ever(team, model, every))

    async def end(self, *names: str) -> None:
        """Stop the named clients, or all clients if none is named."""
        tasks = [self._running.pop(name) for name in names or tuple(self._running)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask_for_ever(self, team: str, model: str, every: float) -> None:
        connector = aiohttp.TCPConnector(ssl=False, limit=100)
        async with aiohttp.ClientSession(connector=connector) as http, asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._ask(http, team, model))
                await asyncio.sleep(every)

    async def _ask(self, http: aiohttp.ClientSession, team: str, model: str) -> None:
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "one two three four"}]}
        headers = {"Authorization": f"Bearer {team}"}
        try:
            url = f"{self.base_url}/v1/chat/completions"
            async with http.post(url, json=body, headers=headers, timeout=aiohttp.ClientTimeout(30)) as answer:
                await answer.read()
                self.statuses[answer.status] += 1
        except (aiohttp.ClientError, TimeoutError) as error:
            self.lost[type(error).__name__] += 1
