"""The places of a deployment in virtual time: never too many, none lost, nobody overtaken, nobody waiting for ever."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.failure import FailureKind, UpstreamError
from proxy.bulkhead import Bulkhead, BulkheadRules, Limit
from tests.proxy.virtual_time import run

RULES = BulkheadRules()
SMALL = BulkheadRules(start=2, least=1, most=4)


def test_a_window_of_successes_raises_the_limit_by_one() -> None:
    limit = Limit(RULES)
    for _ in range(63):
        limit.won()
    assert limit.current == 64
    limit.won()
    assert limit.current == 65
    for _ in range(65):
        limit.won()
    assert limit.current == 66


def test_the_losses_of_one_second_shrink_the_limit_once() -> None:
    limit = Limit(RULES)
    for now in (0.0, 0.0, 0.5, 0.999):
        limit.lost(now)
    assert limit.current == 57
    limit.lost(1.0)
    assert limit.current == 51


def test_a_loss_begins_the_window_again() -> None:
    limit = Limit(RULES)
    for _ in range(63):
        limit.won()
    limit.lost(0.0)
    for _ in range(56):
        limit.won()
    assert limit.current == 57
    limit.won()
    assert limit.current == 58


@given(st.lists(st.none() | st.floats(0, 5), max_size=400))
def test_the_limit_stays_within_its_bounds(story: list[float | None]) -> None:
    limit, now = Limit(BulkheadRules(start=6, least=4, most=8)), 0.0
    for step in story:
        if step is None:
            limit.won()
        else:
            now += step
            limit.lost(now)
        assert 4 <= limit.current <= 8


def test_losses_alone_end_at_the_least_and_successes_alone_at_the_most() -> None:
    limit = Limit(RULES)
    for second in range(60):
        limit.lost(float(second))
    assert limit.current == 4
    for _ in range(200_000):
        limit.won()
    assert limit.current == 512


async def took(bulkhead: Bulkhead, team: str = "a") -> str:
    """What became of a take."""
    try:
        await bulkhead.take(team)
    except UpstreamError as error:
        return error.failure.kind.value
    return "place"


def test_places_up_to_the_limit_are_taken_without_waiting() -> None:
    async def main() -> None:
        bulkhead = Bulkhead(RULES)
        for _ in range(64):
            await bulkhead.take("a")
        assert (bulkhead.in_flight, bulkhead.waiting) == (64, 0)
        assert asyncio.get_running_loop().time() == 0

    run(main())


def test_who_finds_no_place_within_a_second_is_refused() -> None:
    async def main() -> None:
        bulkhead = Bulkhead(SMALL)
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
        bulkhead = Bulkhead(SMALL)
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
        bulkhead = Bulkhead(SMALL)
        await bulkhead.take("a")
        await bulkhead.take("a")
        async with asyncio.TaskGroup() as group:
            first = group.create_task(took(bulkhead))
            await asyncio.sleep(0)
            bulkhead.limit.won()
            bulkhead.limit.won()
            second = group.create_task(took(bulkhead))
        assert (await first, await second) == ("place", FailureKind.BUSY.value)

    run(main())


def test_a_shrunken_limit_takes_no_place_away_and_gives_none_until_enough_came_back() -> None:
    async def main() -> None:
        bulkhead = Bulkhead(BulkheadRules(start=10, least=1))
        for _ in range(10):
            await bulkhead.take("a")
        bulkhead.limit.lost(0.0)
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
        bulkhead = Bulkhead(BulkheadRules(start=1, least=1))
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
        bulkhead = Bulkhead(BulkheadRules(start=1, least=1))
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
        bulkhead = Bulkhead(SMALL)
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
                    bulkhead.limit.won()
                case "lost":
                    bulkhead.limit.lost(loop.time())
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


# Teams ---------------------------------------------------------------------------------------------------------------


async def arrive(group: asyncio.TaskGroup, bulkhead: Bulkhead, team: str, count: int) -> "list[asyncio.Task[str]]":
    """So many takers of a team, in this order, who wait by now if they have to."""
    tasks = [group.create_task(took(bulkhead, team)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


def test_while_another_waits_no_team_gets_more_than_half_of_the_places() -> None:
    async def main() -> None:
        bulkhead = Bulkhead(BulkheadRules(start=4, least=1, most=4))
        async with asyncio.TaskGroup() as group:
            await arrive(group, bulkhead, "loud", 4)
            loud = await arrive(group, bulkhead, "loud", 4)
            quiet = await arrive(group, bulkhead, "quiet", 2)
            for _ in range(2):
                bulkhead.release("loud")
            await asyncio.sleep(0)
            assert [task.done() for task in (*loud, *quiet)] == [False] * 4 + [True, True]
            bulkhead.release("loud")
            await asyncio.sleep(0)
            assert loud[0].done()

    run(main())


def test_a_team_that_is_alone_gets_all_places() -> None:
    async def main() -> None:
        bulkhead = Bulkhead(BulkheadRules(start=4, least=1, most=4))
        async with asyncio.TaskGroup() as group:
            await arrive(group, bulkhead, "loud", 8)
            for _ in range(4):
                bulkhead.release("loud")
            await asyncio.sleep(0)
            assert (bulkhead.in_flight, bulkhead.waiting) == (4, 0)

    run(main())


def test_a_team_that_has_filled_the_line_gives_way_in_it_to_another_until_both_have_as_many() -> None:
    async def main() -> None:
        bulkhead = Bulkhead(SMALL)  # 2 places, and 4 in the line
        async with asyncio.TaskGroup() as group:
            loud = await arrive(group, bulkhead, "loud", 6)
            quiet = await arrive(group, bulkhead, "quiet", 3)
            await asyncio.sleep(0)
            assert [task.done() for task in loud] == [True, True, False, False, True, True]
            assert [task.result() for task in loud[4:]] == [FailureKind.BUSY.value] * 2
            assert [task.done() for task in quiet] == [False, False, True]
            assert quiet[2].result() == FailureKind.BUSY.value
            assert bulkhead.waiting == 4

    run(main())


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("aabc"), st.sampled_from(["take", "take", "release", "wait"])), max_size=60),
    st.integers(1, 6),
)
def test_whatever_teams_do_places_are_counted_and_all_are_given_back(story: list[tuple[str, str]], size: int) -> None:
    async def main() -> None:
        bulkhead = Bulkhead(BulkheadRules(start=size, least=1, most=6))
        takers: list[tuple[str, asyncio.Task[str]]] = []
        given_back: set[int] = set()

        def holders(team: str) -> list[int]:
            return [
                number
                for number, (own, task) in enumerate(takers)
                if own == team and number not in given_back and task.done() and task.result() == "place"
            ]

        for team, step in story:
            if step == "take":
                takers.append((team, asyncio.create_task(took(bulkhead, team))))
                await asyncio.sleep(0)
            elif step == "wait":
                await asyncio.sleep(0.3)
            elif found := holders(team):
                given_back.add(found[0])
                bulkhead.release(team)
                await asyncio.sleep(0)
            assert bulkhead.in_flight <= size * 5 // 4
            assert bulkhead.in_flight == sum(len(holders(each)) for each in "abc")
            assert bulkhead.waiting <= 2 * size
            assert not bulkhead.waiting or bulkhead.in_flight >= size
        while any(not task.done() for _, task in takers) or bulkhead.in_flight:
            for team in "abc":
                for number in holders(team):
                    given_back.add(number)
                    bulkhead.release(team)
            await asyncio.sleep(0.1)
        assert (bulkhead.in_flight, bulkhead.waiting, bulkhead._held) == (0, 0, {})

    run(main())
