"""The latency that a program adds to the direct path, at the same rate: requests are due at times of a clock.

The load is an open loop: requests are due at random times (exponential gaps, the same for all), whether or not the
earlier requests have responses. The time of a request runs from the moment at which it was due. So a load that is late,
or finds all connections occupied, makes times longer, never shorter. The load's own delay is the same on the direct
path.
"""

import asyncio
import ctypes
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import cast

from typing_extensions import override

from tests.bench.cpu import queued, usage
from tests.bench.load import LENGTH, OK, WrongAnswer, shown
from tests.bench.steady import Expected

_LIBC = ctypes.CDLL(None, use_errno=True)
_MONOTONIC, _NONBLOCK, _ABSOLUTE = 1, os.O_NONBLOCK, 1
CONNECTIONS = 64
LEAD = 0.05
"""Seconds between the last connection and the first request."""

UNDISTURBED = 0.02
"""The share of a run for which a program may wait for its core. It is twice the share of responses beyond its 99th
percentile."""

PATIENCE = 10.0
"""Seconds after the last request within which all responses must arrive."""


@contextmanager
def alarm() -> Iterator[int]:
    """Yield a descriptor that becomes readable at its time (timerfd_create(2)): the loop's own timers have a resolution
    of a millisecond."""
    descriptor = _LIBC.timerfd_create(_MONOTONIC, _NONBLOCK)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def set_alarm(descriptor: int, when: float) -> None:
    """Set the alarm to a time of `time.monotonic`."""
    whole = int(when)
    value = struct.pack("qqqq", 0, 0, whole, max(1, int((when - whole) * 1e9)))
    if _LIBC.timerfd_settime(descriptor, _ABSOLUTE, value, None):
        raise OSError(ctypes.get_errno(), "timerfd_settime")


def due_times(rate: float, seconds: float, seed: int = 16) -> list[float]:
    """Return the times at which requests are due, from 0 on."""
    draw, when, times = Random(seed), 0.0, []
    while (when := when + draw.expovariate(rate)) < seconds:
        times.append(when)
    return times


def quantile(times: Sequence[float], share: float) -> float:
    """Return the time within which that share of the responses came."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class OpenRun:
    """One current run: the idle connections, and the times so far."""

    expected: Expected
    request: bytes
    waiting: list["TimedCaller"] = field(default_factory=list)
    queue: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    sent: int = 0
    failure: Exception | None = None

    def send(self, due: float) -> None:
        """Send a request that is due, now or as soon as a connection is idle."""
        self.sent += 1
        if self.waiting:
            self.waiting.pop().ask(due)
        else:
            self.queue.append(due)

    def fail(self, error: Exception) -> None:
        self.failure = self.failure or error


class TimedCaller(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self, run: OpenRun) -> None:
        self._run = run
        self._data = b""
        self._stopped = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._run.waiting.append(self)

    def ask(self, due: float) -> None:
        self._due = due
        self._transport.write(self._run.request)

    @override
    def data_received(self, data: bytes) -> None:
        self._data = self._data + data if self._data else data
        end = self._data.find(b"\r\n\r\n") + 4
        length = LENGTH.search(self._data, 0, end)
        if end < 4:
            return
        size = int(length[1]) if length else -1
        if not self._data.startswith(OK) or abs(size - self._run.expected.length) > self._run.expected.slack:
            self._run.fail(WrongAnswer(shown(self._data)))
            return
        if len(self._data) < end + size:
            return
        self._data = b""
        self._run.times.append(time.monotonic() - self._due)
        if self._run.queue:
            self.ask(self._run.queue.pop(0))
        else:
            self._run.waiting.append(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stopped:
            self._run.fail(exc or WrongAnswer("the connection was closed"))

    def stop(self) -> None:
        self._stopped = True
        self._transport.abort()


@dataclass(frozen=True, slots=True)
class Spent:
    """Times of responses in seconds; the share of a core that load and upstream used meanwhile; and of the program's
    core, the share that it used, and for how long it waited because another process had the core."""

    times: Sequence[float]
    load_busy: float
    busy: float = 0.0
    queued: float = 0.0

    @property
    def median(self) -> float:
        return quantile(self.times, 0.5)

    @property
    def slow(self) -> float:
        """Return the time within which 99 of 100 responses came."""
        return quantile(self.times, 0.99)


@dataclass(frozen=True, slots=True)
class Way:
    """One path to the upstream: the port for the requests, and the processes of the program on it. The direct path has
    no processes."""

    port: int
    pids: Sequence[int]
    load_pids: Sequence[int]


async def timed_run(way: Way, request: bytes, expected: Expected, due: Sequence[float]) -> Spent:
    """Send a request at each of these times, in seconds from now, and wait for all responses.

    Raise WrongAnswer, or TimeoutError if responses are missing a while after the last request.
    """
    loop, run = asyncio.get_running_loop(), OpenRun(expected, request)
    callers = [
        (await loop.create_connection(lambda: TimedCaller(run), "127.0.0.1", way.port))[1] for _ in range(CONNECTIONS)
    ]
    try:
        started = time.monotonic() + LEAD
        load, own, waited = usage(way.load_pids), usage(way.pids), queued(way.pids)
        with alarm() as descriptor:
            await _sent_in_time(run, [started + each for each in due], descriptor)
        async with asyncio.timeout(PATIENCE):
            while len(run.times) < run.sent and run.failure is None:  # noqa: ASYNC110 - no event a request
                await asyncio.sleep(0.01)
        wall, load_used = time.monotonic() - started, usage(way.load_pids) - load
        used, waited = usage(way.pids) - own, queued(way.pids) - waited
    finally:
        for caller in callers:
            caller.stop()
    if run.failure is not None:
        raise run.failure
    return Spent(run.times, load_used.total / wall, used.total / wall, waited / wall)


async def _sent_in_time(run: OpenRun, due: Sequence[float], descriptor: int) -> None:
    """Send each request when it is due."""
    loop = asyncio.get_running_loop()
    left, done = list(reversed(due)), loop.create_future()

    def ring() -> None:
        with suppress(BlockingIOError):  # the alarm was set again meanwhile
            os.read(descriptor, 8)
        now = time.monotonic()
        while left and left[-1] <= now and run.failure is None:
            run.send(left.pop())
        if left and run.failure is None:
            set_alarm(descriptor, left[-1])
        elif not done.done():
            done.set_result(None)

    loop.add_reader(descriptor, ring)
    set_alarm(descriptor, due[0])
    try:
        await done
    finally:
        loop.remove_reader(descriptor)


@dataclass(frozen=True, slots=True)
class Added:
    """The latency that a program adds to the direct path at one rate, in milliseconds, from the least disturbed of
    several runs of each."""

    rate: float
    direct: Sequence[Spent]
    through: Sequence[Spent]

    @property
    def median(self) -> float:
        return (min(each.median for each in self.through) - min(each.median for each in self.direct)) * 1e3

    @property
    def slow(self) -> float:
        """Return the 99th percentile through the program minus the 99th percentile of the direct path."""
        return (min(each.slow for each in self.through) - min(each.slow for each in self.direct)) * 1e3

    @property
    def load_busy(self) -> float:
        return max(each.load_busy for each in (*self.direct, *self.through))

    @property
    def best(self) -> Spent:
        """Return the run with the lowest 99th percentile."""
        return min(self.through, key=lambda each: each.slow)

    @property
    def disturbed(self) -> bool:
        """Return whether other programs had the program's core for so long that its responses had to wait."""
        return self.best.queued > UNDISTURBED
