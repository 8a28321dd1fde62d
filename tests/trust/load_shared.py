"""The cost of a Redis that is refused, frozen, or comes and goes, for the requests of a gateway that shares state
through it (R31), measured by the requests and the log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tests.support.gateway import SERVER, free_ports, running_gateway
from tests.support.redis import NOTHING, answering, fake_redis, frozen
from tests.support.vendor import FakeVendor
from tests.trust.figure_types import Result
from tests.trust.load_client import Ended, ask, asking, failures, paced, quantile
from tests.trust.load_rig import apart, port_of, quick, table

LATER = 0.06
"""Seconds by which a few requests may be slower."""

FEW = 5
SLOWER_BY, SLOWER_TIMES = 0.01, 1.25
"""Seconds, and a factor, by which the slowest hundredth of all requests may be slower: the noise of the machine."""

MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class Seen:
    """How requests ended at a gateway that shares, and at a gateway that does not, which got requests at the same
    times; and the first one's log lines about sharing."""

    sharing: list[Ended]
    plain: list[Ended]
    lines: int

    @property
    def later(self) -> int:
        """Return the number of requests that were slower than their twin by more than `LATER`, minus the number of
        faster ones, which only the noise of the machine explains."""
        differences = [mine.seconds - twin.seconds for mine, twin in zip(self.sharing, self.plain, strict=True)]
        return max(0, sum(each > LATER for each in differences) - sum(each < -LATER for each in differences))

    @property
    def tails(self) -> tuple[float, float]:
        """Return the 99th percentiles of both in seconds."""
        sharing, plain = (quantile([ended.seconds for ended in ends], 0.99) for ends in (self.sharing, self.plain))
        return sharing, plain

    @property
    def good(self) -> bool:
        """Return whether no request waited for Redis, and the log reports it briefly."""
        sharing, plain = self.tails
        failed, without = (sum(not ended.well for ended in ends) for ends in (self.sharing, self.plain))
        told = 1 <= self.lines <= MOST_LINES
        slow = sharing > plain * SLOWER_TIMES + SLOWER_BY
        return failed <= without + FEW and self.later <= FEW and told and not slow

    def text(self) -> str:
        """Return the result as it is printed."""
        sharing, plain = self.tails
        return (
            f"{failures(self.sharing)} failed of {len(self.sharing)}, {self.later} over {LATER * 1000:.0f} ms later "
            f"than without, p99 {sharing * 1000:.1f} ms, without {plain * 1000:.1f} ms, {self.lines} lines"
        )


@asynccontextmanager
async def nobody() -> AsyncIterator[str]:
    (port,) = free_ports(1)
    yield f"redis://127.0.0.1:{port}"


@asynccontextmanager
async def silent() -> AsyncIterator[str]:
    """Run a Redis that accepts connections and never responds."""
    async with fake_redis(frozen) as fake:
        yield fake.url


@asynccontextmanager
async def flapping() -> AsyncIterator[str]:
    """Run a Redis that responds to every sixth command: it is lost, found at the next try, and lost again."""
    commands = 0

    def reply() -> bytes:
        nonlocal commands
        commands += 1
        return NOTHING if commands % 6 == 1 else b""

    async with fake_redis(answering(reply)) as fake:
        yield fake.url


WAYS = {"refused": nobody, "frozen": silent, "flapping": flapping}


async def beside(folder: Path, redis: str, rate: float, count: int) -> Seen:
    """Send requests at this rate to a gateway that shares through this Redis, and to one beside it that does not."""
    async with FakeVendor(quick) as vendor, AsyncExitStack() as stack:
        text = table({"fake": vendor.base_url}, ["fake/m: {}"]) + SERVER
        both = []
        for name, more in (("sharing", f'  shared: {{redis: "{redis}"}}\n'), ("plain", "")):
            gateway = await stack.enter_async_context(running_gateway(text + more, folder / name))
            stack.enter_context(apart(gateway.process.pid))
            both.append(gateway)
        twins: dict[int, Ended] = {}

        async def one(number: int) -> Ended:
            data = asking("fake/m", stream=number % 2 == 0)
            mine, twins[number] = await asyncio.gather(*(ask(port_of(gateway), data, 30.0) for gateway in both))
            return mine

        sharing = await paced(rate, count, one)
        plain = [twins[number] for number in range(count)]
        return Seen(sharing, plain, both[0].messages().count("Redis at"))


async def lost(folder: Path, rate: float, count: int, long: int) -> dict[str, Seen]:
    """Lose Redis in each way. `long` is the number of requests for the one that comes and goes."""
    seen = {}
    for name, way in WAYS.items():
        async with way() as redis:
            seen[name] = await beside(folder / name, redis, rate, long if way is flapping else count)
    return seen


def losing(folder: Path, rate: float, count: int, long: int) -> Result:
    """Return the figure for these numbers of requests."""
    for name in WAYS:
        (folder / name / "sharing").mkdir(parents=True)
        (folder / name / "plain").mkdir()
    seen = uvloop.run(lost(folder, rate, count, long))
    return Result(
        "; ".join(f"{name}: {each.text()}" for name, each in seen.items()), all(each.good for each in seen.values())
    )


def r31(folder: Path) -> Result:
    """Return the figure: twelve seconds of each, and the Redis that comes and goes for as long as it takes to lose it
    four times."""
    return losing(folder, 50.0, 600, 2250)
