"""Mixed traffic for a long time, to see whether the gateway grows: `python -m tests.trust.soak --minutes N`.

The system reports the memory and the descriptors of the process. Six of ten requests are streams, one of ten meets a
fault of its vendor, one of twenty is abandoned by its client.
"""

import argparse
import asyncio
import signal
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import uvloop

from tests.bench.cpu import PROC, resident_bytes
from tests.bench.programs.gateway import gateway_table
from tests.bench.traffic import Ask, chat_request
from tests.bench.upstream import running_upstream
from tests.proxy.kit.raw_client import connected
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import cut, json_answer, sse_unterminated
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Fin, Received, Rst, Script, Send
from tests.trust.figure_types import Result
from tests.trust.load_client import End, Ended, ask, asking, paced
from tests.trust.load_dead import group_table
from tests.trust.load_open import OpenLoad
from tests.trust.load_rig import DEAD, UNAVAILABLE, WHOLE, apart, port_of, slow_stream, streams

STREAM = slow_stream(0.2, 8)
FAULTS: tuple[Script, ...] = (
    DEAD,
    UNAVAILABLE,
    (Rst(),),
    (Fin(),),
    cut(json_answer(200, completion("hello")), 150),
    sse_unterminated(completion_frames(["hello"])[:1], Rst()),
    (Send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3\r\n\r\n{]}"),),
    (Send(b"SSH-2.0-x\r\n"), Fin()),
)
"""No 429: one in a hundred requests would be enough to cool both deployments down all the time."""

CROWD = 128
"""The most connections of a cycle: as many concurrent requests as one deployment accepts or queues at its start."""

CROWDS = 3
"""How many times in a cycle a crowd sends its requests in one moment.

The memory that the allocator took for the largest crowd stays with the process. It was 2 to 8 MB if a machine that
stopped for a moment made a crowd of 200, in a cycle that otherwise needed 5 to 15 connections (measured). Since every
cycle has the largest possible crowd, accidents add nothing to one of them."""

STANDSTILL = 0.2
"""Seconds for which the gateway is stopped while a crowd gathers."""

BROKEN = frozenset({End.CUT, End.UNANSWERED, End.HUNG})
"""Ends that no fault of a vendor excuses."""


@dataclass(frozen=True, slots=True)
class Course:
    """Seconds in total and of the warm-up, which does not count, requests a second, and seconds between two samples."""

    seconds: float
    warm_up: float
    rate: float = 150.0
    every: float = 5.0


@dataclass(frozen=True, slots=True)
class Look:
    """A sample of the gateway at a second of the course: bytes of memory, and open descriptors."""

    second: float
    memory: int
    descriptors: int


@dataclass(slots=True)
class Soaked:
    """The ends of the requests, and the samples after the warm-up."""

    ends: Counter[End] = field(default_factory=Counter)
    looks: list[Look] = field(default_factory=list)
    left: int = 0
    late: float = 0.0

    def note(self, ended: Ended) -> None:
        """Record the end of one request."""
        self.ends[ended.end] += 1


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes of all pairs (Theil and Sen's estimate). A few outliers do not change it."""
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(points)
        for later in points[number + 1 :]
    ]
    return statistics.median(slopes) if slopes else 0.0


def look(gateway: RunningGateway, second: float) -> Look:
    """Return a sample of the gateway."""
    pid = gateway.process.pid
    return Look(second, resident_bytes(pid), len(list((PROC / str(pid) / "fd").iterdir())))


async def leave(port: int, data: bytes, after: float) -> None:
    """Send a request and leave after `after` seconds. A failure before that is ignored: other clients meet the same
    failure and are counted."""
    with suppress(OSError):
        async with connected(port) as client:
            await client.send(data)
            await asyncio.sleep(after)


async def soak(folder: Path, course: Course) -> Soaked:
    """Run two deployments under mixed traffic, with requests begun at a constant rate."""
    draw, soaked, loop = Random(0), Soaked(), asyncio.get_running_loop()

    def serve(received: Received) -> Script:
        if draw.random() < 0.1:
            return draw.choice(FAULTS)
        return STREAM if streams(received) else (Delay(0.05), *WHOLE)

    async with AsyncExitStack() as stack:
        vendors = [await stack.enter_async_context(FakeVendor(serve)) for _ in range(2)]
        gateway = await stack.enter_async_context(running_gateway(group_table(vendors, "round_robin"), folder))
        stack.enter_context(apart(gateway.process.pid))
        port, start = port_of(gateway), loop.time()
        requests = {stream: asking("fake/m", stream=stream) for stream in (True, False)}

        async def one() -> None:
            data = requests[draw.random() < 0.6]
            if draw.random() < 0.05:
                soaked.left += 1
                await leave(port, data, draw.random() * 0.2)
            else:
                soaked.note(await ask(port, data))

        async with asyncio.TaskGroup() as group:
            looked = start
            for number in range(int(course.seconds * course.rate)):
                early = start + number / course.rate - loop.time()
                soaked.late = max(soaked.late, -early)
                if early > 0:
                    await asyncio.sleep(early)
                group.create_task(one())
                if loop.time() >= looked + course.every:
                    looked = loop.time()
                    if looked - start >= course.warm_up:
                        soaked.looks.append(look(gateway, looked - start))
                    for vendor in vendors:
                        vendor.requests.clear()
    return soaked


