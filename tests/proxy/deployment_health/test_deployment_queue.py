"""The slots of a deployment in virtual time: never too many, no leak, first come first served, no endless wait."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.failure import FailureKind, UpstreamError
from proxy.deployment_health.concurrency_limit import ConcurrencyRules, Limited
from proxy.deployment_health.deployment_queue import DeploymentQueue
from tests.proxy.kit.queue_places import RULES, SAID, arrive, small, taught, took
from tests.proxy.kit.virtual_time import in_virtual_time, run


@pytest.mark.parametrize(("bound", "takers"), [(None, 5000), (64, 64)])
@in_virtual_time
async def test_places_up_to_the_limit_are_taken_without_waiting(bound: int | None, takers: int) -> None:
    queue = DeploymentQueue(RULES, bound)
    for _ in range(takers):
        await queue.take("a")
    assert (queue.in_flight, queue.waiting) == (takers, 0)
    assert asyncio.get_running_loop().time() == 0


@in_virtual_time
async def test_a_place_is_free_for_who_comes_while_nobody_waits_for_it() -> None:
    queue = small()
    assert queue.take_free("a")
    assert queue.take_free("a")
    assert not queue.take_free("b")
    assert queue.in_flight == 2
    async with asyncio.TaskGroup() as group:
        (waiting,) = await arrive(group, queue, "b", 1)
        queue.limit.bind(3)
        assert not queue.take_free("c")
        queue.bind(3)
        assert await waiting == "place"


@in_virtual_time
async def test_who_finds_no_place_within_a_second_is_refused() -> None:
    queue = small()
    await queue.take("a")
    await queue.take("a")
    with pytest.raises(UpstreamError) as caught:
        await queue.take("a")
    assert asyncio.get_running_loop().time() == 1.0
    assert (caught.value.failure.kind, caught.value.failure.unsent) == (FailureKind.BUSY, True)
    assert (queue.in_flight, queue.waiting) == (2, 0)


def test_three_times_the_limit_are_served_or_refused_within_a_second_and_the_one_too_many_at_once() -> None:
    async def main() -> list[tuple[str, float]]:
        queue = small()
        loop = asyncio.get_running_loop()
        ends: list[tuple[str, float]] = []

        async def ask(hold: float) -> None:
            ends.append((await took(queue), loop.time()))
            if ends[-1][0] == "place":
                await asyncio.sleep(hold)
                queue.release("a")

        async with asyncio.TaskGroup() as group:
            for hold in (0.75, 9, 9, 9, 9, 9, 9):
                group.create_task(ask(hold))
        assert queue.in_flight == 0
        return ends

    refused = FailureKind.BUSY.value
    at_once, later = [("place", 0.0), ("place", 0.0), (refused, 0.0)], [("place", 0.75), *[(refused, 1.0)] * 3]
    assert run(main()) == at_once + later


@in_virtual_time
async def test_a_raised_limit_lets_the_next_in_before_it_waits() -> None:
    queue = taught(5)
    for _ in range(4):
        await queue.take("a")
    await asyncio.sleep(10)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(took(queue))
        await asyncio.sleep(0)
        queue.limit.won(10.0)
        second = group.create_task(took(queue))
    assert (await first, await second) == ("place", FailureKind.BUSY.value)


@in_virtual_time
async def test_after_the_limit_was_forgotten_nobody_waits() -> None:
    queue = taught(5)
    for _ in range(4):
        await queue.take("a")
    await asyncio.sleep(60)
    for _ in range(500):
        await queue.take("a")
    assert (queue.in_flight, queue.limited(60.0)) == (504, None)
    assert asyncio.get_running_loop().time() == 60


@in_virtual_time
async def test_who_waits_while_the_limit_is_forgotten_gets_a_place() -> None:
    queue = taught(5)
    for _ in range(4):
        await queue.take("a")
    await asyncio.sleep(59.5)
    async with asyncio.TaskGroup() as group:
        waiting = await arrive(group, queue, "a", 8)
        assert queue.limited(59.5) == Limited(4, "learned after rate_limited 60 s ago", 4, 8)
    assert [task.result() for task in waiting] == ["place"] * 8


@in_virtual_time
async def test_another_word_of_the_operators_counts_at_once() -> None:
    queue = small()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(took(queue)) for _ in range(4)]
        await asyncio.sleep(0)
        assert queue.limited(0.0) == Limited(2, "operator", 2, 2)
        queue.bind(None)
    assert [task.result() for task in tasks] == ["place"] * 4
    queue.bind(3)
    assert (queue.limited(0.0), await took(queue)) == (Limited(3, "operator", 4, 0), FailureKind.BUSY.value)


@in_virtual_time
async def test_a_shrunken_limit_takes_no_place_away_and_gives_none_until_enough_came_back() -> None:
    queue = DeploymentQueue(RULES)
    for _ in range(10):
        await queue.take("a")
    queue.limit.lost(SAID, 0.0, 0.0, 10)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(took(queue))
        await asyncio.sleep(0)
        queue.release("a")
        await asyncio.sleep(0)
        assert (queue.in_flight, queue.waiting) == (9, 1)
        queue.release("a")
        assert queue.in_flight == 9
    assert await waiting == "place"


@pytest.mark.parametrize("handed", [False, True])
@in_virtual_time
async def test_a_cancelled_waiter_leaves_its_place_to_the_next(handed: bool) -> None:
    queue = small(1)
    await queue.take("a")
    async with asyncio.TaskGroup() as group:
        gone, stays = group.create_task(took(queue)), group.create_task(took(queue))
        await asyncio.sleep(0)
        if handed:
            queue.release("a")
        gone.cancel()
        if not handed:
            queue.release("a")
    assert gone.cancelled()
    assert await stays == "place"
    assert (queue.in_flight, queue.waiting) == (1, 0)
    queue.release("a")
    assert await took(queue) == "place"


@in_virtual_time
async def test_a_deadline_around_a_wait_costs_no_place() -> None:
    queue = small(1)
    await queue.take("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.25):
            await queue.take("a")
    assert (queue.in_flight, queue.waiting) == (1, 0)
    queue.release("a")
    assert queue.in_flight == 0


@dataclass
class Crowd:
    """Takers of one queue: which got a slot, and which of them waited for it, in the order in which they got it."""

    queue: DeploymentQueue
    takers: list["asyncio.Task[None]"] = field(default_factory=list)
    served: set[int] = field(default_factory=set)
    waited: list[int] = field(default_factory=list)
    held: int = 0

    def arrive(self) -> None:
        """Add a taker."""
        self.takers.append(asyncio.create_task(self._take(len(self.takers))))

    async def _take(self, number: int) -> None:
        turns: list[None] = []
        asyncio.get_running_loop().call_soon(turns.append, None)
        await self.queue.take("a")
        self.served.add(number)
        if turns:  # if the event loop has run an iteration meanwhile
            self.waited.append(number)
        self.held += 1

    def cancel(self, which: int) -> None:
        """Cancel one of the takers, if there is any."""
        if self.takers:
            self.takers[which % len(self.takers)].cancel()

    def release(self) -> None:
        """Release the slot of one holder."""
        if self.held:
            self.held -= 1
            self.queue.release("a")

    async def disperse(self) -> None:
        """Release every slot until no taker waits."""
        while self.queue.in_flight or not all(taker.done() for taker in self.takers):
            self.release()
            await asyncio.sleep(0.01)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "arrive", "cancel", "release", "won", "lost", "yield", "pass"]), st.integers(0, 99)
    ),
    max_size=80,
)


@settings(deadline=None)
@given(STEPS)
@in_virtual_time
async def test_no_interleaving_takes_too_many_loses_a_place_or_leaves_one_waiting(steps: list[tuple[str, int]]) -> None:
    loop = asyncio.get_running_loop()
    queue = DeploymentQueue(ConcurrencyRules(least=1, shrink_every=0.1, grow_every=0.5, forget=3.0), 5)
    crowd = Crowd(queue)
    for step, number in steps:
        before = queue.in_flight
        match step:
            case "arrive":
                crowd.arrive()
            case "cancel":
                crowd.cancel(number)
            case "release":
                crowd.release()
            case "won":
                queue.limit.won(loop.time())
            case "lost":
                queue.limit.lost(SAID, loop.time(), loop.time(), queue.in_flight)
            case "yield":
                await asyncio.sleep(0)
            case _:
                await asyncio.sleep(number / 50)
        assert queue.in_flight <= max(before, queue.limit.current)
        assert queue.in_flight or not queue.waiting
    await crowd.disperse()
    ends = await asyncio.gather(*crowd.takers, return_exceptions=True)
    assert crowd.waited == sorted(crowd.waited)
    assert {number for number, end in enumerate(ends) if end is None} == crowd.served
    assert all(end is None or isinstance(end, UpstreamError | asyncio.CancelledError) for end in ends)
    assert (queue.in_flight, queue.waiting) == (0, 0)
