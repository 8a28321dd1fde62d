"""The gateway at half of its capacity, and at three times it (R21, R33).

A lag counts as the gateway's own only if nothing else explains it. Half of the capacity is a rate, but requests that
arrive together are processed together: a load that was suspended for 100 ms brings 50 ms of work at once. The same
happens if the gateway had to wait for its core.
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
"""Enough slots for the requests that are in flight at three times the capacity of one process."""

HALF_LIMIT = 0.02
"""Seconds by which the event loop may be late at half of the capacity. If the machine hides more than that in most
samples, there is no result."""

SHOWN_FOR = 1.0
"""Seconds for which the gateway reports a lag. It reports longer if its ticks were late."""

CONNECTIONS = 5000
"""The most connections that a load opens."""

LARGE = 32 * 2**20 - 1024
"""Bytes of a prompt that makes the largest accepted body."""


def queued(pid: int) -> float:
    """Return the seconds for which a process's main thread has waited for a core (proc(5), `schedstat`)."""
    return int((PROC / str(pid) / "task" / str(pid) / "schedstat").read_text(encoding="utf-8").split()[1]) / 1e9


@dataclass(slots=True)
class Lags:
    """The worst lag of each second in seconds, and for how long in it the gateway waited for a core or its load was
    suspended."""

    seen: list[tuple[float, float]] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max((lag for lag, _ in self.seen), default=0.0)

    @property
    def own(self) -> float:
        """Return the largest lag that nothing else explains."""
        return max((max(0.0, lag - elsewhere) for lag, elsewhere in self.seen), default=0.0)

    def clear(self, limit: float) -> float:
        """Return the share of the samples at which nothing else could have hidden a lag of `limit` seconds."""
        return sum(elsewhere <= limit for _, elsewhere in self.seen) / len(self.seen) if self.seen else 0.0

    @property
    def text(self) -> str:
        """Return the lags as text that continues "the loop was late by"."""
        return f"{self.worst * 1000:.0f} ms at most ({self.own * 1000:.0f} ms that nothing else explains)"


def before(marks: Sequence[tuple[float, float]], when: float) -> float:
    """Return the value of the last mark that is not later than `when`, or of the first mark."""
    return next((value for at, value in reversed(marks) if at <= when), marks[0][1])


@asynccontextmanager
async def watched(
    gateway: RunningGateway, stalled: Callable[[], float] = lambda: 0.0, every: float = 0.5
) -> AsyncIterator[Lags]:
    """Sample the gateway's own measure of its lag, the worst of a second, for the duration of the block. `stalled`
    returns the seconds for which its load has been suspended so far."""
    lags, pid = Lags(), gateway.process.pid

    def elsewhere() -> float:
        return queued(pid) + stalled()

    async def watch() -> None:
        marks = [(time.monotonic(), elsewhere())]
        while True:
            await asyncio.sleep(every)
            worst = max(value for name, value in (await gateway.metrics()).items() if LAG.match(name))
            # Read after the lag: a wait that delayed the gateway's response belongs to this sample.
            now, total = time.monotonic(), elsewhere()
            lags.seen.append((worst, total - before(marks, now - SHOWN_FOR - 2 * worst)))
            marks.append((now, total))

    watching = asyncio.ensure_future(watch())
    try:
        yield lags
        await asyncio.sleep(2 * every)
        if watching.done():
            await watching  # the sampling failed
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def capacity(port: int, data: bytes, count: int) -> float:
    """Return the responses per second if as many requests wait as the gateway can work on."""
    await run_load(port, Load(data, count // 4, 32), WholeCaller)
    return count / await run_load(port, Load(data, count, 32), WholeCaller)


RISING = (0.5, 0.6, 0.7, 0.8)
"""Shares of the rate that an immediate vendor would allow. With a slower vendor, over a thousand requests are in
flight, each with two connections, timers and objects that no CPU cache holds, and a request costs half as much
again."""


async def knee(port: int, data: bytes, rates: Iterable[float], seconds: float, patience: float) -> float:
    """Return the largest number of good responses per second at these rates. Do not count the first fifth of each, in
    which connections are opened, or the responses after its end."""
    best, begin = 0.0, seconds / 5
    for rate in rates:
        tally = await OpenLoad(port, data, rate, seconds, CONNECTIONS).run(patience)
        ends = [answer.due + answer.seconds for answer in tally.answers if answer.status == 200]
        good = sum(begin <= end < seconds for end in ends)
        best = max(best, good / (seconds - begin))
    return best


class Slow(asyncio.Protocol):
    """One connection of a vendor that responds after a while, at almost no cost."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._data = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is one without inheriting from it

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
    """Run a vendor that takes `wait` seconds for each response. Yield its base URL without a path."""
    server = await asyncio.get_running_loop().create_server(lambda: Slow(wait), "127.0.0.1", 0, backlog=1024)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@dataclass(frozen=True, slots=True)
class Overload:
    """The peak in good responses per second, a load well below it, and a load at three times the peak, with the shares
    of their cores that the gateway and the load itself used meanwhile."""

    peak: float
    calm: Tally
    crowd: Tally
    busy: float
    driven: float


async def overload(folder: Path, seconds: float, wait: float, probe: int) -> Overload:
    """Measure with a vendor that responds after `wait` seconds, and clients that do not slow down when they are
    refused."""
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
    """Return the figure for this vendor and this duration."""
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
    """Lags under half of the possible load, and during long tasks."""

    rate: float
    half: Lags
    heavy: Lags


async def lagged(folder: Path, seconds: float, probe: int, body: int) -> Lagged:
    """Run half of the capacity for `seconds` seconds, then bodies of `body` bytes, scrapes and reloads."""
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
    """Return the figure for this duration of the load."""
    seen = uvloop.run(lagged(folder, seconds, probe, LARGE))
    clear = seen.half.clear(HALF_LIMIT)
    value = (
        f"{seen.half.text} at {seen.rate:.0f} requests a second, half of the capacity, seen clearly in {clear:.0%} of "
        f"the looks; {seen.heavy.text} during bodies of 32 MiB, scrapes and reloads"
    )
    return Result(value, seen.half.own <= HALF_LIMIT and clear >= 0.5 and seen.heavy.worst <= 0.15)


def r21(folder: Path) -> Result:
    """Return the figure: half a minute at three times the capacity, with a vendor that takes half a second."""
    return overloaded(folder, 30.0, 0.5, 6000)


def r33(folder: Path) -> Result:
    """Return the figure: a minute at half of the capacity."""
    return lagging(folder, 60.0, 6000)
