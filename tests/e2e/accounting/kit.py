"""Gateways with a limited team, clients that count for themselves, and the rows of a ledger."""

import asyncio
import itertools
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from providers.json_types import JsonObject
from tests.proxy.kit.raw_client import RawClient, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of
from tests.support.gateway import RunningGateway, start_gateway, until_ready

KEY: Final = "dk-of-a-limited-team"

PRICE: Final = 10.0
"""USD per million tokens, in and out."""

_NUMBERS: Final = itertools.count(1)


def table(team: str, server: str = "", workers: int = 0) -> str:
    """Return a configuration of the mock vendor and one team, with these lines in its section and in the section of the
    server."""
    lines = ["  port: ${PORT}", "  admin:", "    port: ${ADMIN_PORT}", "  drain_grace: 0s", "  watch: false"]
    lines += [f"  {line}" for line in server.splitlines()]
    if workers:
        lines.append(f"  workers: {workers}")
    section = "\n".join(f"    {line}" for line in team.splitlines())
    return f"""\
version: 1
server:
{chr(10).join(lines)}
vendors: {{mock: {{}}}}
models:
  mock/echo: {{price: {{input: {PRICE}, output: {PRICE}}}}}
  mock/hang-1: {{price: {{input: {PRICE}, output: {PRICE}}}}}
teams:
  search:
    keys: ["{digest_of(KEY)}"]
    models: ["mock/*"]
{section}
"""


def asking(name: str, model: str = "mock/echo", stream: bool = False) -> bytes:
    """Return a request's bytes. Its name is also in its row of the ledger."""
    body: JsonObject = {"model": model, "prompt": "hi", "max_tokens": 4, "stream": stream}
    return request("POST", "/v1/completions", body, {"Authorization": f"Bearer {KEY}", "X-Request-Id": name})


@dataclass(slots=True, eq=False)
class Client:
    """The requests and responses of clients. `answers` has the status of each request with a complete response, `took`
    the seconds of each, `at` the times of their arrival."""

    answers: dict[str, int] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    at: dict[str, float] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    _open: list[RawClient] = field(default_factory=list)

    @property
    def statuses(self) -> Counter[int]:
        return Counter(self.answers.values())

    @property
    def names(self) -> Counter[str]:
        """Return each request that got a response, once."""
        return Counter(list(self.answers))

    async def ask(self, gateway: RunningGateway, count: int = 1, model: str = "mock/echo") -> Counter[int]:
        """Send requests one after the other, each on a connection of its own, and return their statuses."""
        found: Counter[int] = Counter()
        for _ in range(count):
            name = f"one-{next(_NUMBERS)}"
            answer = await exchange(port_of(gateway.url), asking(name, model))
            self.answers[name] = answer.status
            found[answer.status] += 1
        return found

    def leave(self) -> None:
        """Close every connection."""
        for each in self._open:
            each.writer.transport.abort()

    async def _connect(self, gateway: RunningGateway) -> RawClient:
        made = RawClient(*await asyncio.open_connection("127.0.0.1", port_of(gateway.url)))
        self._open.append(made)
        return made

    async def hold(self, gateway: RunningGateway) -> RawClient:
        """Begin a stream that does not end, on a connection of its own."""
        client = await self._connect(gateway)
        await client.send(asking(f"held-{next(_NUMBERS)}", "mock/hang-1", stream=True))
        return client

    async def load(self, gateway: RunningGateway, seconds: float, rate: float, connections: int = 8) -> None:
        """Send requests at this rate, alternately over connections, whether or not they succeed. A connection without a
        response is opened again."""
        loop = asyncio.get_running_loop()
        begin = loop.time()

        async def one(number: int) -> None:
            step = number
            client: RawClient | None = None
            while (due := begin + step / rate) < begin + seconds:
                step += connections
                if (wait := due - loop.time()) > 0:
                    await asyncio.sleep(wait)
                client = await self._send(gateway, client)
            if client is not None:
                client.writer.transport.abort()

        await asyncio.gather(*(one(number) for number in range(connections)))

    async def _send(self, gateway: RunningGateway, client: RawClient | None) -> RawClient | None:
        """Send a request and return the connection that is left."""
        name = f"many-{next(_NUMBERS)}"
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            if client is None:
                client = await self._connect(gateway)
            await client.send(asking(name))
            answer = await client.answer()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.lost.add(name)
            if client is not None:
                client.writer.transport.abort()
            await asyncio.sleep(0.005)
            return None
        self.answers[name] = answer.status
        self.at[name] = loop.time()
        self.took[name] = self.at[name] - began
        if answer.headers.get("connection") == "close":
            client.writer.transport.abort()
            return None
        return client


@dataclass(frozen=True, slots=True)
class Rows:
    """The contents of a ledger: how often each request occurs, their statuses, and the spending of the team's
    budget."""

    requests: Counter[str]
    statuses: Mapping[str, int]
    spent: tuple[int, int, int]

    def lacks(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.requests]

    @property
    def doubled(self) -> list[str]:
        return [name for name, count in self.requests.items() if count > 1]


def sqlite_rows(file: Path) -> Rows:
    """Return the rows of a SQLite ledger."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as link:
        found = link.execute("SELECT request_id, status FROM request").fetchall()
        spent = link.execute(
            "SELECT sum(requests), sum(tokens), sum(cost) FROM spend WHERE scope = 'team search'"
        ).fetchone()
    return Rows(Counter(name for name, _ in found), dict(found), spent)


def postgres_rows(url: str) -> Rows:
    """Return the rows of a ledger in PostgreSQL."""
    import psycopg

    with psycopg.connect(url) as link:
        found = link.execute("SELECT request_id, status FROM dragoman.request").fetchall()
        spent = link.execute(
            "SELECT sum(requests), sum(tokens), sum(cost) FROM dragoman.spend WHERE scope = 'team search'"
        ).fetchone()
    assert spent is not None
    return Rows(Counter(name for name, _ in found), dict(found), spent)


@contextmanager
def killed_at_end(made: RunningGateway) -> Iterator[RunningGateway]:
    """Kill a process at the end, unless the block has ended it."""
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()


@asynccontextmanager
async def started(
    text: str, folder: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[RunningGateway]:
    """Run a gateway that is ready and may be killed. Its folder may have belonged to an earlier gateway."""
    with killed_at_end(start_gateway(text, folder, environment or {})) as made:
        await until_ready(made)
        yield made


async def ended(made: RunningGateway) -> None:
    """Wait until a process has ended."""
    await asyncio.to_thread(made.process.wait)
