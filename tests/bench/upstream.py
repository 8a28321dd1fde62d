"""A fake upstream that costs little: it makes the bytes of each kind of response once, and the request orders one by a
mark.

It speaks every measured dialect, in plain HTTP and over TLS. It parses no JSON.

    python -m tests.bench.upstream PORT TLS_PORT CERTIFICATE

prints a line when it listens on both, and serves until standard input ends.
"""

import asyncio
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

import uvloop
from typing_extensions import override

from tests.bench.traffic import Ask, asked
from tests.bench.vendors import EVERY_WIRE, WIRES, wire_of
from tests.support.authority import LOCAL, Authority
from tests.support.gateway import ROOT, free_ports

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@lru_cache(maxsize=64)
def whole_bytes(dialect: str, ask: Ask) -> bytes:
    """Return a response that leaves in one write: a non-streaming one, or a stream without a pace."""
    return EVERY_WIRE[dialect].answer(ask)


@lru_cache(maxsize=64)
def paced_pieces(dialect: str, ask: Ask) -> Sequence[bytes]:
    """Return the writes of a stream with a pace. The head goes before the first text, as vendors send it."""
    first, *rest = WIRES[dialect].stream(ask)
    return [WIRES[dialect].stream_head() + first, *rest]


class Upstream(asyncio.Protocol):
    """One kept-alive connection with one request at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._pieces: Iterator[bytes] = iter(())

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is one without inheriting from it

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        end = self._buffer.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        length = LENGTH.search(self._buffer, 0, end)
        if length is None:
            self._transport.abort()  # no request of this bench lacks a length
        elif len(self._buffer) >= end + int(length[1]):
            request, self._buffer = self._buffer, b""
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        ask = asked(request) or Ask()
        dialect = wire_of(request).name
        if not (ask.chunks and ask.pace):
            self._transport.write(whole_bytes(dialect, ask))
            return
        self._pieces = iter(paced_pieces(dialect, ask))
        self._pace = ask.pace / 1000
        self._next = asyncio.get_running_loop().time()
        self._tick()

    def _tick(self) -> None:
        piece = None if self._transport.is_closing() else next(self._pieces, None)
        if piece is None:
            return
        self._transport.write(piece)
        self._next += self._pace
        asyncio.get_running_loop().call_at(self._next, self._tick)


async def serve(port: int, tls_port: int, certificate: str) -> None:
    """Serve until standard input ends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(Upstream, "127.0.0.1", port, backlog=1024)
    secure = await loop.create_server(Upstream, "127.0.0.1", tls_port, backlog=1024, ssl=context)
    print("ready", flush=True)
    async with plain, secure:
        await asyncio.to_thread(sys.stdin.buffer.read)


@dataclass(frozen=True, slots=True)
class RunningUpstream:
    """The fake upstream's ports, in plain HTTP and over TLS, its process, and the authority of its certificate, as a
    PEM file."""

    port: int
    tls_port: int
    pid: int
    authority: Path


@contextmanager
def running_upstream(folder: Path) -> Iterator[RunningUpstream]:
    """Run the fake upstream in a process of its own. Write its certificate into `folder`."""
    authority, chain = Authority(), folder / "upstream.pem"
    chain.write_bytes(b"".join(authority.pair(*LOCAL)))
    (folder / "authority.pem").write_bytes(authority.pem())
    port, tls_port = free_ports(2)
    command = [sys.executable, "-m", "tests.bench.upstream", str(port), str(tls_port), str(chain)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the fake upstream did not start")
        yield RunningUpstream(port, tls_port, process.pid, folder / "authority.pem")


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
