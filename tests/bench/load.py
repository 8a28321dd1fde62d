"""A load generator on raw sockets: a number of requests on a number of connections, then it stops.

An answer that is not the expected one raises WrongAnswer: a fast error would look like speed.
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
"""Seconds after which a load is given up."""


class WrongAnswer(Exception):
    """The measured program did not answer as expected; carries the start of what it said."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load: the whole request, how often, on how many connections at once."""

    request: bytes
    count: int
    connections: int


def whole_answer(data: bytes) -> bool:
    """Return whether an answer under a content-length is complete. Raises WrongAnswer unless it is a 200 with a
    length."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return False
    length = LENGTH.search(data, 0, head)
    if not data.startswith(OK) or length is None:
        raise WrongAnswer(shown(data))
    return len(data) >= head + 4 + int(length[1])


def shown(data: bytes) -> str:
    """Enough of an answer to see what is wrong with it."""
    return data[:600].decode("latin-1") + " ... " + data[-600:].decode("latin-1")


class Caller(asyncio.Protocol):
    """One connection that sends the next request as soon as it got an answer, until none is left."""

    def __init__(self, request: bytes, tickets: Iterator[int]) -> None:
        self._request = request
        self._tickets = tickets
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without inheriting from it
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
    """Asks for answers that are not streamed."""

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
    """Send the load to a loopback port; the seconds it took. Raises WrongAnswer, or TimeoutError after `PATIENCE`."""
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