def soaking(folder: Path, course: Course, most: float) -> Result:
    """Return the figure: memory must not grow by more than `most` bytes an hour, descriptors not at all."""
    soaked = uvloop.run(soak(folder, course))
    memory = slope([(each.second, float(each.memory)) for each in soaked.looks]) * 3600
    open_files = slope([(each.second, float(each.descriptors)) for each in soaked.looks]) * 3600
    quarter = max(1, len(soaked.looks) // 4)
    first, last = (max(each.descriptors for each in part) for part in (soaked.looks[:quarter], soaked.looks[-quarter:]))
    broken = sum(soaked.ends[end] for end in BROKEN)
    ends = ", ".join(f"{count} {end}" for end, count in soaked.ends.most_common())
    value = (
        f"{memory / 2**20:+.2f} MB an hour over {course.seconds - course.warm_up:.0f} s after {course.warm_up:.0f} s, "
        f"{soaked.looks[0].memory / 2**20:.1f} MB to {soaked.looks[-1].memory / 2**20:.1f} MB; descriptors at most "
        f"{first} at first, {last} at last ({open_files:+.1f} an hour); {ends}, {soaked.left} left, at {course.rate:g} "
        f"a second, the load {soaked.late:.1f} s late at most"
    )
    return Result(value, memory <= most and last <= first * 1.2 + 10 and broken == 0)


async def crowd(gateway: RunningGateway, data: bytes) -> None:
    """Send requests on as many connections as are allowed. The gateway receives all of them in one moment."""
    gateway.process.send_signal(signal.SIGSTOP)
    answers = asyncio.gather(*(ask(port_of(gateway), data) for _ in range(CROWD)))
    await asyncio.sleep(STANDSTILL)
    gateway.process.send_signal(signal.SIGCONT)
    await answers


async def cycles(folder: Path, times: int, requests: int, rate: float) -> tuple[list[int], int]:
    """Return the bytes of the gateway after each of several equal loads, a tenth of them streams, and the number of
    requests that a late event loop refused or that had no response. Each load begins with crowds, whose responses are
    not counted."""
    held, missed, streams_each = [], 0, requests // 10
    with running_upstream(folder) as upstream:
        async with running_gateway(gateway_table(upstream), folder) as gateway:
            port = port_of(gateway)
            whole, streamed = (chat_request(Ask(chunks=chunks, pace=5)) for chunks in (0, 10))
            with apart(gateway.process.pid):
                for _ in range(times):
                    for _ in range(CROWDS):
                        await crowd(gateway, whole)
                    seconds = (requests - streams_each) / rate
                    tally = await OpenLoad(port, whole, rate, seconds, CROWD).run(10.0)
                    ends = await paced(rate / 3, streams_each, lambda _: ask(port, streamed))
                    missed += requests - len(tally.times(200)) - sum(ended.well for ended in ends)
                    await asyncio.sleep(0.5)
                    held.append(resident_bytes(gateway.process.pid))
    return held, missed


def cycling(folder: Path, times: int, requests: int, rate: float) -> Result:
    """Return the figure: the last cycle compared with the second."""
    held, missed = uvloop.run(cycles(folder, times, requests, rate))
    growth = held[-1] / held[1] - 1
    value = (
        f"{growth:+.2%} from cycle 2 to cycle {times} of {requests} requests each "
        f"({', '.join(f'{each / 2**20:.1f}' for each in held)} MB), {missed} in all refused or not answered"
    )
    return Result(value, growth <= 0.01)


def r09_night(folder: Path) -> Result:
    """Return the figure for ten minutes, of which three warm up."""
    return soaking(folder, Course(600.0, 180.0), 3 * 2**20)


def r09_release(folder: Path) -> Result:
    """Return the figure for an hour, of which ten minutes warm up."""
    return soaking(folder, Course(3600.0, 600.0), 2**20)


def r10(folder: Path) -> Result:
    """Return the figure for five cycles of twenty thousand requests."""
    return cycling(folder, 5, 20_000, 500.0)


def main(arguments: Sequence[str]) -> int:
    """Soak as the command line orders. Return 1 if the gateway grew or a request failed without a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.trust.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="in all; a sixth warms up (%(default)s)")
    parser.add_argument("--rate", type=float, default=150.0, help="requests a second (%(default)s)")
    parser.add_argument("--most", type=float, default=1.0, help="MB an hour that memory may grow (%(default)s)")
    given = parser.parse_args(arguments)
    course = Course(given.minutes * 60, given.minutes * 10, given.rate, min(5.0, given.minutes * 2))
    with tempfile.TemporaryDirectory() as folder:
        result = soaking(Path(folder), course, given.most * 2**20)
    print(f"stopped after {given.minutes:g} min: {result.value}")
    return 0 if result.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
