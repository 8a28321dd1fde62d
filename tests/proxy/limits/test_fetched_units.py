"""Units that are fetched for waiting requests belong to them: a later request takes none of them, and no request is
refused while the coordinator reports enough units."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from proxy.limits.lease_registry import TICK, LeaseRegistry
from proxy.limits.limit import Limits, Period, Quota, Rate, Unit
from proxy.limits.limit_registry import EXCHANGES_AT_ONCE, LimitRegistry
from proxy.limits.limit_views import Exceeded
from proxy.limits.reservation import Reservation
from proxy.limits.waiting_lines import LONGEST_FETCH
from proxy.shared_state.lease import LeaseGrant, LeaseRequest, SlotsRequest
from proxy.shared_state.membership import MEMBERSHIP_KEY
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import BERLIN, WALL
from tests.support.looped import looped

RATE = Limits((Rate(Unit.TOKENS, 60_000, Period.MINUTE, 1000),))
COMMON = {
    "rate": RATE,
    "slots": Limits(concurrent=1000),
    "quota": Limits(quotas=(Quota(Unit.TOKENS, 1_000_000, Period.DAY),)),
}
PLENTY = 500.0
TRIP = 0.001

Answer = Callable[[int, int], int]
"""The number of units that the response with this number grants, of the units wanted."""


def all_of_it(number: int, want: int) -> int:
    return want


def nothing_yet(number: int, want: int) -> int:
    return 0 if number < 6 else want


def never_any(number: int, want: int) -> int:
    return 0


def one_by_one(number: int, want: int) -> int:
    return min(1, want)


@dataclass(slots=True, eq=False)
class Source:
    """A coordinator that responds by scope, and reports that `level` units are left of a rate. `meanwhile` runs while
    a response is in flight."""

    answers: dict[str, Answer]
    level: float = PLENTY
    meanwhile: Callable[[], object] = lambda: None
    numbers: dict[str, int] = field(default_factory=dict)
    wanting: int = 0

    async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        self.wanting += any(not isinstance(ask, SlotsRequest) and ask.want for ask in asks)
        await asyncio.sleep(TRIP)
        self.meanwhile()
        return [self._grant(ask) for ask in asks]

    def _grant(self, ask: LeaseRequest) -> LeaseGrant:
        if ask.key == MEMBERSHIP_KEY:
            return LeaseGrant(0, 1.0, 1.0, 1, 1)
        scope = ask.key[:6]
        number = self.numbers[scope] = self.numbers.get(scope, 0) + bool(ask.want)
        granted = self.answers[scope](number, ask.want)
        return LeaseGrant(granted, 0.0 if isinstance(ask, SlotsRequest) else self.level, 1.0, 1, 1)


class RegistryRig:
    """A registry with the leases of two teams, and the results of the requests to it."""

    def __init__(self, source: Source, limits: dict[str, Limits]) -> None:
        clock = asyncio.get_running_loop().time
        self.leases = LeaseRegistry(source, 1, clock)
        self.registry = LimitRegistry(clock, lambda: WALL + clock(), self.leases)
        self.registry.use(limits, {}, BERLIN, clock())
        self.task = asyncio.create_task(self.leases.run())
        self.ended: list[tuple[str, bool, float]] = []

    async def ask(self, name: str, scopes: tuple[str, ...], tokens: int) -> None:
        outcome = await self.registry.admit_waiting(scopes, tokens, 0)
        self.ended.append((name, isinstance(outcome, Reservation), asyncio.get_running_loop().time()))

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@looped("common", list(COMMON))
@in_virtual_time
async def test_who_waits_for_two_limits_keeps_the_one_that_it_got_first(common: str) -> None:
    source = Source({"team a": all_of_it, "team b": nothing_yet})
    desk = RegistryRig(source, {"team a": COMMON[common], "team b": RATE})
    async with asyncio.TaskGroup() as group:
        group.create_task(desk.ask("waits", ("team a", "team b"), 20))
        for _ in range(400):
            await asyncio.sleep(TRIP / 4)
            group.create_task(desk.ask("later", ("team a",), 20))
    await desk.stop()
    assert all(passed for _, passed, _ in desk.ended)
    assert len(desk.ended) == 401


@in_virtual_time
async def test_a_lease_that_is_due_again_all_the_time_keeps_nobody_waiting() -> None:
    source = Source({"team a": all_of_it})
    desk = RegistryRig(source, {"team a": RATE})
    ((_, rate),) = desk.registry.meters(("team a",), 0.0)
    source.meanwhile = lambda: desk.leases.wake(rate)  # type: ignore[arg-type]
    await desk.ask("waits", ("team a",), 20)
    await desk.stop()
    ((_, passed, at),) = desk.ended
    assert passed
    assert at < 2 * TRIP


@looped(
    ("answer", "level", "passes", "after", "most"),
    [
        pytest.param(never_any, 10.0, False, 0.0, 1, id="too few are left"),
        pytest.param(
            never_any,
            PLENTY,
            False,
            LONGEST_FETCH,
            EXCHANGES_AT_ONCE + LONGEST_FETCH / TICK + 2,
            id="there are some, for ever",
        ),
        pytest.param(nothing_yet, PLENTY, True, 0.0, 8, id="there are some, and they come"),
        pytest.param(one_by_one, PLENTY, True, 0.0, 25, id="they come one by one"),
    ],
)
@in_virtual_time
async def test_only_an_answer_refuses_or_the_longest_wait(
    answer: Answer, level: float, passes: bool, after: float, most: float
) -> None:
    source = Source({"team a": answer}, level)
    desk = RegistryRig(source, {"team a": RATE})
    await desk.ask("waits", ("team a",), 20)
    await desk.stop()
    ((_, passed, at),) = desk.ended
    assert (passed, source.wanting <= most) == (passes, True)
    assert after <= at <= after + 2.5


@in_virtual_time
async def test_they_pass_in_the_order_in_which_they_came_unless_one_is_more_than_is_left() -> None:
    for level, order in ((PLENTY, ["large", "small"]), (10.0, ["refused", "small"])):
        desk = RegistryRig(Source({"team a": one_by_one}, level), {"team a": RATE})
        await asyncio.gather(desk.ask("large", ("team a",), 20), desk.ask("small", ("team a",), 1))
        await desk.stop()
        assert [name if passed else "refused" for name, passed, _ in desk.ended] == order


@in_virtual_time
async def test_what_is_told_after_the_longest_wait_is_the_limit() -> None:
    desk = RegistryRig(Source({"team a": never_any}), {"team a": RATE})
    told = await desk.registry.admit_waiting(("team a",), 20, 0)
    await desk.stop()
    assert isinstance(told, Exceeded)
    assert (told.scope, told.requested) == ("team a", 20)
