"""Some of several processes get no responses from the coordinator, or stand still, while others continue: the units
that all of them pass stay within the promised bound."""

import asyncio
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.limits.lease_counter import LeaseCounter
from proxy.limits.leased_units import SILENCE_LIMIT
from proxy.limits.limit import Limits, Period, Rate, Unit
from proxy.shared_state.lease_keeper import GONE_SECONDS
from tests.proxy.kit.virtual_time import VirtualLoop, in_virtual_time
from tests.proxy.limits.kit.simulation import (
    EVEN,
    SimulatedProcess,
    World,
    all_admitted,
    excess,
    fleet,
    run_traffic,
    stop,
    within,
)
from tests.support.looped import looped
from tests.support.nightly import by_day

PER_SECOND: Final = 120
OFFERED: Final = 1.5 * PER_SECOND
LIMITS = Limits((Rate(Unit.REQUESTS, 60 * PER_SECOND, Period.MINUTE, PER_SECOND),))

WARM: Final = 2.0
"""Seconds until the limit is used up and divided."""

PROMISED: Final = SILENCE_LIMIT * PER_SECOND
"""The greatest excess over the envelope: the units that all may take before a process without responses
counts alone."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that happens to one process, for some seconds, after it was well for some seconds."""

    kind: str
    process: int
    after: float
    lasts: float


async def apply_trouble(world: World, processes: list[SimulatedProcess], trouble: Trouble) -> None:
    await asyncio.sleep(trouble.after)
    source = processes[trouble.process].source
    match trouble.kind:
        case "cut":
            source.cut = True
        case "deaf":
            source.deaf = True
        case "still":
            source.still = trouble.lasts
        case "lost":
            world.lost = True
        case "wiped":
            world.counter = LeaseCounter()
        case "killed":
            await processes[trouble.process].kill()
            world.counter.forget(processes[trouble.process].name)
            new = SimulatedProcess(world, f"p{trouble.process} again {trouble.after}", 2, {"team t": LIMITS})
            new.admitted = processes[trouble.process].admitted
            processes[trouble.process] = new
        case kind:
            raise AssertionError(kind)
    await asyncio.sleep(trouble.lasts)
    source.cut = source.deaf = world.lost = False
    source.still = 0.0


async def run_with(troubles: list[Trouble], seconds: float) -> list[tuple[float, int]]:
    """Offer more than the limit to four processes, of gateways of two each, to which all these troubles happen one
    after the other."""
    world = World()
    processes = fleet(world, LIMITS, 4)
    for each in processes:
        each.leases._membership._least = each.leases._membership.processes = 2

    async def all_in_turn() -> None:
        await asyncio.sleep(WARM)
        for trouble in troubles:
            await apply_trouble(world, processes, trouble)

    async def one(number: int) -> None:
        while (now := asyncio.get_running_loop().time()) < seconds:
            each = processes[number]
            await each.traffic(OFFERED / 4, min(seconds, now + 0.25))

    await asyncio.gather(all_in_turn(), *(one(number) for number in range(4)))
    await stop(processes)
    return all_admitted(processes)


def total(troubles: list[Trouble]) -> float:
    return WARM + sum(each.after + each.lasts for each in troubles) + 1


def each_time(kind: str, after: float, lasts: float, times: int, processes: int = 1) -> list[Trouble]:
    return [Trouble(kind, number % processes, after, lasts) for number in range(times)]


