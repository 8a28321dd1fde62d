"""The queue in event loop iterations that a test drives: which request starts when, how long the queue may be, and
when no request has to wait in it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from proxy.overload.start_queue import HEADROOM, StartQueue, StartQueueRules
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.support.looped import looped

RULES = StartQueueRules(2, 2, least_length=4, crowd=0, longest_wait=0.3, least_rate=1e7)
"""Rules without a limit of the rate."""

LIMITED = replace(RULES, least_rate=1.0)


class LoopIterations:
    """An event loop's iterations, clock and CPU time, as a test sets them."""

    def __init__(self, rules: StartQueueRules = RULES) -> None:
        self.now = self.spent = 0.0
        self.wanted: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.line = StartQueue(rules, self, lambda: self.spent)
        self.begun: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, call: Callable[[], None], /) -> None:
        self.wanted.append(call)

    def call_later(self, seconds: float, call: Callable[[], None], /) -> None:
        self.later.append((self.now + seconds, call))

    async def ask(self, count: int) -> None:
        for _ in range(count):
            self.tasks.append(asyncio.create_task(self._ask(len(self.tasks))))
        await self.settle()

    async def _ask(self, number: int) -> None:
        if not self.line.may_start():
            await self.line.wait()
        self.begun.append(number)

    async def turn(self) -> None:
        """Run an iteration of one microsecond, with all calls that were scheduled before it."""
        self.now += 1e-6
        due = [call for when, call in self.later if when <= self.now]
        self.later = [each for each in self.later if each[0] > self.now]
        wanted, self.wanted[:] = self.wanted[:], []
        for call in (*wanted, *due):
            call()
        await self.settle()

    def too_long(self) -> bool:
        return self.line.too_long

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, with an iteration whenever a call is due."""
        until = self.now + seconds
        while self.wanted or min((when for when, _ in self.later), default=until) < until:
            if not self.wanted:
                self.now = min(when for when, _ in self.later)
            await self.turn()
        self.now = until

    def leave(self) -> None:
        """Cancel all that wait."""
        for task in self.tasks:
            task.cancel()

    async def settle(self) -> None:
        """Let all tasks run until they wait."""
        for _ in range(3):
            await asyncio.sleep(0)

    def tick(self, after: float = 0.1, spent: float = 0.1) -> None:
        """Tick after `after` seconds, during which the loop's thread had a core for `spent` seconds."""
        self.now += after
        self.spent += spent
        self.line.tick()


@in_virtual_time
async def test_so_many_begin_in_each_turn_in_their_order() -> None:
    turns = LoopIterations()
    await turns.ask(5)
    assert turns.begun == [0, 1]
    assert len(turns.wanted) == 1
    await turns.turn()
    assert turns.begun == [0, 1, 2, 3]
    await turns.ask(1)
    assert turns.begun == [0, 1, 2, 3]
    await turns.turn()
    assert turns.begun == [0, 1, 2, 3, 4, 5]
    assert turns.wanted == [], "an idle loop is left alone"
    await turns.ask(1)
    await turns.turn()
    assert turns.begun == list(range(7))


@in_virtual_time
async def test_more_begin_in_a_turn_while_few_wait() -> None:
    turns = LoopIterations(replace(RULES, at_once=6))
    await turns.ask(6 + 7)
    assert len(turns.begun) == 6
    await turns.turn()
    assert len(turns.begun) == 8, "a crowd"
    await turns.turn()
    assert len(turns.begun) == 13, "no crowd is left"
    await turns.ask(1)
    assert len(turns.begun) == 14


@in_virtual_time
async def test_whoever_leaves_takes_nobody_s_turn() -> None:
    turns = LoopIterations()
    await turns.ask(6)
    for number in (2, 4):
        turns.tasks[number].cancel()
    await turns.settle()
    await turns.turn()
    assert turns.begun == [0, 1, 3, 5]


@in_virtual_time
async def test_it_is_as_long_as_what_began_of_late_allows() -> None:
    turns = LoopIterations()
    turns.tick()
    await turns.ask(100)
    assert not turns.too_long(), "nobody knows the pace yet"
    while len(turns.begun) < 100:
        await turns.turn()
    assert len(turns.begun) == 100
    await turns.ask(40)
    # 100 began in a tenth of a second, so 300 wait for 0.3 s.
    turns.tick()
    assert not turns.too_long()
    await turns.ask(259)
    assert not turns.too_long()
    await turns.ask(1)
    assert turns.too_long()
    turns.leave()


@in_virtual_time
async def test_those_who_are_coming_count() -> None:
    turns = LoopIterations()
    turns.tick()
    await turns.ask(5)
    turns.tick(after=100.0)
    assert not turns.too_long()
    turns.line.coming += 1
    assert turns.too_long(), "three wait, one is coming, and there are always four places"
    turns.leave()


