"""The effect of vendors that are dead, die or hang on clients and on themselves (R15, R16, R17), seen from outside."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import uvloop

from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.retry_rules import DeploymentRules
from tests.faults.fault_rig import SCALED
from tests.support.gateway import running_gateway
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Behaviour, Delay, Hang, Received, Script
from tests.trust.figure_types import Result
from tests.trust.load_client import End, Ended, ask, asking, failures, paced, quantile
from tests.trust.load_rig import DEAD, UNAVAILABLE, apart, inside, port_of, quick, slow_stream, streams, table

NEVER_EJECTED = DeploymentRules(HealthRules(failures=10**9, window_least=10**9))
SCALE = 10
"""The factor by which time passes faster than in the field for the figure of the hanging deployment."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How requests ended, in the order in which they began at `start`, and the requests that each vendor got."""

    ends: list[Ended]
    start: float
    tries: list[int]

    def after(self, seconds: float) -> list[Ended]:
        """The requests that were begun later than so many seconds after the start."""
        return [ended for ended in self.ends if ended.began > self.start + seconds]


def group_table(vendors: Sequence[FakeVendor], policy: str, more: str = "") -> str:
    """One model with a deployment at each vendor."""
    rows = ", ".join(f'd{number}: {{base_url: "{vendor.base_url}/v1"}}' for number, vendor in enumerate(vendors))
    return table({"fake": vendors[0].base_url}, [f"fake/m: {{policy: {policy}, deployments: {{{rows}}}}}"], more)


async def load(port: int, vendors: Sequence[FakeVendor], rate: float, count: int) -> Seen:
    """Requests for the group at this rate, every other one a stream."""
    start = asyncio.get_running_loop().time()
    before = [len(vendor.requests) for vendor in vendors]

    async def one(number: int) -> Ended:
        return await ask(port, asking("fake/m", stream=number % 2 == 0))

    ends = await paced(rate, count, one)
    tries = [len(vendor.requests) - earlier for vendor, earlier in zip(vendors, before, strict=True)]
    return Seen(ends, start, tries)


async def _among(stack: AsyncExitStack, *behaviours: Behaviour) -> list[FakeVendor]:
    return [await stack.enter_async_context(FakeVendor(behaviour)) for behaviour in behaviours]


async def dead_inside(folder: Path, rate: float, count: int) -> Seen:
    """Three dead deployments under rules that never eject one."""
    async with AsyncExitStack() as stack:
        vendors = await _among(stack, DEAD, DEAD, DEAD)
        app = await stack.enter_async_context(inside(folder, group_table(vendors, "round_robin"), NEVER_EJECTED))
        return await load(port_of(app), vendors, rate, count)


async def beside(folder: Path, behaviours: Sequence[Behaviour], rate: float, count: int) -> Seen:
    """Deployments that behave so from the start, before a gateway as its operator runs it."""
    async with AsyncExitStack() as stack:
        vendors = await _among(stack, *behaviours)
        gateway = await stack.enter_async_context(running_gateway(group_table(vendors, "round_robin"), folder))
        stack.enter_context(apart(gateway.process.pid))
        return await load(port_of(gateway), vendors, rate, count)


def amplification(folder: Path, rate: float, count: int) -> Result:
    """Tries that reached a vendor for each request, with nothing but the budget to hold them, and with ejection too."""
    within, without = uvloop.run(beside(folder, [DEAD] * 3, rate, count)), uvloop.run(dead_inside(folder, rate, count))
    on, off = sum(within.tries) / count, sum(without.tries) / count
    odd = [ended for ended in (*within.ends, *without.ends) if ended.end is not End.REFUSED]
    value = (
        f"{off:.2f} tries a request with ejection off, {on:.3f} with it on, of {count} requests each at {rate:g} a "
        f"second; {len(odd)} ended in anything but an envelope"
    )
    return Result(value, off <= 1.3 and on <= 0.1 and not odd)


def one_of_three_dead(folder: Path, rate: float, count: int) -> Result:
    """One deployment answers 503 from the start."""
    seen = uvloop.run(beside(folder, [UNAVAILABLE, quick, quick], rate, count))
    late = seen.after(1.0)
    value = (
        f"{failures(late)} client errors of {len(late)} requests after the first second, {seen.tries[0]} tries on the "
        f"dead one in {count / rate:.0f} s"
    )
    return Result(value, all(ended.well for ended in late) and seen.tries[0] <= 40)


