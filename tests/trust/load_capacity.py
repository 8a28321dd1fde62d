"""The gateway at half of its capacity, and at three times it (R21, R33).

A lag is the gateway's own as far as nothing else explains it. Half of the capacity is a rate, and requests that come at
once are worked through at once: a load that stood still for 100 ms brings 50 ms of work in one piece. So does a machine
on which the gateway waited for its core.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import orjson
import uvloop
from typing_extensions import override

from tests.bench.cpu import PROC, cpu_seconds
from tests.bench.load import LENGTH, Load, WholeCaller, run_load
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import head
from tests.support.openai_wire import completion
from tests.support.vendor import FakeVendor
from tests.trust.figure_types import Result
from tests.trust.load_client import ask, asking, quantile
from tests.trust.load_open import OpenLoad, Tally
from tests.trust.load_rig import apart, many, port_of, quick, table

LAG = re.compile(r"dragoman_event_loop_lag_seconds(\{|$)")
BODY = orjson.dumps(completion("y" * 1000))
ANSWER = head(200, [("content-type", "application/json"), ("content-length", str(len(BODY)))]) + BODY
DEPLOYMENTS = 32
"""Places enough for what three times the capacity of one process has under way."""

HALF_LIMIT = 0.02
"""Seconds that the loop may be late at half of the capacity. On a machine that hides more than that in most looks,
nothing can be said."""

SHOWN_FOR = 1.0
"""Seconds for which the gateway shows a lag, and longer by as much as its ticks were late."""

CONNECTIONS = 5000
"""The most that a load opens."""

LARGE = 32 * 2**20 - 1024
"""Bytes of a prompt that makes the largest body that is taken."""


def queued(pid: int) -> float:
    """Seconds that a process's main thread has waited for a core that another process had (proc(5), `schedstat`)."""
    return int((PROC / str(pid) / "task" / str(pid) / "schedstat").read_text(encoding="utf-8").split()[1]) / 1e9


@dataclass(slots=True)
class Lags:
    """The worst lag of each second in seconds, and how long the gateway waited for a core in it or its load stood
    still."""

    seen: list[tuple[float, float]] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max((lag for lag, _ in self.seen), default=0.0)

    @property
    def own(self) -> float:
        """The worst of what nothing else explains."""
        return max((max(0.0, lag - elsewhere) for lag, elsewhere in self.seen), default=0.0)

    def clear(self, limit: float) -> float:
        """The share of the looks at which nothing else could have hidden a lag of that many seconds."""
        return sum(elsewhere <= limit for _, elsewhere in self.seen) / len(self.seen) if self.seen else 0.0

    @property
    def text(self) -> str:
        """In words, continuing that the loop was late by."""
        return f"{self.worst * 1000:.0f} ms at most ({self.own * 1000:.0f} ms that nothing else explains)"


def before(marks: Sequence[tuple[float, float]], when: float) -> float:
    """The value of the last mark that is not later than that, or of the first."""
    return next((value for at, value in reversed(marks) if at <= when), marks[0][1])


