"""The places of a deployment in virtual time: never too many, none lost, nobody overtaken, nobody waiting for ever."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.failure import FailureKind, UpstreamError
from proxy.bulkhead import Bulkhead
from proxy.concurrency_limit import BulkheadRules, Limited
from tests.proxy.places import RULES, SAID, arrive, small, taught, took
from tests.proxy.virtual_time import run


@pytest.mark.parametrize(("bound", "takers"), [(None, 5000), (64, 64)])
def test_places_up_to_the_limit_are_taken_without_waiting(bound: int | None, takers: int) -> None:
    async def main() -> None:
        bulkhead = Bulkhead(RULES, bound)
        for _ in range(takers):
            await bulkhead.take("a")
        assert (bulkhead.in_flight, bulkhead.waiting) == (takers, 0)
        assert asyncio.get_running_loop().time() == 0

    run(main())


def test_who_finds_no_place_within_a_second_is_refused() -> None:
    async def main() -> None:
        bulkhead = small()
        await bulkhead.take("a")
        await bulkhead.take("a")
        with pytest.raises(UpstreamError) as caught:
            await bulkhead.take("a")
        assert asyncio.get_running_loop().time() == 1.0
        assert (caught.value.failure.kind, caught.value.failure.unsent) == (FailureKind.BUSY, True)
        assert (bulkhead.in_flight, bulkhead.waiting) == (2, 0)

    run(main())


def test_three_times_the_limit_are_served_or_refused_within_a_second_and_the_one_too_many_at_once() -> None:
    async def main() -> list[tuple[str, float]]:
        bulkhead = small()
        loop = asyncio.get_running_loop()
        ends: list[tuple[str, float]] = []

        async def ask(hold: float) -> None:
            ends.append((await took(bulkhead), loop.time()))
            if ends[-1][0] == "place":
                await asyncio.sleep(hold)
                bulkhead.release("a")

        async with asyncio.TaskGroup() as group:
            for hold in (0.75, 9, 9, 9, 9, 9, 9):
                group.create_task(ask(hold))
        assert bulkhead.in_flight == 0
        return ends

    refused = FailureKind.BUSY.value
    at_once, later = [("place", 0.0), ("place", 0.0), (refused, 0.0)], [("place", 0.75), *[(refused, 1.0)] * 3]
    assert run(main()) == at_once + later


def test_a_raised_limit_lets_the_next_in_before_it_waits() -> None:
    async def main() -> None:
        bulkhead = taught(5)
        for _ in range(4):
            await bulkhead.take("a")
        await asyncio.sleep(10)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(took(bulkhead))
            await asyncio.sleep(0)
            bulkhead.limit.won(10.0)
            second = group.create_task(took(bulkhead))
        assert (await first, await second) == ("place", FailureKind.BUSY.value)

    run(main())


def test_after_the_limit_was_forgotten_nobody_waits() -> None:
    async def main() -> None:
        bulkhead = taught(5)
        for _ in range(4):
            await bulkhead.take("a")
        await asyncio.sleep(60)
        for _ in range(500):
            await bulkhead.take("a")
        assert (bulkhead.in_flight, bulkhead.limited(60.0)) == (504, None)
        assert asyncio.get_running_loop().time() == 60

    run(main())


def test_who_waits_while_the_limit_is_forgotten_gets_a_place() -> None:
    async def main() -> None:
        bulkhead = taught(5)
        for _ in range(4):
            await bulkhead.take("a")
        await asyncio.sleep(59.5)
        async with asyncio.TaskGroup() as group:
            waiting = await arrive(group, bulkhead, "a", 8)
            assert bulkhead.limited(59.5) == Limited(4, "learned after rate_limited 60 s ago", 4, 8)
        assert [task.result() for task in waiting] == ["place"] * 8

    run(main())


def test_another_word_of_the_operators_counts_at_once() -> None:
    async def main() -> None:
        bulkhead = small()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(took(bulkhead)) for _ in range(4)]
            await asyncio.sleep(0)
            assert bulkhead.limited(0.0) == Limited(2, "operator", 2, 2)
            bulkhead.bind(None)
        assert [task.result() for task in tasks] == ["place"] * 4
        bulkhead.bind(3)
        assert (bulkhead.limited(0.0), await took(bulkhead)) == (Limited(3, "operator", 4, 0), FailureKind.BUSY.value)

    run(main())


def test_a_shrunken_limit_takes_no_place_away_and_gives_none_until_enough_came_back() -> None:
    async def main() -> None:
        bulkhead = Bulkhead(RULES)
        for _ in range(10):
            await bulkhead.take("a")
        bulkhead.limit.lost(SAID, 0.0, 0.0, 10)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(took(bulkhead))
            await asyncio.sleep(0)
            bulkhead.release("a")
            await asyncio.sleep(0)
            assert (bulkhead.in_flight, bulkhead.waiting) == (9, 1)
            bulkhead.release("a")
            assert bulkhead.in_flight == 9
        assert await waiting == "place"

    run(main())


@pytest.mark.parametrize("handed", [False, True])
def test_a_cancelled_waiter_leaves_its_place_to_the_next(handed: bool) -> None:
    async def main() -> None:
        bulkhead = small(1)
        await bulkhead.take("a")
        async with asyncio.TaskGroup() as group:
            gone, stays = group.create_task(took(bulkhead)), group.create_task(took(bulkhead))
            await asyncio.sleep(0)
            if handed:
                bulkhead.release("a")
            gone.cancel()
            if not handed:
                bulkhead.release("a")
        assert gone.cancelled()
        assert await stays == "place"
        assert (bulkhead.in_flight, bulkhead.waiting) == (1, 0)
        bulkhead.release("a")
        assert await took(bulkhead) == "place"

    run(main())


def test_a_deadline_around_a_wait_costs_no_place() -> None:
    async def main() -> None:
        bulkhead = small(1)
        await bulkhead.take("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.25):
                await bulkhead.take("a")
        assert (bulkhead.in_flight, bulkhead.waiting) == (1, 0)
        bulkhead.release("a")
        assert bulkhead.in_flight == 0

    run(main())


@dataclass
class Crowd:
    """Takers of one bulkhead: which got a place, and those of them who waited for it, in the order they had it."""

    bulkhead: Bulkhead
    takers: list["asyncio.Task[None]"] = field(default_factory=list)
    served: set[int] = field(default_factory=set)
    waited: list[int] = field(default_factory=list)
    held: int = 0

    def arrive(self) -> None:
        """Another taker."""
        self.takers.append(asyncio.create_task(self._take(len(self.takers))))

    async def _take(self, number: int) -> None:
        turns: list[None] = []
        asyncio.get_running_loop().call_soon(turns.append, None)
        await self.bulkhead.take("a")
        self.served.add(number)
        if turns:  # the loop went on meanwhile
            self.waited.append(number)
        self.held += 1

    def cancel(self, which: int) -> None:
        """One of the takers loses patience, if it still has any."""
        if self.takers:
            self.takers[which % len(self.takers)].cancel()

    def release(self) -> None:
        """A holder is done."""
        if self.held:
            self.held -= 1
            self.bulkhead.release("a")

    async def disperse(self) -> None:
        """Everybody who still comes to hold a place gives it back."""
        while self.bulkhead.in_flight or not all(taker.done() for taker in self.takers):
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
def test_no_interleaving_takes_too_many_loses_a_place_or_leaves_anybody_waiting(steps: list[tuple[str, int]]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        bulkhead = Bulkhead(BulkheadRules(least=1, shrink_every=0.1, grow_every=0.5, forget=3.0), 5)
        crowd = Crowd(bulkhead)
        for step, number in steps:
            before = bulkhead.in_flight
            match step:
                case "arrive":
                    crowd.arrive()
                case "cancel":
                    crowd.cancel(number)
                case "release":
                    crowd.release()
                case "won":
                    bulkhead.limit.won(loop.time())
                case "lost":
                    bulkhead.limit.lost(SAID, loop.time(), loop.time(), bulkhead.in_flight)
                case "yield":
                    await asyncio.sleep(0)
                case _:
                    await asyncio.sleep(number / 50)
            assert bulkhead.in_flight <= max(before, bulkhead.limit.current)
            assert bulkhead.in_flight or not bulkhead.waiting
        await crowd.disperse()
        ends = await asyncio.gather(*crowd.takers, return_exceptions=True)
        assert crowd.waited == sorted(crowd.waited)
        assert {number for number, end in enumerate(ends) if end is None} == crowd.served
        assert all(end is None or isinstance(end, UpstreamError | asyncio.CancelledError) for end in ends)
        assert (bulkhead.in_flight, bulkhead.waiting) == (0, 0)

    run(main())