async def killed(folder: Path, rate: float, count: int) -> tuple[list[Ended], list[Ended]]:
    """Two vendors under load, of which one ends a third of the way in, its connections with it; the requests begun in
    the second around that, and the later ones."""

    def serve(received: Received) -> Script:
        return slow_stream(0.3, 5) if streams(received) else (Delay(0.1), *quick(received))

    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        survivor = await stack.enter_async_context(FakeVendor(serve))
        victim = FakeVendor(serve)
        await victim.__aenter__()
        vendors = [victim, survivor]
        gateway = await stack.enter_async_context(running_gateway(group_table(vendors, "round_robin"), folder))
        stack.enter_context(apart(gateway.process.pid))
        loading = asyncio.ensure_future(load(port_of(gateway), vendors, rate, count))
        await asyncio.sleep(count / rate / 3)
        await victim.__aexit__(None, None, None)
        end = loop.time()
        ends = (await loading).ends
        # What was begun shortly before was under way.
        around = [ended for ended in ends if end - 1 < ended.began <= end + 1]
        return around, [ended for ended in ends if ended.began > end + 1]


def one_of_two_killed(folder: Path, rate: float, count: int) -> Result:
    """A vendor ends under load."""
    around, late = uvloop.run(killed(folder, rate, count))
    value = f"{failures(late)} client errors of {len(late)} requests after the first second ({failures(around)} in it)"
    return Result(value, bool(late) and all(ended.well for ended in late))


async def hanging(folder: Path, rate: float, count: int, limit: float) -> Seen:
    """Three deployments that take a second, of which one hangs from a tenth of the load on; times and rate scaled.

    A try may wait `limit` seconds of the field for its first event.
    """
    first = 1.0 / SCALE

    def good(received: Received) -> Script:
        return (Delay(first), *quick(received))

    async with AsyncExitStack() as stack:
        vendors = await _among(stack, good, good, good)
        limits = f"{{connect: {5 / SCALE}s, first_event: {limit / SCALE}s, total: {10 * limit / SCALE}s}}"
        text = group_table(vendors, "round_robin").replace("defaults: {", f"defaults: {{timeouts: {limits}, ")
        app = await stack.enter_async_context(inside(folder, text, SCALED))
        await load(port_of(app), vendors, rate, count // 10)
        vendors[0].default = (Hang(),)
        return await load(port_of(app), vendors, rate, count)


def one_of_three_hanging(folder: Path, rate: float, count: int, limit: float) -> Result:
    """First bytes while one deployment hangs, in seconds of the field."""
    seen = uvloop.run(hanging(folder, rate, count, limit))
    firsts = [ended.first * SCALE for ended in seen.ends if ended.first]
    statuses = Counter(ended.end for ended in seen.ends)
    value = (
        f"p99 of the first byte {quantile(firsts, 0.99):.1f} s, p50 {quantile(firsts, 0.5):.1f} s, of {count} requests "
        f"at {rate / SCALE:g} a second over {count / rate * SCALE:.0f} s (measured at 1:{SCALE}), {seen.tries[0]} of "
        f"them sent to the one that hangs; {failures(seen.ends)} client errors"
    )
    return Result(value, quantile(firsts, 0.99) <= 5.0 and statuses[End.WHOLE] == count)


def r15(folder: Path) -> Result:
    """A minute each with three dead deployments."""
    return amplification(folder, 100.0, 6000)


def r16(folder: Path) -> Result:
    """A minute with one of three dead, and half a minute with one of two that is killed."""
    (folder / "dead").mkdir()
    (folder / "killed").mkdir()
    dead, ended = one_of_three_dead(folder / "dead", 100.0, 6000), one_of_two_killed(folder / "killed", 100.0, 3000)
    return Result(f"503: {dead.value}; killed: {ended.value}", dead.good and ended.good)


def r17(folder: Path) -> Result:
    """Twenty-five seconds that stand for 250; longer, and the few that hang would be lost among the rest."""
    return one_of_three_hanging(folder, 200.0, 5000, 60.0)