@asynccontextmanager
async def watched(
    gateway: RunningGateway, stalled: Callable[[], float] = lambda: 0.0, every: float = 0.5
) -> AsyncIterator[Lags]:
    """Watch the gateway's own measure of its lag, the worst of a second, for as long as the block; `stalled` returns
    for how many seconds its load has stood still until now."""
    lags, pid = Lags(), gateway.process.pid

    def elsewhere() -> float:
        return queued(pid) + stalled()

    async def watch() -> None:
        marks = [(time.monotonic(), elsewhere())]
        while True:
            await asyncio.sleep(every)
            worst = max(value for name, value in (await gateway.metrics()).items() if LAG.match(name))
            # Asked after the lag: what had it wait before it told belongs to it.
            now, total = time.monotonic(), elsewhere()
            lags.seen.append((worst, total - before(marks, now - SHOWN_FOR - 2 * worst)))
            marks.append((now, total))

    watching = asyncio.ensure_future(watch())
    try:
        yield lags
        await asyncio.sleep(2 * every)
        if watching.done():
            await watching  # it ended by a fault of its own
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def capacity(port: int, data: bytes, count: int) -> float:
    """Requests a second that are answered when as many wait as the gateway can work on."""
    await run_load(port, Load(data, count // 4, 32), WholeCaller)
    return count / await run_load(port, Load(data, count, 32), WholeCaller)


RISING = (0.5, 0.6, 0.7, 0.8)
"""Shares of what a vendor that answers at once would allow. With one that does not, over a thousand requests are under
way, each with two connections, timers and objects that no cache holds: it takes half as much again to serve one."""


async def knee(port: int, data: bytes, rates: Iterable[float], seconds: float, patience: float) -> float:
    """The most good answers a second that came at these rates, of each without its first fifth, in which connections
    are opened, and without what came after its end."""
    best, begin = 0.0, seconds / 5
    for rate in rates:
        tally = await OpenLoad(port, data, rate, seconds, CONNECTIONS).run(patience)
        ends = [answer.due + answer.seconds for answer in tally.answers if answer.status == 200]
        good = sum(begin <= end < seconds for end in ends)
        best = max(best, good / (seconds - begin))
    return best


class Slow(asyncio.Protocol):
    """One connection of a vendor that answers after a while, and costs next to nothing."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._data = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without inheriting from it

    @override
    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        length = LENGTH.search(self._data, 0, end) if end >= 0 else None
        if length is not None and len(self._data) >= end + 4 + int(length[1]):
            self._data = b""
            asyncio.get_running_loop().call_later(self._wait, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(ANSWER)


@asynccontextmanager
async def slow_vendor(wait: float) -> AsyncIterator[str]:
    """A vendor that takes so many seconds for each answer; its base URL without a path."""
    server = await asyncio.get_running_loop().create_server(lambda: Slow(wait), "127.0.0.1", 0, backlog=1024)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@dataclass(frozen=True, slots=True)
class Overload:
    """The peak in good answers a second; a load well below it; one at three times that, and the shares of their cores
    that the gateway and the load itself used meanwhile."""

    peak: float
    calm: Tally
    crowd: Tally
    busy: float
    driven: float


async def overload(folder: Path, seconds: float, wait: float, probe: int) -> Overload:
    """A vendor that answers after `wait` seconds, and clients that do not slow down when they are refused."""
    async with AsyncExitStack() as stack:
        slow, fast = [await stack.enter_async_context(slow_vendor(each)) for each in (wait, 0.0)]
        rows = ", ".join(f"d{number}: {{}}" for number in range(DEPLOYMENTS))
        models = ["fast/m: {}", f"slow/m: {{policy: round_robin, deployments: {{{rows}}}}}"]
        gateway = await stack.enter_async_context(running_gateway(table({"slow": slow, "fast": fast}, models), folder))
        stack.enter_context(apart(gateway.process.pid))
        port, pid = port_of(gateway), gateway.process.pid
        quick = await capacity(port, asking("fast/m"), probe)
        peak = await knee(port, asking("slow/m"), [quick * share for share in RISING], seconds / 6, wait + 5)
        calm = await OpenLoad(port, asking("slow/m"), peak / 10, seconds / 3, CONNECTIONS).run(wait + 5)
        began, gateways, ours = time.perf_counter(), cpu_seconds(pid), time.process_time()
        crowd = await OpenLoad(port, asking("slow/m"), 3 * peak, seconds, CONNECTIONS).run(wait + 5)
        took = time.perf_counter() - began
        return Overload(peak, calm, crowd, (cpu_seconds(pid) - gateways) / took, (time.process_time() - ours) / took)


def overloaded(folder: Path, seconds: float, wait: float, probe: int) -> Result:
    """The figure for a vendor that takes so long, and for so long."""
    seen = uvloop.run(overload(folder, seconds, wait, probe))
    admitted, refused, unloaded = seen.crowd.times(200), seen.crowd.times(503), seen.calm.times(200)
    slow, turned, calm = (quantile(times, 0.99) if times else 0.0 for times in (admitted, refused, unloaded))
    others = len(seen.crowd.answers) - len(admitted) - len(refused)
    value = (
        f"{seen.crowd.goodput:.0f} good answers a second at {3 * seen.peak:.0f} asked for, "
        f"{seen.crowd.goodput / seen.peak:.0%} of the peak; p99 refused {turned * 1000:.0f} ms, admitted "
        f"{slow * 1000:.0f} ms, unloaded {calm * 1000:.0f} ms; {seen.crowd.lost} lost, {others} answered otherwise; "
        f"the gateway used {seen.busy:.0%} of its core, the load {seen.driven:.0%} of its own"
    )
    good = seen.crowd.goodput >= 0.9 * seen.peak and turned <= 0.05 and slow <= 2 * calm
    return Result(value, good and seen.crowd.lost == others == 0)


@dataclass(frozen=True, slots=True)
class Lagged:
    """Lags under half of the load that is possible, and during what takes long at once."""

    rate: float
    half: Lags
    heavy: Lags


async def lagged(folder: Path, seconds: float, probe: int, body: int) -> Lagged:
    """Half of the capacity for so long, then bodies of that many bytes, scrapes and reloads."""
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(FakeVendor(quick))
        models = [f"{model}: {{}}" for model in many("fake", 600)]
        text = table({"fake": vendor.base_url}, models)
        gateway = await stack.enter_async_context(running_gateway(text, folder))
        stack.enter_context(apart(gateway.process.pid))
        port, data = port_of(gateway), asking("fake/m0")
        rate = await capacity(port, data, probe) / 2
        load = OpenLoad(port, data, rate, seconds, CONNECTIONS)
        async with watched(gateway, lambda: load.stalled) as half:
            await load.run(5.0)
        large = asking("fake/m0", user="u", suffix="x" * body)
        async with watched(gateway) as heavy:
            for number in range(3):
                ended = await ask(port, large)
                assert ended.status in (200, 400), f"a large body ended with {ended.status}"
                await gateway.reload(text + f"# {number}\n")
                for _ in range(5):
                    await gateway.metrics()
        vendor.requests.clear()
        return Lagged(rate, half, heavy)


def lagging(folder: Path, seconds: float, probe: int) -> Result:
    """The figure for so long a load."""
    seen = uvloop.run(lagged(folder, seconds, probe, LARGE))
    clear = seen.half.clear(HALF_LIMIT)
    value = (
        f"{seen.half.text} at {seen.rate:.0f} requests a second, half of the capacity, seen clearly in {clear:.0%} of "
        f"the looks; {seen.heavy.text} during bodies of 32 MiB, scrapes and reloads"
    )
    return Result(value, seen.half.own <= HALF_LIMIT and clear >= 0.5 and seen.heavy.worst <= 0.15)


def r21(folder: Path) -> Result:
    """Half a minute at three times the capacity, before a vendor that takes half a second."""
    return overloaded(folder, 30.0, 0.5, 6000)


def r33(folder: Path) -> Result:
    """A minute at half of the capacity."""
    return lagging(folder, 60.0, 6000)
