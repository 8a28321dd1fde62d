"""Owners of background tasks, in virtual time: no task outlives its block or its owner, however it ends."""

import asyncio
import gc
from dataclasses import dataclass, field

import pytest

from proxy.background_tasks import SharedTask, StrayTasks, Tasks, run_with_timeout
from tests.proxy.kit.virtual_time import in_virtual_time, run


@dataclass
class Work:
    """The work of tasks: when each ended, and how."""

    ends: list[tuple[str, float, str]] = field(default_factory=list)

    async def takes(self, name: str, seconds: float, error: Exception | None = None) -> str:
        """Run for `seconds`, then return the name or raise; end slowly on cancellation."""
        loop = asyncio.get_running_loop()
        how = "cancelled"
        try:
            await asyncio.sleep(seconds)
            how = "done"
            if error is not None:
                how = "failed"
                raise error
            return name
        finally:
            if how == "cancelled":
                await asyncio.sleep(1)
            self.ends.append((name, loop.time(), how))

    async def started(self, name: str, seconds: float, error: Exception | None = None) -> None:
        """Run `takes` without a result."""
        await self.takes(name, seconds, error)


def no_other_task() -> bool:
    """Return whether no other task is left."""
    return len(asyncio.all_tasks()) == 1


def test_results_come_in_the_order_of_the_works_not_of_their_ends() -> None:
    async def main() -> list[str]:
        work = Work()
        async with Tasks() as tasks:
            return await tasks.all([work.takes("slow", 3), work.takes("quick", 1), work.takes("quicker", 0)])

    assert run(main()) == ["slow", "quick", "quicker"]


@in_virtual_time
async def test_the_first_failure_is_raised_at_once_and_the_others_are_cancelled_and_waited_for() -> None:
    work = Work()
    with pytest.raises(LookupError, match="broken"):
        async with Tasks() as tasks:
            await tasks.all(
                [work.takes("slow", 9), work.takes("bad", 2, LookupError("broken")), work.takes("quick", 1)]
            )
    assert no_other_task()
    assert work.ends == [("quick", 1.0, "done"), ("bad", 2.0, "failed"), ("slow", 3.0, "cancelled")]


def test_of_failures_at_the_same_time_one_is_told_and_none_complains(recwarn: pytest.WarningsRecorder) -> None:
    work, complaints = Work(), list[object]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        with pytest.raises(LookupError, match="one"):
            async with Tasks() as tasks:
                await tasks.all([work.takes("a", 1, LookupError("one")), work.takes("b", 1, LookupError("two"))])

    run(main())
    gc.collect()
    assert complaints == []
    assert list(recwarn) == []


@in_virtual_time
async def test_leaving_cancels_what_still_runs_and_waits_for_its_end() -> None:
    work = Work()
    async with Tasks() as tasks:
        tasks.start(work.started("long", 60))
        tasks.start(work.started("short", 2))
        await asyncio.sleep(5)
    assert no_other_task()
    assert work.ends == [("short", 2.0, "done"), ("long", 6.0, "cancelled")]


@in_virtual_time
async def test_leaving_by_an_error_does_so_too_and_the_error_goes_on() -> None:
    work = Work()

    async def starter() -> None:
        async with Tasks() as tasks:
            tasks.start(work.started("long", 60))
            await asyncio.sleep(1)
            raise KeyError("of the starter")

    with pytest.raises(KeyError):
        await starter()
    assert no_other_task()
    assert work.ends == [("long", 2.0, "cancelled")]


@in_virtual_time
async def test_a_starter_that_is_cancelled_takes_its_tasks_with_it() -> None:
    work = Work()

    async def starter() -> None:
        async with Tasks() as tasks:
            await tasks.all([work.takes("one", 60), work.takes("two", 60)])

    task = asyncio.create_task(starter())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert no_other_task()
    assert work.ends == [("one", 2.0, "cancelled"), ("two", 2.0, "cancelled")]


def test_what_a_started_task_raised_is_the_starter_s_to_look_at() -> None:
    work, complaints = Work(), list[object]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with Tasks() as tasks:
            tasks.start(work.started("bad", 1, LookupError("unseen")))
            await asyncio.sleep(2)

    run(main())
    gc.collect()
    assert complaints == []
    assert work.ends == [("bad", 1.0, "failed")]


@in_virtual_time
async def test_a_block_without_tasks_is_left_at_once() -> None:
    async with Tasks():
        pass
    assert asyncio.get_running_loop().time() == 0.0


# Work that several tasks wait for -------------------------------------------------------------------------------------


@in_virtual_time
async def test_shared_work_runs_once_at_a_time_and_all_wait_for_the_same_run() -> None:
    work = Work()
    shared = SharedTask(lambda: work.started("run", 2))
    running = [shared.running]
    shared.start()
    await asyncio.sleep(1)
    running.append(shared.running)
    await asyncio.gather(*(shared.run() for _ in range(10)))
    running.append(shared.running)
    await shared.run()
    await shared.aclose()
    assert ([at for _, at, _ in work.ends], running) == ([2, 4], [False, True, False])


@in_virtual_time
async def test_a_waiter_that_is_cancelled_leaves_shared_work_running() -> None:
    work = Work()
    shared = SharedTask(lambda: work.started("run", 2))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await shared.run()
    assert shared.running
    await shared.run()
    assert work.ends == [("run", 2, "done")]


@in_virtual_time
async def test_every_waiter_is_told_how_shared_work_failed() -> None:
    work = Work()
    shared = SharedTask(lambda: work.started("run", 1, LookupError("broken")))
    told = await asyncio.gather(shared.run(), shared.run(), return_exceptions=True)
    assert [type(each) for each in told] == [LookupError, LookupError]


@in_virtual_time
async def test_closed_shared_work_has_ended() -> None:
    work = Work()
    shared = SharedTask(lambda: work.started("run", 5))
    await shared.aclose()
    shared.start()
    await asyncio.sleep(1)
    await shared.aclose()
    assert no_other_task()
    await shared.aclose()
    assert work.ends == [("run", 2, "cancelled")]


async def test_work_within_its_time_returns_and_work_that_hangs_is_cancelled_and_given_up() -> None:
    async def three() -> int:
        return 3

    held, cancelled = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        while not held.is_set():
            try:
                await held.wait()
            except asyncio.CancelledError:
                cancelled.set()

    assert await run_with_timeout(three(), 1.0, 1.0) == 3
    with pytest.raises(TimeoutError):
        await run_with_timeout(stubborn(), 0.001, 0.001)
    assert cancelled.is_set()
    held.set()
    await asyncio.sleep(0)


def test_a_stray_task_is_waited_for_as_long_as_is_said_and_kept_until_it_ends() -> None:
    async def main() -> None:
        tasks, work = StrayTasks(), Work()
        quick = tasks.start(work.started("quick", 1))
        assert await tasks.settled(quick, 5)
        slow = tasks.start(work.started("slow", 60))
        await asyncio.sleep(0)
        slow.cancel()
        assert not await tasks.settled(slow, 0.5)
        assert len(tasks) == 1
        assert await tasks.settled(slow, 5)
        await asyncio.sleep(0)
        assert len(tasks) == 0
        failing = tasks.start(work.started("failing", 1, ValueError("a fault")))
        with pytest.raises(ValueError, match="a fault"):
            await tasks.settled(failing, 5)
        assert work.ends == [("quick", 1.0, "done"), ("slow", 2.0, "cancelled"), ("failing", 3.0, "failed")]

    run(main())
