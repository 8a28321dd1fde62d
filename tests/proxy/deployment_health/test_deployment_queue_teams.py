"""The slots of a deployment that several teams want, in virtual time: no team has all of them while others wait."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from providers.failure import FailureKind
from tests.proxy.kit.queue_places import arrive, small, taught, taught_exactly, took
from tests.proxy.kit.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_limit_that_one_team_alone_has_met_ends_when_another_comes() -> None:
    queue = taught(5, "loud")
    async with asyncio.TaskGroup() as group:
        loud = await arrive(group, queue, "loud", 6)
        assert (queue.in_flight, queue.waiting) == (4, 2)
        quiet = await arrive(group, queue, "quiet", 9)
    assert {task.result() for task in (*loud, *quiet)} == {"place"}
    assert asyncio.get_running_loop().time() == 0


@in_virtual_time
async def test_while_another_waits_no_team_gets_more_than_half_of_the_places() -> None:
    queue = small(4)
    async with asyncio.TaskGroup() as group:
        await arrive(group, queue, "loud", 4)
        loud = await arrive(group, queue, "loud", 4)
        quiet = await arrive(group, queue, "quiet", 2)
        for _ in range(2):
            queue.release("loud")
        await asyncio.sleep(0)
        assert [task.done() for task in (*loud, *quiet)] == [False] * 4 + [True, True]
        queue.release("loud")
        await asyncio.sleep(0)
        assert loud[0].done()


@in_virtual_time
async def test_a_team_that_is_alone_gets_all_places() -> None:
    queue = small(4)
    async with asyncio.TaskGroup() as group:
        await arrive(group, queue, "loud", 8)
        for _ in range(4):
            queue.release("loud")
        await asyncio.sleep(0)
        assert (queue.in_flight, queue.waiting) == (4, 0)


@in_virtual_time
async def test_a_team_that_has_filled_the_line_gives_way_in_it_to_another_until_both_have_as_many() -> None:
    queue = small()  # 2 slots, and 4 in the line
    async with asyncio.TaskGroup() as group:
        loud = await arrive(group, queue, "loud", 6)
        quiet = await arrive(group, queue, "quiet", 3)
        await asyncio.sleep(0)
        assert [task.done() for task in loud] == [True, True, False, False, True, True]
        assert [task.result() for task in loud[4:]] == [FailureKind.BUSY.value] * 2
        assert [task.done() for task in quiet] == [False, False, True]
        assert quiet[2].result() == FailureKind.BUSY.value
        assert queue.waiting == 4


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("aabc"), st.sampled_from(["take", "take", "release", "wait"])), max_size=60),
    st.integers(1, 6),
    st.booleans(),
)
@in_virtual_time
async def test_whatever_teams_do_all_places_are_given_back(story: list[tuple[str, str]], size: int, hard: bool) -> None:
    """Teams below their share may exceed a learned limit by a quarter. The operator's limit is never exceeded."""
    queue = small(size) if hard else taught_exactly(size)
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
            takers.append((team, asyncio.create_task(took(queue, team))))
            await asyncio.sleep(0)
        elif step == "wait":
            await asyncio.sleep(0.3)
        elif found := holders(team):
            given_back.add(found[0])
            queue.release(team)
            await asyncio.sleep(0)
        assert queue.in_flight <= (size if hard else size * 5 // 4)
        assert queue.in_flight == sum(len(holders(each)) for each in "abc")
        assert queue.waiting <= 2 * size
        assert not queue.waiting or queue.in_flight >= size
    while any(not task.done() for _, task in takers) or queue.in_flight:
        for team in "abc":
            for number in holders(team):
                given_back.add(number)
                queue.release(team)
        await asyncio.sleep(0.1)
    assert (queue.in_flight, queue.waiting, queue._held) == (0, 0, {})
