"""Every timer of a request, in virtual time: which events renew it, which do not, and which pass."""

import asyncio
from collections.abc import Callable

import pytest

from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from tests.proxy.kit.deadline_outcomes import AGES, TOTAL, attempt, cancelling, deadline_of, passes, under
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.support.looped import looped


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_the_total_passes_where_no_phase_began(clock: Deadlines) -> None:
    await asyncio.sleep(AGES)


@pytest.mark.parametrize("phase", [Phase.FIRST_EVENT, Phase.IDLE])
def test_a_phase_passes_after_its_limit_of_silence(phase: Phase) -> None:
    async def work(clock: Deadlines) -> None:
        await asyncio.sleep(10)
        clock.enter(phase, 60.0)
        await asyncio.sleep(AGES)

    assert deadline_of(work) == (phase, 60.0, 70.0)


@looped("limit", [0.5, 60.0, 120.0])
def test_a_later_phase_replaces_the_earlier_one(limit: float) -> None:
    async def work(clock: Deadlines) -> None:
        clock.enter(Phase.FIRST_EVENT, 60.0)
        await asyncio.sleep(59)
        clock.enter(Phase.IDLE, limit)
        await asyncio.sleep(AGES)

    assert deadline_of(work) == (Phase.IDLE, limit, 59.0 + limit)


@in_virtual_time
async def test_a_phase_may_begin_before_the_block() -> None:
    clock = Deadlines(TOTAL)
    clock.enter(Phase.IDLE, 5.0)
    with pytest.raises(DeadlinePassed), clock:
        await asyncio.sleep(AGES)


@passes(Phase.IDLE, 120.0, 100 * 119 + 120)
async def test_signs_of_life_renew_a_phase_for_ever(clock: Deadlines) -> None:
    clock.commit(120.0, AGES, AGES)
    for _ in range(100):
        await asyncio.sleep(119)
        clock.touch()
    await asyncio.sleep(AGES)


@passes(Phase.IDLE, 120.0, 100 * 119 + 120)
async def test_the_time_of_the_last_content_may_be_set_without_a_call(clock: Deadlines) -> None:
    clock.commit(120.0, 600.0, AGES)
    for _ in range(100):
        await asyncio.sleep(119)
        clock.content_at = asyncio.get_running_loop().time()
    await asyncio.sleep(AGES)


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_signs_of_life_never_renew_the_total(clock: Deadlines) -> None:
    clock.enter(Phase.IDLE, 120.0)
    while True:
        await asyncio.sleep(7)
        clock.touch()


@pytest.mark.parametrize("before", [0, 599])
def test_after_the_commit_a_stream_has_a_limit_of_its_own(before: float) -> None:
    async def work(clock: Deadlines) -> None:
        await asyncio.sleep(before)
        clock.commit(120.0, AGES, 3600.0)
        while True:
            await asyncio.sleep(7)
            clock.advance()

    assert deadline_of(work) == (Phase.STREAM, 3600.0, before + 3600.0)


@passes(Phase.PROGRESS, 600.0, 10_600.0)
async def test_pieces_without_content_are_a_life_but_no_progress(clock: Deadlines) -> None:
    clock.commit(120.0, 600.0, AGES)
    for _ in range(100):
        await asyncio.sleep(100)
        clock.advance()
    while True:
        await asyncio.sleep(100)
        clock.touch()


@passes(Phase.PROGRESS, 2.0, 2.0)
async def test_a_limit_of_progress_below_that_of_silence_is_kept_from_the_begin(clock: Deadlines) -> None:
    clock.enter(Phase.FIRST_EVENT, 60.0)
    clock.commit(5.0, 2.0, AGES)
    while True:
        await asyncio.sleep(0.5)
        clock.touch()


@passes(Phase.PROGRESS, 30.0, 530.0)
async def test_time_in_which_the_client_is_waited_for_is_no_want_of_content_after_pings_either(
    clock: Deadlines,
) -> None:
    clock.commit(20.0, 30.0, AGES)
    for _ in range(5):
        clock.pause()
        await asyncio.sleep(50)
        clock.pause()
        await asyncio.sleep(50)
        clock.touch()
    while True:
        await asyncio.sleep(10)
        clock.touch()


@passes(Phase.IDLE, 120.0, 10_220.0)
async def test_time_in_which_the_upstream_is_not_waited_for_does_not_count(clock: Deadlines) -> None:
    clock.commit(120.0, AGES, AGES)
    await asyncio.sleep(100)
    for _ in range(200):
        clock.pause()
        await asyncio.sleep(50)
    clock.touch()
    await asyncio.sleep(AGES)


@passes(Phase.CLIENT, 60.0, 300.0)
async def test_a_client_that_reads_nothing_for_a_minute_is_given_up_at_the_timer_s_next_look(clock: Deadlines) -> None:
    clock.commit(300.0, AGES, AGES)
    await asyncio.sleep(70)
    clock.pause()
    await asyncio.sleep(AGES)


@passes(Phase.PROGRESS, 30.0, 530.0)
async def test_a_client_that_reads_slowly_is_no_want_of_content(clock: Deadlines) -> None:
    clock.commit(120.0, 30.0, AGES)
    for _ in range(10):
        clock.pause()
        await asyncio.sleep(50)
        clock.advance()
    await asyncio.sleep(AGES)


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_a_paused_clock_still_keeps_the_total(clock: Deadlines) -> None:
    clock.enter(Phase.FIRST_EVENT, 60.0)
    while True:
        clock.pause()
        await asyncio.sleep(50)


@passes(Phase.DRAIN, 0.0, 5.0)
async def test_a_deadline_can_be_made_to_pass_from_outside(clock: Deadlines) -> None:
    clock.enter(Phase.IDLE, 120.0)
    asyncio.get_running_loop().call_later(5, clock.expire, Phase.DRAIN)
    await asyncio.sleep(AGES)


