"""A load generator on raw sockets: a number of requests on a number of connections, then it stops.

An unexpected response raises WrongAnswer: a fast error would look like speed.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from typing_extensions import override

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
OK = b"HTTP/1.1 200 "
LAST_CHUNK = b"\r\n0\r\n\r\n"
PATIENCE = 120.0
"""Seconds after which a load is abandoned."""


class WrongAnswer(Exception):
    """The program that is measured returned an unexpected response. The message is the start of the response."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load: the HTTP request, the number of requests, and the number of concurrent connections."""

    request: bytes
    count: int
    connections: int


def whole_answer(data: bytes) -> bool:
    """Return whether a response with a content-length is complete. Raise WrongAnswer unless it is a 200 with a
    length."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return False
    length = LENGTH.search(data, 0, head)
    if not data.startswith(OK) or length is None:
        raise WrongAnswer(shown(data))
    return len(data) >= head + 4 + int(length[1])


def shown(data: bytes) -> str:
    """Return enough of a response to see its error."""
    return data[:600].decode("latin-1") + " ... " + data[-600:].decode("latin-1")


class Caller(asyncio.Protocol):
    """One connection that sends the next request as soon as it got a response, until none is left."""

    def __init__(self, request: bytes, tickets: Iterator[int]) -> None:
        self._request = request
        self._tickets = tickets
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is one without inheriting from it
        self.ask()

    def ask(self) -> None:
        if next(self._tickets, None) is None:
            self.done.set_result(None)
            self._transport.close()
        else:
            self._transport.write(self._request)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            self._transport.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(exc or WrongAnswer("the connection was closed"))


class WholeCaller(Caller):
    """A caller that requests non-streaming responses."""

    def __init__(self, request: bytes, tickets: Iterator[int]) -> None:
        super().__init__(request, tickets)
        self._data = b""

    @override
    def data_received(self, data: bytes) -> None:
        self._data += data
        try:
            if not whole_answer(self._data):
                return
        except WrongAnswer as error:
            self.fail(error)
        else:
            self._data = b""
            self.ask()


async def run_load(port: int, load: Load, caller: Callable[[bytes, Iterator[int]], Caller]) -> float:
    """Send the load to a loopback port, and return the seconds that it took. Raise WrongAnswer, or TimeoutError after
    `PATIENCE`."""
    loop = asyncio.get_running_loop()
    tickets = iter(range(load.count))
    callers: list[Caller] = []
    started = loop.time()
    async with asyncio.timeout(PATIENCE):
        for _ in range(load.connections):
            _, protocol = await loop.create_connection(lambda: caller(load.request, tickets), "127.0.0.1", port)
            callers.append(protocol)
        await asyncio.gather(*(protocol.done for protocol in callers))
    return loop.time() - started
