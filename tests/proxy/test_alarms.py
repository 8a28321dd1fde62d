"""Alarms ring in order and in time, whatever is set and dropped, and those that are dropped take no memory."""

import asyncio
from collections.abc import Sequence
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from proxy.alarms import PRUNED_FROM, Alarms, alarms
from tests.proxy.kit.virtual_time import in_virtual_time, run

Step = tuple[float, float, bool]


def rung(steps: Sequence[Step]) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Alarms that are set at a time, for so many seconds later, some of which are dropped half way: which rang when,
    and which should have."""
    heard: list[tuple[int, float]] = []
    due: list[tuple[int, float]] = []

    async def main() -> None:
        loop, kept = asyncio.get_running_loop(), Alarms(asyncio.get_running_loop())

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
    heard, due = rung(steps)
    assert sorted(heard) == sorted(due)
    assert [at for _, at in heard] == sorted(at for _, at in due)


@in_virtual_time
async def test_an_alarm_may_set_another_before_those_that_wait() -> None:
    heard: list[float] = []
    loop, kept = asyncio.get_running_loop(), alarms()

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

    loop, kept = asyncio.get_running_loop(), alarms()
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    kept.set(1.0, fail)
    kept.set(1.0, lambda: heard.append(loop.time()))
    await asyncio.sleep(2.0)
    assert heard == [1.0]
    assert [str(error) for error in told] == ["a bug"]


class Request:
    """Something that an alarm calls."""

    def end(self) -> None:
        raise AssertionError("dropped")


def test_dropped_alarms_do_not_pile_up_and_keep_nothing_alive() -> None:
    async def main() -> int:
        kept, most = Alarms(asyncio.get_running_loop()), 0
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
    async def own() -> Alarms:
        assert alarms() is alarms()
        return alarms()

    assert run(own()) is not run(own())