@in_virtual_time
async def test_a_crowd_that_comes_at_once_may_all_join_and_what_comes_after_it_may_not() -> None:
    turns = LoopIterations(replace(RULES, crowd=50))
    turns.tick()
    await turns.ask(42)
    turns.tick(after=100.0)
    assert not turns.too_long()
    turns.line.coming = 9
    assert not turns.too_long()
    turns.line.coming = 10
    assert turns.too_long()
    turns.line.coming = 0
    await turns.ask(10)
    assert turns.too_long()
    while len(turns.begun) < 52:
        await turns.turn()
    turns.tick()
    turns.tick()
    await turns.ask(49)
    turns.tick(after=100.0)
    assert not turns.too_long(), "another crowd"
    turns.leave()


@in_virtual_time
async def test_a_pace_is_forgotten_when_the_crowd_is_gone() -> None:
    turns = LoopIterations()
    turns.tick()
    await turns.ask(6)
    turns.tick(after=100.0)
    told = [turns.too_long()]
    for _ in range(3):
        await turns.turn()
    turns.tick()
    turns.tick()
    await turns.ask(60)
    assert [*told, turns.too_long()] == [True, False]
    turns.leave()


@in_virtual_time
async def test_under_overload_no_more_start_than_the_loop_can_serve() -> None:
    turns = LoopIterations(LIMITED)
    await turns.ask(102)
    for _ in range(10):
        await turns.turn()
    before = len(turns.begun)
    # 22 began in a tenth of a second, half of them at the cost of later responses.
    turns.tick()
    for _ in range(20):
        await turns.pass_time(0.01)
    # In addition, the credit saved before that: at most the requests that two iterations may start.
    allowed = int(HEADROOM * 0.2 * 110)
    assert allowed <= len(turns.begun) - before <= allowed + 2 * LIMITED.per_turn
    assert turns.wanted == [], "the loop is left alone until the next one may start"
    turns.leave()


@in_virtual_time
async def test_the_rate_grows_to_what_the_loop_has_cpu_time_for() -> None:
    turns = LoopIterations(LIMITED)
    await turns.ask(2000)
    turns.tick()
    begun = []
    for _ in range(60):
        before = len(turns.begun)
        await turns.pass_time(0.1)
        begun.append(len(turns.begun) - before)
        # A request costs 5 ms of CPU time: 20 can be served within a tick.
        turns.tick(after=0.0, spent=begun[-1] * 0.005)
    assert begun[0] < 5
    assert 20 <= begun[-1] <= 20 * HEADROOM + LIMITED.per_turn
    turns.leave()


@in_virtual_time
async def test_a_crowd_that_comes_at_once_starts_without_a_limit_of_the_rate() -> None:
    turns = LoopIterations(replace(LIMITED, crowd=50))
    await turns.ask(40)
    turns.tick()
    for _ in range(20):
        await turns.turn()
    assert len(turns.begun) == 40


@in_virtual_time
async def test_a_rate_is_forgotten_when_the_crowd_is_gone() -> None:
    turns = LoopIterations(LIMITED)
    await turns.ask(6)
    turns.tick()
    while len(turns.begun) < 6:
        await turns.pass_time(1.0)
    turns.tick()
    await turns.ask(20)
    for _ in range(10):
        await turns.turn()
    assert len(turns.begun) == 26


@looped("seed", range(3))
def test_everybody_begins_once_in_a_real_loop(seed: int) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        line, begun = StartQueue(replace(LIMITED, least_rate=1000.0), loop), []

        async def ask(number: int) -> None:
            await asyncio.sleep(number % (seed + 1) * 0.01)
            if not line.may_start():
                await line.wait()
            begun.append(number)
            if number % 10 == 0:
                line.tick()

        await asyncio.gather(*(ask(number) for number in range(50)))
        assert sorted(begun) == list(range(50))

    asyncio.run(main())


@given(st.lists(st.one_of(st.integers(1, 9), st.just(0), st.just(-1)), max_size=40))
@in_virtual_time
async def test_no_turn_begins_more_than_its_share_and_none_is_wasted(steps: list[int]) -> None:
    turns = LoopIterations()
    for step in steps:
        before, waiting = len(turns.begun), len(turns.tasks) - len(turns.begun)
        if step > 0:
            await turns.ask(step)
            assert turns.begun == list(range(len(turns.begun)))
            assert len(turns.begun) - before <= RULES.at_once
        elif step == 0:
            await turns.turn()
            assert len(turns.begun) - before == min(RULES.per_turn, waiting)
        else:
            turns.tick()
    while len(turns.begun) < len(turns.tasks):
        await turns.turn()
