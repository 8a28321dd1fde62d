"""A load that runs until it is stopped, so that any window of it can be measured.

It is a closed loop: each connection sends its next request as soon as it has a response. Every response is checked, and
every byte counted: a fast error would look like speed. One response is read in full and parsed (`probe.py`). All
further responses must have its length, its number of events and its end.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from typing_extensions import override

from tests.bench.load import LAST_CHUNK, LENGTH, OK, WrongAnswer, shown


@dataclass(frozen=True, slots=True)
class Expected:
    """The properties of every response: `length` bytes of body, give or take `slack`. A stream also has `events` times
    `event`, and `done` at its end. `sent` is the number of bytes on the wire, with head and framing."""

    length: int
    slack: int
    sent: int
    event: bytes = b""
    events: int = 0
    done: bytes = b""


@dataclass(slots=True)
class Tally:
    """The counts so far, on all connections together. `bytes` includes responses that have not ended."""

    answers: int = 0
    bytes: int = 0
    failure: Exception | None = None

    def copy(self) -> "Tally":
        return replace(self)


class SteadyCaller(asyncio.Protocol):
    """One connection of the load."""

    def __init__(self, request: bytes, expected: Expected, tally: Tally) -> None:
        self._request = request
        self._expected = expected
        self._tally = tally
        self._stopped = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is one without inheriting from it
        self._transport.write(self._request)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stopped:
            self.fail(exc or WrongAnswer("the connection was closed"))

    def again(self) -> None:
        """Count a response and send the next request."""
        self._tally.answers += 1
        self._transport.write(self._request)

    def fail(self, error: Exception) -> None:
        self._tally.failure = self._tally.failure or error
        self.stop()

    def stop(self) -> None:
        self._stopped = True
        self._transport.abort()


class WholeSteady(SteadyCaller):
    """A caller that requests non-streaming responses."""

    def __init__(self, request: bytes, expected: Expected, tally: Tally) -> None:
        super().__init__(request, expected, tally)
        self._data = b""
        self._size = 0

    @override
    def data_received(self, data: bytes) -> None:
        self._tally.bytes += len(data)
        if not self._size:
            self._data += data
            data = b""
            if not self._read_head():
                return
        self._size -= len(data)
        if self._size < 0:
            self.fail(WrongAnswer("more bytes than the answer has"))
        elif self._size == 0:
            self._data = b""
            self.again()

    def _read_head(self) -> bool:
        """Find the complete head, set the number of body bytes to come, and return whether there was a head."""
        end = self._data.find(b"\r\n\r\n") + 4
        if end < 4:
            return False
        length = LENGTH.search(self._data, 0, end)
        size = int(length[1]) if length else -1
        if not self._data.startswith(OK) or abs(size - self._expected.length) > self._expected.slack:
            self.fail(WrongAnswer(shown(self._data)))
            return False
        self._size = end + size - len(self._data)
        return True


class StreamSteady(SteadyCaller):
    """A caller that requests streams. It checks each only at its end, so that it costs little while the stream runs."""

    def __init__(self, request: bytes, expected: Expected, tally: Tally) -> None:
        super().__init__(request, expected, tally)
        self._pieces: list[bytes] = []
        self._tail = b""

    @override
    def data_received(self, data: bytes) -> None:
        self._tally.bytes += len(data)
        self._pieces.append(data)
        self._tail = (self._tail + data)[-len(LAST_CHUNK) :]
        if self._tail != LAST_CHUNK and begins_stream(self._pieces[0]):
            return
        try:
            check_stream(b"".join(self._pieces), self._expected)
        except WrongAnswer as error:
            self.fail(error)
        else:
            self._pieces.clear()
            self._tail = b""
            self.again()


def begins_stream(data: bytes) -> bool:
    """Return whether a streamed response begins like this: a 200 with a chunked body, as far as its head has
    arrived."""
    head, whole, _ = data.partition(b"\r\n\r\n")
    return data.startswith(OK) and (not whole or b"chunked" in head)


_SIZE_LINE = re.compile(rb"\r\n[0-9a-fA-F]+\r\n")


def unframed(data: bytes) -> bytes:
    """Return the body of a chunked response without extensions, in which no line ends in CR LF; the result ends in one.

    A proxy may divide chunks anew at any position, also in the middle of a mark.
    """
    head = data.find(b"\r\n\r\n")
    return _SIZE_LINE.sub(b"", data[head + 2 :])


def check_stream(data: bytes, expected: Expected) -> None:
    """Raise WrongAnswer unless a streamed response has all of its bytes, its events, and its end."""
    body = unframed(data) if data.startswith(OK) else b""
    short = abs(len(body) - expected.length) > expected.slack
    if short or body.count(expected.event) != expected.events or expected.done not in body[-ENDING:]:
        raise WrongAnswer(shown(data))


ENDING = 512
"""Bytes at the end of a body in which its end mark is searched."""


@dataclass(slots=True)
class RunningLoad:
    """A load that runs: its counts, and its connections."""

    tally: Tally = field(default_factory=Tally)
    callers: list[SteadyCaller] = field(default_factory=list)

    def check(self) -> None:
        """Raise the failure of any connection."""
        if self.tally.failure is not None:
            raise self.tally.failure


@asynccontextmanager
async def running_load(
    port: int, requests: Sequence[bytes], expected: Expected, spread: float
) -> AsyncIterator[RunningLoad]:
    """Open a connection for each request, one after the other within `spread` seconds. Each sends requests until the
    block ends.

    At the end of the block, raise WrongAnswer or the error that closed a connection.
    """
    caller: Callable[[bytes, Expected, Tally], SteadyCaller] = StreamSteady if expected.event else WholeSteady
    load, loop = RunningLoad(), asyncio.get_running_loop()
    started = loop.time()
    try:
        for place, request in enumerate(requests):
            _, protocol = await loop.create_connection(
                lambda request=request: caller(request, expected, load.tally),  # type: ignore[misc]
                "127.0.0.1",
                port,
            )
            load.callers.append(protocol)
            await asyncio.sleep(max(0.0, started + spread * (place + 1) / len(requests) - loop.time()))
            load.check()
        yield load
        load.check()
    finally:
        for each in load.callers:
            each.stop()