@looped(
    "troubles",
    [
        pytest.param(each_time("cut", 0, 1.0, 1), id="cut off once"),
        pytest.param(each_time("cut", 0, 6.0, 1), id="cut off long"),
        pytest.param(each_time("cut", 0.1, 0.08, 40), id="flapping faster than is seen"),
        pytest.param(each_time("cut", 0.4, 0.3, 8, 4), id="one after the other"),
        pytest.param(each_time("deaf", 0.3, 0.6, 5, 2), id="answers lost"),
        pytest.param(each_time("still", 0.5, 3.0, 2), id="standing still"),
        pytest.param(each_time("killed", 0.5, 0.5, 4, 4), id="replaced"),
        pytest.param(each_time("wiped", 0.5, 0.5, 4), id="memory lost"),
        pytest.param([Trouble("cut", 0, 0, 1.0), Trouble("wiped", 0, 0, 1.0)] * 2, id="cut off, then memory lost"),
    ][:: by_day(2, 1)],
)
@in_virtual_time
async def test_what_passes_is_within_the_promise_and_the_traffic_goes_on(troubles: list[Trouble]) -> None:
    seconds = total(troubles)
    admitted = await run_with(troubles, seconds)
    assert excess(admitted, PER_SECOND, PER_SECOND) <= PROMISED
    assert within(admitted, 0, seconds) <= 1.02 * PER_SECOND * (1 + seconds)
    assert within(admitted, WARM, seconds) >= 0.7 * PER_SECOND * (seconds - WARM)


KINDS = st.sampled_from(["cut", "deaf", "still", "lost", "wiped", "killed"])
TROUBLES = st.builds(Trouble, KINDS, st.integers(0, 3), st.floats(0, 1.5), st.floats(0.02, 4))


def all_take_is_known(troubles: list[Trouble]) -> bool:
    """Return whether no killed process can have units that it took alone and did not report: no other process can
    know of them."""
    kinds = [each.kind for each in troubles]
    return "killed" not in kinds or not set(kinds) - {"killed", "still"}


def never_more(troubles: list[Trouble], most: float = PROMISED) -> None:
    loop = VirtualLoop()
    try:
        admitted = loop.run_until_complete(run_with(troubles, total(troubles)))
    finally:
        loop.close()
    assert excess(admitted, PER_SECOND, PER_SECOND) <= most


@looped(
    "troubles",
    [
        [Trouble("cut", 0, 0.0, 1.75), Trouble("wiped", 0, 0.0, 1.0)],
        [Trouble("wiped", 0, 0.0, 0.08), Trouble("cut", 2, 0.0, 1.92), Trouble("cut", 2, 0.0, 1.83)],
        [Trouble("cut", 1, 0.0, 1.0), Trouble("wiped", 0, 0.0, 1.5), Trouble("cut", 3, 1.0, 1.5)],
        [Trouble("lost", 0, 0.0, 1.22), Trouble("killed", 2, 0.0, 3.88), Trouble("cut", 0, 0.0, 0.33)],
    ],
    ids=["the memory is lost while one is cut off", "after a memory was lost", "before all are back", "one never is"],
)
def test_those_who_are_cut_off_are_counted_whose_part_nobody_can_know(troubles: list[Trouble]) -> None:
    never_more(troubles)


SCHEDULES = st.lists(TROUBLES, min_size=1, max_size=3).filter(all_take_is_known)
LONG = st.lists(TROUBLES, min_size=1, max_size=6).filter(all_take_is_known)

ROUGHLY: Final = 1.5 * PROMISED
"""The greatest excess if one trouble follows another at once: a process without responses twice in a row goes silent
twice."""


@given(SCHEDULES)
@settings(max_examples=by_day(4, 8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_schedule_of_troubles_lets_more_pass(troubles: list[Trouble]) -> None:
    never_more(troubles, ROUGHLY)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@given(LONG)
@settings(max_examples=by_day(20, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_longer_schedule_of_troubles_lets_more_pass(troubles: list[Trouble]) -> None:
    never_more(troubles, ROUGHLY)


@in_virtual_time
async def test_one_cut_off_for_long_takes_its_part_beside_the_others_and_no_more() -> None:
    world = World()
    processes = fleet(world, LIMITS, 4)
    await run_traffic(processes, OFFERED, WARM, EVEN[:4])
    processes[0].source.cut = True
    await run_traffic(processes, OFFERED, GONE_SECONDS + 6, EVEN[:4])
    await stop(processes)
    admitted, begin = all_admitted(processes), WARM + GONE_SECONDS + 1
    assert within(admitted, WARM, WARM + GONE_SECONDS) <= PER_SECOND * GONE_SECONDS * 1.02
    assert within(admitted, begin, begin + 4) <= 1.27 * PER_SECOND * 4
    assert processes[0].leases.alone
