"""The effect of vendors that are dead, die or hang (R15, R16, R17), on clients and on the vendors' own load, seen from
outside."""

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
"""The factor by which time passes faster than in real use, for the figure of the hanging deployment."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How requests ended, in the order in which they began, relative to `start`, and the requests that each vendor
    received."""

    ends: list[Ended]
    start: float
    tries: list[int]

    def after(self, seconds: float) -> list[Ended]:
        """Return the requests that began later than `seconds` seconds after the start."""
        return [ended for ended in self.ends if ended.began > self.start + seconds]


def group_table(vendors: Sequence[FakeVendor], policy: str, more: str = "") -> str:
    """Return a configuration of one model with a deployment at each vendor."""
    rows = ", ".join(f'd{number}: {{base_url: "{vendor.base_url}/v1"}}' for number, vendor in enumerate(vendors))
    return table({"fake": vendors[0].base_url}, [f"fake/m: {{policy: {policy}, deployments: {{{rows}}}}}"], more)


async def load(port: int, vendors: Sequence[FakeVendor], rate: float, count: int) -> Seen:
    """Send requests for the group at this rate. Every second one is a stream."""
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
    """Run three dead deployments under rules that never open a circuit."""
    async with AsyncExitStack() as stack:
        vendors = await _among(stack, DEAD, DEAD, DEAD)
        app = await stack.enter_async_context(inside(folder, group_table(vendors, "round_robin"), NEVER_EJECTED))
        return await load(port_of(app), vendors, rate, count)


async def beside(folder: Path, behaviours: Sequence[Behaviour], rate: float, count: int) -> Seen:
    """Run deployments with these behaviours from the start, behind a gateway as its operator runs it."""
    async with AsyncExitStack() as stack:
        vendors = await _among(stack, *behaviours)
        gateway = await stack.enter_async_context(running_gateway(group_table(vendors, "round_robin"), folder))
        stack.enter_context(apart(gateway.process.pid))
        return await load(port_of(gateway), vendors, rate, count)


def amplification(folder: Path, rate: float, count: int) -> Result:
    """Return the attempts that reached a vendor for each request, first with the budget as the only limit, then with
    open circuits too."""
    within, without = uvloop.run(beside(folder, [DEAD] * 3, rate, count)), uvloop.run(dead_inside(folder, rate, count))
    on, off = sum(within.tries) / count, sum(without.tries) / count
    odd = [ended for ended in (*within.ends, *without.ends) if ended.end is not End.REFUSED]
    value = (
        f"{off:.2f} tries a request with ejection off, {on:.3f} with it on, of {count} requests each at {rate:g} a "
        f"second; {len(odd)} ended in anything but an envelope"
    )
    return Result(value, off <= 1.3 and on <= 0.1 and not odd)


def one_of_three_dead(folder: Path, rate: float, count: int) -> Result:
    """Run a load while one deployment returns 503 from the start."""
    seen = uvloop.run(beside(folder, [UNAVAILABLE, quick, quick], rate, count))
    late = seen.after(1.0)
    value = (
        f"{failures(late)} client errors of {len(late)} requests after the first second, {seen.tries[0]} tries on the "
        f"dead one in {count / rate:.0f} s"
    )
    return Result(value, all(ended.well for ended in late) and seen.tries[0] <= 40)


async def killed(folder: Path, rate: float, count: int) -> tuple[list[Ended], list[Ended]]:
    """Put two vendors under load and end one after a third of the time, with its connections. Return the requests begun
    in the second around that, and the later ones."""

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
        # Requests that began shortly before were in flight.
        around = [ended for ended in ends if end - 1 < ended.began <= end + 1]
        return around, [ended for ended in ends if ended.began > end + 1]


def one_of_two_killed(folder: Path, rate: float, count: int) -> Result:
    """Return the figure for a vendor that ends under load."""
    around, late = uvloop.run(killed(folder, rate, count))
    value = f"{failures(late)} client errors of {len(late)} requests after the first second ({failures(around)} in it)"
    return Result(value, bool(late) and all(ended.well for ended in late))


async def hanging(folder: Path, rate: float, count: int, limit: float) -> Seen:
    """Run three deployments that take a second. One hangs from a tenth of the load on. Times and rate are scaled.

    An attempt may wait `limit` unscaled seconds for its first event.
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
    """Return the times to the first bytes while one deployment hangs, in unscaled seconds."""
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
    """Return the figure: a minute each with three dead deployments."""
    return amplification(folder, 100.0, 6000)


def r16(folder: Path) -> Result:
    """Return the figure: a minute with one of three dead, and half a minute with one of two that is killed."""
    (folder / "dead").mkdir()
    (folder / "killed").mkdir()
    dead, ended = one_of_three_dead(folder / "dead", 100.0, 6000), one_of_two_killed(folder / "killed", 100.0, 3000)
    return Result(f"503: {dead.value}; killed: {ended.value}", dead.good and ended.good)


def r17(folder: Path) -> Result:
    """Return the figure: twenty-five seconds that stand for 250. In a longer load, the few requests that hang would be
    too small a share."""
    return one_of_three_hanging(folder, 200.0, 5000, 60.0)
