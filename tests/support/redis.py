"""Redis for the tests: the real server if it is installed, and fake servers that behave like a lost one."""

import asyncio
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.gateway import free_ports

MISSING = "redis-server is not installed"


@dataclass(slots=True)
class RealRedis:
    """A redis-server that may be stopped, frozen and restarted on its port."""

    folder: Path
    port: int
    options: tuple[str, ...] = ()
    process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server without data, and wait until it listens."""
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip(MISSING)
        base = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder))
        with (self.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen([program, *base, *self.options], stdout=log, stderr=log)
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=30).close()
            except ConnectionRefusedError:
                time.sleep(0.005)
            else:
                return
        raise AssertionError((self.folder / "redis.log").read_text(encoding="utf-8"))

    def stop(self) -> None:
        """Kill the server. Its data is lost."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> list[str]:
        """Send a command and return the lines of its simple response."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as wire:
            parts = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
            wire.sendall(f"*{len(words)}\r\n{parts}*1\r\n$4\r\nQUIT\r\n".encode())
            answer = b""
            while piece := wire.recv(65536):
                answer += piece
        return answer.decode().removesuffix("+OK\r\n").splitlines()


@contextmanager
def real_redis(folder: Path, *options: str) -> Iterator[RealRedis]:
    """Run a server for the duration of the block. Skip the test if redis-server is not installed."""
    (port,) = free_ports(1)
    server = RealRedis(folder, port, options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

NOTHING = b"*2\r\n:1000\r\n*0\r\n"
"""The response to our script if there are no entries."""


@dataclass(slots=True)
class FakeRedis:
    serve: Serve
    port: int = 0
    connections: int = 0
    commands: int = 0
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.connections += 1
        try:
            await self.serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            self.tasks.discard(task)
            writer.transport.abort()


@asynccontextmanager
async def fake_redis(serve: Serve) -> AsyncIterator[FakeRedis]:
    """Run a fake server for the duration of the block."""
    made = FakeRedis(serve)
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in (tasks := list(made.tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def frozen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read, and never respond."""
    while await reader.read(65536):
        pass


async def command(reader: asyncio.StreamReader) -> list[bytes]:
    """Return the next command. Return an empty list at the end of the connection."""
    if not (head := await reader.readline()):
        return []
    words = []
    for _ in range(int(head[1:])):
        size = int((await reader.readline())[1:])
        words.append((await reader.readexactly(size + 2))[:-2])
    return words


def answering(reply: Callable[[], bytes]) -> Serve:
    """Accept the client's commands about itself, and respond to every script with `reply`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while words := await command(reader):
            writer.write(reply() if words[0] == b"EVAL" else b"+OK\r\n")
            await writer.drain()

    return serve


def bulk(*parts: bytes) -> bytes:
    """Return a response to our script with these entries, at 1,000 ms of the server's clock."""
    return b"*2\r\n:1000\r\n*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
