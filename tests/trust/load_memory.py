"""The memory that unread and silent streams take (R12, R13)."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from tests.bench.cpu import resident_bytes
from tests.support.gateway import running_gateway
from tests.support.http_scripts import chunk, head
from tests.support.openai_wire import completion_frames
from tests.trust.figure_types import Result
from tests.trust.load_client import ask, asking
from tests.trust.load_rig import apart, many, port_of, table

HEAD = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
FRAMES = completion_frames(["x" * 200])
SPARE = 500
"""Descriptors that stay unused, of the descriptors that this process or the gateway may have."""

TOGETHER = 50
"""Connections that are opened at the same time."""

NARROW = 4096
"""Bytes of the receive buffer of a client that does not read."""


@dataclass(slots=True)
class Source:
    """A vendor that streams: one text and then nothing, or texts without end. It counts its connections."""

    endless: bool
    port: int = 0
    streams: int = 0
    sent: int = 0
    closed: int = 0
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + chunk(FRAMES[0]))
            self.streams += 1
            while self.endless and not writer.is_closing():
                writer.write(chunk(FRAMES[0]) * 32)
                await writer.drain()
                self.sent += 32 * len(FRAMES[0])
            while await reader.read(65536):
                pass
        except (asyncio.IncompleteReadError, OSError):
            pass  # the connection was closed, which is counted
        finally:
            self.closed += 1
            writer.transport.abort()


@asynccontextmanager
async def source(endless: bool) -> AsyncIterator[Source]:
    vendor = Source(endless)
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0, backlog=1024)
    vendor.port = server.sockets[0].getsockname()[1]
    try:
        yield vendor
    finally:
        server.close()
        for writer in vendor._writers:
            writer.transport.abort()


async def until(reached: Callable[[], bool], seconds: float) -> bool:
    """Wait until `reached` returns true, at most `seconds` seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not reached() and loop.time() < end:  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.05)
    return reached()


@dataclass(frozen=True, slots=True)
class Held:
    """Concurrent streams: bytes of the gateway at rest, with all streams, and after they were closed."""

    streams: int
    at_rest: int
    loaded: int
    after: int

    @property
    def each(self) -> float:
        return (self.loaded - self.at_rest) / self.streams


def affordable(streams: int) -> int:
    """Return the number of streams that the descriptors allow: each needs two in the gateway and two here."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(streams, (soft - SPARE) // 2)


async def idle_streams(folder: Path, streams: int) -> Held:
    """Open the streams, a few at a time, and read the gateway's memory when each has its first text."""
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(source(endless=False))
        models = many("fake", streams)
        text = table({"fake": f"http://127.0.0.1:{vendor.port}"}, [f"{model}: {{}}" for model in models])
        gateway = await stack.enter_async_context(running_gateway(text, folder))
        stack.enter_context(apart(gateway.process.pid))
        pid, port = gateway.process.pid, port_of(gateway)
        at_rest = resident_bytes(pid)
        writers: list[asyncio.StreamWriter] = []

        async def begin(number: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            writer.write(asking(models[number % len(models)], stream=True))
            if not (await reader.readline()).startswith(b"HTTP/1.1 200"):
                # The gateway refuses new requests while its event loop is late, which is possible on a busy machine.
                writers.remove(writer)
                writer.transport.abort()
                await asyncio.sleep(1)
                return await begin(number)
            await reader.readuntil(b"\n\n")

        for start in range(0, streams, TOGETHER):
            await asyncio.gather(*(begin(number) for number in range(start, min(start + TOGETHER, streams))))
        loaded = resident_bytes(pid)
        for writer in writers:
            writer.transport.abort()
        assert await until(lambda: vendor.closed >= streams, 30.0), "streams whose client left are still open"
        return Held(streams, at_rest, loaded, resident_bytes(pid))


def idle_memory(folder: Path, streams: int) -> Result:
    """Return the figure for `streams` idle streams, or for as many as the descriptors allow."""
    held = uvloop.run(idle_streams(folder, affordable(streams)))
    fewer = "" if held.streams == streams else f" (not {streams}: descriptors)"
    value = (
        f"{held.each / 1024:.1f} KB for each of {held.streams} idle streams{fewer}; {held.loaded / 2**20:.0f} MB with "
        f"them, {held.at_rest / 2**20:.0f} MB at rest, {held.after / 2**20:.0f} MB after"
    )
    return Result(value, held.streams == streams and held.each <= 40 * 1024 and held.loaded <= 220 * 2**20)


@dataclass(frozen=True, slots=True)
class Unread:
    """Clients that do not read. It has the bytes of the gateway's memory for each; and from the moment at which the
    vendor stopped, the bytes that it sent nevertheless, and the seconds to the first and the last close (`None` if some
    stayed open). `well` means that the gateway still responds."""

    each: float
    more: int
    first: float
    last: float | None
    well: bool


async def _still(vendor: Source, quiet: int) -> int:
    """Wait until every buffer on the path is full: until the vendor could write nothing for `quiet` seconds, or a
    minute has passed. Return the bytes that it wrote."""
    sent, still = -1, 0
    for _ in range(60):
        still = still + 1 if sent == vendor.sent else 0
        if still >= quiet:
            break
        sent = vendor.sent
        await asyncio.sleep(1)
    return sent


async def unread_streams(folder: Path, clients: int, patience: float, quiet: int) -> Unread:
    """Run clients that request endless streams and read nothing, until they are closed or patience ends."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(source(endless=True))
        models = many("fake", clients)
        text = table({"fake": f"http://127.0.0.1:{vendor.port}"}, [f"{model}: {{}}" for model in [*models, "fake/z"]])
        gateway = await stack.enter_async_context(running_gateway(text, folder))
        pid, port = gateway.process.pid, port_of(gateway)
        at_rest = resident_bytes(pid)
        sockets = []
        for number in range(clients):
            silent = stack.enter_context(socket.socket())
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
            silent.connect(("127.0.0.1", port))
            silent.sendall(asking(models[number % len(models)], stream=True))
            sockets.append(silent)
        assert await until(lambda: vendor.streams >= clients, 20.0), "streams did not begin"
        sent = await _still(vendor, quiet)
        each, stood = (resident_bytes(pid) - at_rest) / clients, loop.time()
        await until(lambda: vendor.closed > 0, patience)
        first = loop.time() - stood
        more = vendor.sent - sent
        closed = await until(lambda: vendor.closed >= clients, stood + patience - loop.time())
        last = loop.time() - stood if closed else None
        well = (await ask(port, b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")).well
        return Unread(each, more, first, last, well)


def slow_readers(folder: Path, clients: int, patience: float, limit: float) -> Result:
    """Return the figure for `clients` clients, each of which must be closed after `limit` seconds."""
    seen = uvloop.run(unread_streams(folder, clients, patience, 5))
    closed = "not all closed" if seen.last is None else f"closed {seen.first:.0f} to {seen.last:.0f} s"
    value = (
        f"{seen.each / 1024:.0f} KB for each of {clients} that never read, {closed} after the upstream stood still "
        f"(limit {limit:g} s), {seen.more} bytes more from it"
    )
    timely = seen.last is not None and seen.first > limit / 2 and seen.last <= 1.5 * limit
    return Result(value, seen.each <= 512 * 1024 and seen.more == 0 and timely and seen.well)


def r12(folder: Path) -> Result:
    """Return the figure for four thousand idle streams."""
    return idle_memory(folder, 4000)


def r13(folder: Path) -> Result:
    """Return the figure for two hundred clients that never read, at the gateway's real limit."""
    return slow_readers(folder, 200, 150.0, 60.0)
