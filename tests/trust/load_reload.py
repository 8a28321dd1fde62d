"""The cost of reloads under load for the clients: no failed request, and almost no time (R07).

The server section does not change, because a reload never applies it.
"""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tests.support.gateway import SERVER, RunningGateway, running_gateway
from tests.support.vendor import FakeVendor
from tests.trust.figure_types import Result
from tests.trust.load_client import Ended, ask, asking, failures, paced, quantile
from tests.trust.load_rig import apart, many, port_of, quick, table

APPLIED_WITHIN = 0.25
"""Seconds from a signal until the new configuration is current, or refused."""

SLOWER_BY = 0.02
"""Seconds by which the slowest hundredth of the requests may be slower while config files are loaded."""

ASKED = SERVER + "  watch: false\n"
"""The file watcher is off, and every reload is requested by a signal: the watcher would sometimes be earlier."""

RELOADS = re.compile(r"dragoman_config_reloads_total\{.*result=\"(\w+)\"")


@dataclass(frozen=True, slots=True)
class Reloads:
    """Requests before and during the reloads, the seconds of each reload, and how many were accepted and refused."""

    before: list[Ended]
    during: list[Ended]
    applied: list[float]
    taken: int
    refused: int


async def _counted(gateway: RunningGateway) -> dict[str, float]:
    series = await gateway.metrics()
    return {found[1]: value for name, value in series.items() if (found := RELOADS.match(name))}


async def reload_under_load(folder: Path, requests: int, rate: float, reloads: int) -> Reloads:
    """Send requests at this rate, a tenth of them before the first reload. Every second config file is bad."""
    loop = asyncio.get_running_loop()
    async with FakeVendor(quick) as vendor:
        models = many("fake", 200)
        texts = [
            table({"fake": vendor.base_url}, [*(f"{model}: {{}}" for model in models), *more], ASKED)
            for more in ([], ["fake/another: {}"], ["fake/m0: {weight: none}"], ["nobody/m: {}"])
        ]
        tables = [texts[(0, 2, 1, 3)[number % 4]] for number in range(reloads)]
        async with running_gateway(texts[0], folder) as gateway:
            port = port_of(gateway)
            with apart(gateway.process.pid):

                async def one(number: int) -> Ended:
                    model = models[number % len(models)]
                    return await ask(port, asking(model, stream=number % 2 == 0), 30.0)

                before = await paced(rate, requests // 10, one)
                during = asyncio.ensure_future(paced(rate, requests, one))
                applied, start = [], loop.time()
                for number, text in enumerate(tables):
                    await asyncio.sleep(max(0.0, start + number * requests / rate / reloads - loop.time()))
                    signalled = loop.time()
                    await gateway.reload(text)
                    applied.append(loop.time() - signalled)
                ends = await during
                counted = await _counted(gateway)
                failed = int(counted.get("failure", 0))
                return Reloads(before, ends, applied, int(sum(counted.values())) - failed, failed)


def reloading(folder: Path, requests: int, rate: float, reloads: int) -> Result:
    """Return the figure for this number of requests and reloads."""
    found = uvloop.run(reload_under_load(folder, requests, rate, reloads))
    calm, busy = (quantile([ended.seconds for ended in ends], 0.99) for ends in (found.before, found.during))
    slowest = max(found.applied)
    value = (
        f"{failures(found.during)} failed of {len(found.during)} requests at {rate:g} a second, over {found.taken} "
        f"tables taken and {found.refused} refused, each within {slowest * 1000:.0f} ms; p99 {busy * 1000:.1f} ms, "
        f"before {calm * 1000:.1f} ms"
    )
    good = (
        all(ended.well for ended in found.during)
        and (found.taken, found.refused) == (reloads - reloads // 2, reloads // 2)
        and slowest <= APPLIED_WITHIN
        and busy - calm <= SLOWER_BY
    )
    return Result(value, good)


def r07(folder: Path) -> Result:
    """Return the figure for ten thousand requests and a hundred reloads."""
    return reloading(folder, 10_000, 200.0, 100)
