"""A thousand simultaneous requests to a gateway process before a healthy vendor: every one is served."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from typing_extensions import override

from tests.support.gateway import running_gateway
from tests.support.http_scripts import LAST_CHUNK, chunk, head
from tests.support.openai_wire import completion_frames
from tests.trust.load_client import asking
from tests.trust.load_rig import port_of, table

BEGINS = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
FIRST, *REST = (chunk(frame) for frame in completion_frames(["hello", " world"]))
ASKS = asking("fake/m", stream=True)


class HeldConnection(asyncio.Protocol):
    """One connection of a vendor that begins each stream at once, and ends it on `end`. It costs next to no CPU
    time.
    """

    def __init__(self, streams: "list[HeldConnection]") -> None:
        self._streams = streams

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        if data.startswith(b"POST "):
            self._streams.append(self)
            self._transport.write(BEGINS + FIRST)

    def end(self) -> None:
        self._transport.write(b"".join(REST) + LAST_CHUNK)


class Client(asyncio.Protocol):
    """One request. `ended` is done once its response is complete or the connection is lost."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answer = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(ASKS)

    @override
    def data_received(self, data: bytes) -> None:
        self.answer += data
        if (b"[DONE]" in data and data.endswith(LAST_CHUNK)) or not self.answer.startswith(b"HTTP/1.1 200 "):
            self._transport.close()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(None)

    @property
    def served(self) -> bool:
        return self.answer.startswith(b"HTTP/1.1 200 ") and b" world" in self.answer and b"[DONE]" in self.answer


@asynccontextmanager
async def holding_vendor(streams: list[HeldConnection]) -> AsyncIterator[str]:
    """Yield the base URL, without a path, of a vendor that adds its streams to `streams`."""
    server = await asyncio.get_running_loop().create_server(
        lambda: HeldConnection(streams), "127.0.0.1", 0, backlog=1024
    )
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def crowd(port: int, count: int) -> list[Client]:
    """Connect `count` clients, all at once."""
    loop = asyncio.get_running_loop()
    made = await asyncio.gather(*(loop.create_connection(Client, "127.0.0.1", port) for _ in range(count)))
    return [client for _, client in made]


def completed_clients(clients: Iterable[Client]) -> list[Client]:
    """Return the clients whose request has ended."""
    return [client for client in clients if client.ended.done()]


async def test_a_thousand_streams_begun_together_are_all_under_way_at_once_and_all_served(tmp_path: Path) -> None:
    streams: list[HeldConnection] = []
    async with (
        holding_vendor(streams) as url,
        running_gateway(table({"fake": url}, ["fake/m: {}"]), tmp_path) as gateway,
    ):
        clients = await crowd(port_of(gateway), 1000)
        while len(streams) < 1000 and not completed_clients(clients):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
        assert (len(streams), [client.answer for client in completed_clients(clients)]) == (1000, [])
        for stream in streams:
            stream.end()
        await asyncio.gather(*(client.ended for client in clients))
    assert sum(client.served for client in clients) == 1000


async def test_of_forty_as_many_are_under_way_as_the_operator_says_and_the_others_are_refused(tmp_path: Path) -> None:
    streams: list[HeldConnection] = []
    bound = "fake/m: {concurrent: 8}"
    async with holding_vendor(streams) as url, running_gateway(table({"fake": url}, [bound]), tmp_path) as gateway:
        clients = await crowd(port_of(gateway), 40)
        while len(completed_clients(clients)) < 32:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
        assert {client.answer.split(b" ", 2)[1] for client in completed_clients(clients)} == {b"503"}
        series = await gateway.metrics()
        for stream in streams:
            stream.end()
        await asyncio.gather(*(client.ended for client in clients))
    assert (len(streams), sum(client.served for client in clients)) == (8, 8)
    assert series['dragoman_concurrency_limit{deployment="fake/m/default"}'] == 8
    assert series['dragoman_inflight_requests{deployment="fake/m/default"}'] == 8
