"""The line in turns that a test takes: who begins when, how long it may be, and when nobody has to stand in it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.overload.start_queue import StartQueue, StartQueueRules
from tests.proxy.kit.virtual_time import in_virtual_time

RULES = StartQueueRules(per_turn=2, least_length=3, crowd=0, busy_lag=0.02, longest_wait=0.3)
LATE, PUNCTUAL = 0.05, 0.0


class Turns:
    """A loop's turns and clock as a test says they are."""

    def __init__(self, rules: StartQueueRules = RULES) -> None:
        self.now = 0.0
        self.wanted: list[Callable[[], None]] = []
        self.line = StartQueue(rules, lambda: self.now, self.wanted.append)
        self.begun: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, count: int) -> None:
        for _ in range(count):
            self.tasks.append(asyncio.create_task(self._ask(len(self.tasks))))
        await self.settle()

    async def _ask(self, number: int) -> None:
        await self.line.wait()
        self.begun.append(number)

    async def turn(self) -> None:
        wanted, self.wanted[:] = self.wanted[:], []
        for call in wanted:
            call()
        await self.settle()

    def too_long(self) -> bool:
        return self.line.too_long

    def busy(self) -> bool:
        return self.line.busy

    async def settle(self) -> None:
        """Let everybody do what they can."""
        for _ in range(3):
            await asyncio.sleep(0)

    def tick(self, lag: float, after: float = 0.1) -> None:
        """A tick after so many seconds."""
        self.now += after
        self.line.tick(lag)


@in_virtual_time
async def test_so_many_begin_in_each_turn_in_their_order() -> None:
    turns = Turns()
    await turns.ask(5)
    assert turns.begun == [0, 1]
    assert len(turns.wanted) == 1
    await turns.turn()
    assert turns.begun == [0, 1, 2, 3]
    await turns.ask(1)
    assert turns.begun == [0, 1, 2, 3]
    await turns.turn()
    assert turns.begun == [0, 1, 2, 3, 4, 5]
    await turns.turn()
    await turns.ask(2)
    assert turns.begun == list(range(8))
    await turns.turn()
    assert turns.wanted == [], "an idle loop is left alone"


@in_virtual_time
async def test_whoever_leaves_takes_nobody_s_turn() -> None:
    turns = Turns()
    await turns.ask(6)
    for number in (2, 4):
        turns.tasks[number].cancel()
    await turns.settle()
    await turns.turn()
    assert turns.begun == [0, 1, 3, 5]


@in_virtual_time
async def test_a_late_tick_makes_it_busy_and_a_punctual_one_ends_that_when_nobody_waits() -> None:
    turns = Turns()
    turns.tick(PUNCTUAL)
    assert not turns.busy()
    turns.tick(LATE)
    assert turns.busy()
    await turns.ask(3)
    turns.tick(PUNCTUAL)
    assert turns.busy()
    await turns.turn()
    turns.tick(PUNCTUAL)
    assert not turns.busy()


@in_virtual_time
async def test_it_is_as_long_as_what_began_of_late_allows() -> None:
    turns = Turns()
    turns.tick(LATE)
    await turns.ask(100)
    assert not turns.too_long(), "nobody knows the pace yet"
    for _ in range(49):
        await turns.turn()
    assert len(turns.begun) == 100
    await turns.ask(40)
    # 100 began in a tenth of a second, so 300 wait for 0.3 s.
    turns.tick(LATE)
    assert not turns.too_long()
    await turns.ask(259)
    assert not turns.too_long()
    await turns.ask(1)
    assert turns.too_long()
    for task in turns.tasks:
        task.cancel()


@in_virtual_time
async def test_those_who_are_coming_count() -> None:
    turns = Turns()
    turns.tick(LATE)
    await turns.ask(4)
    turns.tick(LATE, after=100.0)
    assert not turns.too_long()
    turns.line.coming += 1
    assert turns.too_long(), "two stand in line, one is coming, and there are always three places"
    for task in turns.tasks:
        task.cancel()


@in_virtual_time
async def test_a_crowd_that_comes_at_once_may_all_join_and_what_comes_after_it_may_not() -> None:
    turns = Turns(replace(RULES, crowd=50))
    turns.tick(LATE)
    await turns.ask(40)
    turns.tick(LATE, after=100.0)
    assert not turns.too_long()
    turns.line.coming = 9
    assert not turns.too_long()
    turns.line.coming = 10
    assert turns.too_long()
    turns.line.coming = 0
    await turns.ask(10)
    assert turns.too_long()
    while len(turns.begun) < 50:
        await turns.turn()
    turns.tick(PUNCTUAL)
    turns.tick(LATE)
    await turns.ask(49)
    turns.tick(LATE, after=100.0)
    assert not turns.too_long(), "another crowd"
    for task in turns.tasks:
        task.cancel()


@in_virtual_time
async def test_a_pace_is_forgotten_when_the_crowd_is_gone() -> None:
    turns = Turns()
    turns.tick(LATE)
    await turns.ask(6)
    turns.tick(LATE, after=100.0)
    told = [turns.too_long()]
    for _ in range(3):
        await turns.turn()
    turns.tick(PUNCTUAL)
    turns.tick(LATE)
    await turns.ask(60)
    assert [*told, turns.too_long()] == [True, False]
    for task in turns.tasks:
        task.cancel()


@pytest.mark.parametrize("seed", range(3))
def test_everybody_begins_once_in_a_real_loop(seed: int) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        line, begun = StartQueue(RULES, loop.time, loop.call_soon), []

        async def ask(number: int) -> None:
            await asyncio.sleep(number % (seed + 1) * 0.01)
            await line.wait()
            begun.append(number)

        await asyncio.gather(*(ask(number) for number in range(50)))
        assert sorted(begun) == list(range(50))

    asyncio.run(main())


@given(st.lists(st.one_of(st.integers(1, 9), st.just(0), st.just(-1)), max_size=40))
@in_virtual_time
async def test_no_turn_begins_more_than_its_share_and_none_is_wasted(steps: list[int]) -> None:
    turns = Turns()
    for step in steps:
        before, waiting = len(turns.begun), len(turns.tasks) - len(turns.begun)
        if step > 0:
            await turns.ask(step)
            assert turns.begun == list(range(len(turns.begun)))
        elif step == 0:
            await turns.turn()
            assert len(turns.begun) - before == min(RULES.per_turn, waiting)
        else:
            turns.tick(PUNCTUAL)
            assert turns.busy() == (waiting > 0)
    while len(turns.begun) < len(turns.tasks):
        await turns.turn()
