"""Slots that owners share, in virtual time: each waits for at most one run of each other owner."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.off_loop.fair_slots import FairSlots
from tests.proxy.kit.virtual_time import in_virtual_time, run


class Runs:
    """The runs on slots, with their times."""

    def __init__(self, most: int) -> None:
        self.slots = FairSlots(most)
        self.holding: list[str] = []
        self.order: list[str] = []
        self.most = 0

    async def work(self, owner: str, seconds: float) -> None:
        async with self.slots.taken(owner):
            self.order.append(owner)
            self.holding.append(owner)
            self.most = max(self.most, len(self.holding))
            assert len(set(self.holding)) == len(self.holding)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.holding.remove(owner)

    async def all(self, works: list[tuple[str, float]]) -> float:
        """Begin all in order, and return the time that they took."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for owner, seconds in works:
                group.create_task(self.work(owner, seconds))
                await asyncio.sleep(0)
        return asyncio.get_running_loop().time() - began


def test_an_owner_never_holds_a_second_slot() -> None:
    runs = Runs(2)
    assert run(runs.all([("a", 1.0)] * 3)) == 3.0
    assert runs.most == 1


def test_another_owner_does_not_wait_behind_a_queue() -> None:
    runs = Runs(2)
    run(runs.all([*[("greedy", 1.0)] * 5, ("light", 1.0)]))
    assert runs.order[:2] == ["greedy", "light"]
    assert runs.most == 2


def test_where_all_slots_are_taken_the_owners_take_turns() -> None:
    runs = Runs(1)
    run(runs.all([*[("a", 1.0)] * 4, ("b", 1.0), ("c", 1.0), ("b", 1.0)]))
    assert runs.order[:4] == ["a", "a", "b", "c"] or runs.order[:4] == ["a", "b", "c", "a"]
    assert sorted(runs.order) == list("aaaabbc")


@in_virtual_time
async def test_who_is_cancelled_while_waiting_leaves_no_gap() -> None:
    runs = Runs(1)
    first = asyncio.ensure_future(runs.work("a", 1.0))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(runs.work("b", 1.0))
    await asyncio.sleep(0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.gather(first, runs.work("c", 1.0), runs.work("b", 1.0))
    assert runs.order == ["a", "c", "b"]


def test_who_is_cancelled_as_the_slot_comes_gives_it_back() -> None:
    async def main() -> list[str]:
        runs = Runs(1)
        first = asyncio.ensure_future(runs.work("a", 1.0))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(runs.work("b", 1.0))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_at(1.0, waiting.cancel)
        await asyncio.wait((first, waiting))
        await runs.work("c", 1.0)
        return runs.order

    assert run(main())[-1] == "c"


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.1, 2.0)), max_size=12))
def test_all_work_is_done_and_never_by_more_than_there_are_slots(most: int, works: list[tuple[str, float]]) -> None:
    runs = Runs(most)
    run(runs.all(works))
    assert sorted(runs.order) == sorted(owner for owner, _ in works)
    assert runs.most <= most