@in_virtual_time
async def test_expiring_outside_the_block_does_nothing() -> None:
    clock = Deadlines(TOTAL)
    clock.expire(Phase.DRAIN)
    with clock:
        await asyncio.sleep(1)
    clock.expire(Phase.DRAIN)
    await asyncio.sleep(1)


@passes(Phase.DRAIN, 0.0, 0.0)
async def test_two_deadlines_of_one_moment_are_the_first(clock: Deadlines) -> None:
    # Both run in the same event loop iteration, before the task does.
    asyncio.get_running_loop().call_soon(clock.expire, Phase.DRAIN)
    clock.enter(Phase.IDLE, 0.0)
    await asyncio.sleep(AGES)


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_an_inner_timeout_of_the_same_moment_ends_as_the_deadline(clock: Deadlines) -> None:
    async with asyncio.timeout(TOTAL):
        await asyncio.sleep(AGES)


def test_the_error_says_the_phase_and_its_limit() -> None:
    assert str(DeadlinePassed(Phase.IDLE, 120.0)) == "('idle', 120.0)"


async def hang(clock: Deadlines) -> None:
    await asyncio.sleep(AGES)


Try = Callable[[Deadlines], None]
TRIES: dict[Phase, tuple[Try, float]] = {
    Phase.ATTEMPT: (lambda clock: None, 30.0),
    Phase.FIRST_EVENT: (lambda clock: clock.enter(Phase.FIRST_EVENT, 20.0), 20.0),
    Phase.IDLE: (lambda clock: clock.enter(Phase.IDLE, 10.0), 10.0),
}


async def run_attempt(clock: Deadlines, begin: Try) -> None:
    """Wait without end, within 30 seconds."""
    with attempt(clock, 30.0):
        begin(clock)
        await asyncio.sleep(AGES)


@looped(("phase", "begin", "limit"), [(phase, *rest) for phase, rest in TRIES.items()])
@in_virtual_time
async def test_the_limits_of_a_try_end_it_alone(phase: Phase, begin: Try, limit: float) -> None:
    now = asyncio.get_running_loop().time
    with Deadlines(TOTAL) as clock:
        for number in range(1, 4):
            with pytest.raises(DeadlinePassed) as caught:
                await run_attempt(clock, begin)
            assert (caught.value.phase, caught.value.limit, now()) == (phase, limit, number * limit)
            assert cancelling() == 0
        await asyncio.sleep(100)


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_the_total_ends_a_try_and_everything(clock: Deadlines) -> None:
    with attempt(clock, 700.0):
        await asyncio.sleep(AGES)


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_a_try_has_the_time_that_is_left(clock: Deadlines) -> None:
    await asyncio.sleep(590)
    assert clock.remaining == 10.0
    with attempt(clock, clock.remaining * 2):
        await asyncio.sleep(AGES)


@passes(Phase.DRAIN, 0.0, 5.0)
async def test_a_shutdown_ends_a_try_and_everything(clock: Deadlines) -> None:
    asyncio.get_running_loop().call_later(5, clock.expire, Phase.DRAIN)
    with attempt(clock, 30.0):
        await asyncio.sleep(AGES)


@in_virtual_time
async def test_an_error_within_a_try_is_not_hidden_and_its_limit_is_gone() -> None:
    def fail(clock: Deadlines) -> None:
        clock.enter(Phase.FIRST_EVENT, 20.0)
        raise LookupError("inside")

    with Deadlines(TOTAL) as clock:
        with pytest.raises(LookupError):
            await run_attempt(clock, fail)
        await asyncio.sleep(500)


@in_virtual_time
async def test_a_cancellation_from_elsewhere_beats_the_limit_of_a_try_of_the_same_moment() -> None:
    clock = Deadlines(TOTAL)
    task = asyncio.create_task(under(clock, lambda clock: run_attempt(clock, lambda clock: None)))
    await asyncio.sleep(1)
    clock.expire(Phase.ATTEMPT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_virtual_time
async def test_a_cancellation_from_elsewhere_passes_through() -> None:
    task = asyncio.create_task(under(Deadlines(TOTAL), hang))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_virtual_time
async def test_a_cancellation_beats_a_deadline_of_the_same_moment() -> None:
    clock = Deadlines(TOTAL)
    task = asyncio.create_task(under(clock, hang))
    await asyncio.sleep(1)
    clock.expire(Phase.DRAIN)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_virtual_time
async def test_after_a_deadline_the_task_goes_on_as_if_it_had_never_been_cancelled() -> None:
    with pytest.raises(DeadlinePassed):
        await under(Deadlines(10.0), hang)
    async with asyncio.timeout(5):
        await asyncio.sleep(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await asyncio.sleep(10)


@in_virtual_time
async def test_an_error_inside_is_not_hidden() -> None:
    async def work(clock: Deadlines) -> None:
        await asyncio.sleep(1)
        raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        await under(Deadlines(5.0), work)


@in_virtual_time
async def test_no_timer_outlives_the_block() -> None:
    with Deadlines(5.0) as clock:
        clock.enter(Phase.IDLE, 3.0)
        await asyncio.sleep(1)
    await asyncio.sleep(100)
    assert cancelling() == 0


@in_virtual_time
async def test_a_deadline_needs_a_task_to_stop() -> None:
    clock = Deadlines(5.0)
    entered = asyncio.get_running_loop().create_future()

    def enter() -> None:
        with pytest.raises(RuntimeError, match="running task"):
            clock.__enter__()
        entered.set_result(None)

    asyncio.get_running_loop().call_soon(enter)
    await entered
