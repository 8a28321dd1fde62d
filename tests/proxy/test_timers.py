"""Timers ring in order and on time, whatever is set and dropped, and dropped timers take no memory."""

import asyncio
from collections.abc import Sequence
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from proxy.timers import PRUNED_FROM, Slot, Timers, TimerWheel, loop_alarms
from tests.proxy.kit.virtual_time import in_virtual_time, run

Step = tuple[float, float, bool]


def run_timers(steps: Sequence[Step]) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Run timers that are set at a time, for a number of seconds later, some of which are dropped half way. Return
    which rang when, and which should have rung when."""
    heard: list[tuple[int, float]] = []
    due: list[tuple[int, float]] = []

    async def main() -> None:
        loop, kept = asyncio.get_running_loop(), Timers(asyncio.get_running_loop())

        def begin(number: int, later: float, drops: bool) -> None:
            at = loop.time() + later
            alarm = kept.set(at, lambda: heard.append((number, loop.time())))
            if drops:
                loop.call_later(later / 2, kept.drop, alarm)
            else:
                due.append((number, at))

        for number, (start, later, drops) in enumerate(steps):
            loop.call_later(start, begin, number, later, drops and later > 0)
        await asyncio.sleep(100.0)
        assert len(kept) == 0

    run(main())
    return heard, due


STEPS = st.lists(st.tuples(*[st.integers(0, 20).map(float)] * 2, st.booleans()), max_size=40)


@given(STEPS)
def test_each_alarm_rings_at_its_time_unless_it_was_dropped(steps: list[Step]) -> None:
    heard, due = run_timers(steps)
    assert sorted(heard) == sorted(due)
    assert [at for _, at in heard] == sorted(at for _, at in due)


@in_virtual_time
async def test_an_alarm_may_set_another_before_those_that_wait() -> None:
    heard: list[float] = []
    loop, kept = asyncio.get_running_loop(), loop_alarms()

    def again() -> None:
        kept.set(5.0, lambda: heard.append(loop.time()))

    kept.set(1.0, again)
    kept.set(3.0, lambda: heard.append(loop.time()))
    await asyncio.sleep(10.0)
    assert heard == [3.0, 5.0]


@in_virtual_time
async def test_an_alarm_that_raises_leaves_the_others_ringing() -> None:
    heard: list[float] = []
    told: list[object] = []

    def fail() -> None:
        raise ValueError("a bug")

    loop, kept = asyncio.get_running_loop(), loop_alarms()
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    kept.set(1.0, fail)
    kept.set(1.0, lambda: heard.append(loop.time()))
    await asyncio.sleep(2.0)
    assert heard == [1.0]
    assert [str(error) for error in told] == ["a bug"]


class Request:
    """An object whose method a dropped alarm would call."""

    def end(self) -> None:
        raise AssertionError("dropped")


def test_dropped_alarms_do_not_pile_up_and_keep_nothing_alive() -> None:
    async def main() -> int:
        kept, most = Timers(asyncio.get_running_loop()), 0
        stays = kept.set(1e6, lambda: None)
        for _ in range(10_000):
            request = Request()
            gone = ref(request)
            kept.drop(kept.set(60.0, request.end))
            del request
            assert gone() is None
            most = max(most, len(kept))
        kept.drop(stays)
        assert len(kept) == 0
        return most

    assert run(main()) <= 2 * PRUNED_FROM + 2


def test_each_loop_has_its_own() -> None:
    async def own() -> Timers:
        assert loop_alarms() is loop_alarms()
        return loop_alarms()

    assert run(own()) is not run(own())


class NotingWatcher:
    """A watcher that notes when it was called, and may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.at: list[float] = []
        self.fails = fails

    def ring(self, now: float) -> None:
        self.at.append(now)
        if self.fails:
            raise ZeroDivisionError


@given(st.lists(st.tuples(st.floats(0, 50), st.booleans()), max_size=40), st.sampled_from([0.1, 2.0, 20.0]))
def test_a_wheel_calls_within_a_step_and_not_whom_it_dropped(watched: list[tuple[float, bool]], wait: float) -> None:
    async def main() -> None:
        kept, heard = Timers(asyncio.get_running_loop()), [NotingWatcher() for _ in watched]
        wheel = TimerWheel(kept)
        slots: list[Slot] = [
            wheel.set(later + wait, wait, each) for (later, _), each in zip(watched, heard, strict=True)
        ]
        for (_, drops), slot, each in zip(watched, slots, heard, strict=True):
            if drops:
                wheel.drop(slot, each)
                wheel.drop(slot, each)
        assert len(wheel) == sum(not drops for _, drops in watched)
        await asyncio.sleep(100.0)
        for (later, drops), each in zip(watched, heard, strict=True):
            assert len(each.at) == (not drops)
            assert all(-1e-6 <= at - later - wait <= wait / TimerWheel.STEPS + 1e-6 for at in each.at)
        assert (len(wheel), len(kept)) == (0, 0)

    run(main())


@in_virtual_time
async def test_all_of_a_step_have_one_alarm_which_the_next_ones_use_too() -> None:
    kept = Timers(asyncio.get_running_loop())
    wheel, heard = TimerWheel(kept), [NotingWatcher() for _ in range(100)]
    slots = [wheel.set(20.0 + number / 200, 20.0, each) for number, each in enumerate(heard)]
    assert (len(kept), len(wheel)) == (2, 100)
    for slot, each in zip(slots, heard, strict=True):
        wheel.drop(slot, each)
    assert (len(kept), len(wheel)) == (2, 0)
    wheel.set(20.0, 20.0, heard[0])
    assert (len(kept), len(wheel)) == (2, 1)
    await asyncio.sleep(40.0)
    assert (len(kept), len(wheel)) == (0, 0)
    assert [len(each.at) for each in heard] == [1] + [0] * 99


@in_virtual_time
async def test_a_watcher_that_fails_silences_no_other() -> None:
    failed: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failed.append(type(context["exception"])))
    wheel, heard = TimerWheel(loop_alarms()), [NotingWatcher(fails=number % 2 == 0) for number in range(10)]
    for each in heard:
        wheel.set(1.0, 1.0, each)
    await asyncio.sleep(2)
    assert [each.at for each in heard] == [[1.0]] * 10
    assert failed == [ZeroDivisionError] * 5
