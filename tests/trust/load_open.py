"""Load at a constant rate: requests on reused connections, begun whether or not the gateway keeps up.

The time of a request that finds no free connection runs from the moment at which it was due. Times are precise to a
millisecond.

If the load itself is suspended for a while, it then sends all due requests at once, which is no constant rate. So it
runs without garbage collection, and reports for how long it was suspended for other reasons.
"""

import asyncio
import gc
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from typing_extensions import override

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
TICK = 0.002
AT_ONCE = 50
"""Connections that are opened at the same time."""

STOOD_STILL = 0.005
"""Seconds of delay from which the load counts as suspended, so that its requests come in a bunch."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was due at this second of the load, its status, and the seconds to its complete response."""

    due: float
    status: int
    seconds: float


@dataclass(slots=True)
class Tally:
    """The result of a load. `lost` is the number of requests without a response when patience ended."""

    seconds: float
    answers: list[Answered] = field(default_factory=list)
    lost: int = 0

    def times(self, status: int) -> list[float]:
        return [answer.seconds for answer in self.answers if answer.status == status]

    @property
    def goodput(self) -> float:
        return len(self.times(200)) / self.seconds


class Lane(asyncio.Protocol):
    """One connection, with one request at a time on it."""

    def __init__(self, load: "OpenLoad") -> None:
        self._load = load
        self._data = b""
        self._due = 0.0
        self._busy = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is one without inheriting from it

    def ask(self, due: float) -> None:
        """Send the request that was due at `due`."""
        self._due, self._busy = due, True
        self._transport.write(self._load.request)

    @override
    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0 or (length := LENGTH.search(self._data, 0, end)) is None:
            return
        if len(self._data) >= end + 4 + int(length[1]):
            status, closes = int(self._data[9:12]), b"connection: close" in self._data[:end].lower()
            self._data, self._busy = b"", False
            self._load.answered(self, self._due, status)
            if closes:
                self._transport.close()
            else:
                self._load.free(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._load.gone(self, self._busy)

    def drop(self) -> None:
        self._transport.abort()


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection in this process for the block: one pass over a minute's requests and responses takes
    140 ms (measured), in which a hundred more become due."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class OpenLoad:
    """One load against a loopback port. `stalled` is the total of seconds for which it was suspended."""

    def __init__(self, port: int, request: bytes, rate: float, seconds: float, most: int) -> None:
        self.request = request
        self.tally = Tally(seconds)
        self.stalled = 0.0
        self._port = port
        self._rate = rate
        self._most = most
        self._idle: deque[Lane] = deque()
        self._lanes: set[Lane] = set()
        self._waiting: deque[float] = deque()
        self._connecting = 0
        self._broken = 0
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()

    async def run(self, patience: float) -> Tally:
        """Begin every request, wait `patience` seconds for the last responses, and close."""
        with uncollected():
            await self._run(patience)
        for lane in list(self._lanes):
            lane.drop()
        return self.tally

    async def _run(self, patience: float) -> None:
        begun, total, turn = 0, int(self._rate * self.tally.seconds), 0.0
        self._start = self._loop.time()
        async with asyncio.TaskGroup() as group:
            while len(self.tally.answers) + self._broken < total:
                now = self._loop.time() - self._start
                if now > self.tally.seconds + patience:
                    break
                if (late := now - turn) > STOOD_STILL:
                    self.stalled += late
                turn = now + TICK
                for number in range(begun, min(total, int(now * self._rate) + 1)):
                    self._waiting.append(number / self._rate)
                    begun += 1
                self._send()
                wanted = min(len(self._waiting), AT_ONCE, self._most - len(self._lanes)) - self._connecting
                for _ in range(wanted):
                    self._connecting += 1
                    group.create_task(self._connect())
                await asyncio.sleep(TICK)
        self.tally.lost = total - len(self.tally.answers)

    def answered(self, lane: Lane, due: float, status: int) -> None:
        """Record a response."""
        self.tally.answers.append(Answered(due, status, self._loop.time() - self._start - due))

    def free(self, lane: Lane) -> None:
        """Mark a connection as free."""
        self._idle.append(lane)
        self._send()

    def gone(self, lane: Lane, busy: bool) -> None:
        """Remove a closed connection. The request on it has no response."""
        self._lanes.discard(lane)
        self._broken += busy
        if lane in self._idle:
            self._idle.remove(lane)

    def _send(self) -> None:
        while self._waiting and self._idle:
            self._idle.popleft().ask(self._waiting.popleft())

    async def _connect(self) -> None:
        try:
            _, lane = await self._loop.create_connection(lambda: Lane(self), "127.0.0.1", self._port)
        finally:
            self._connecting -= 1
        self._lanes.add(lane)
        self.free(lane)
