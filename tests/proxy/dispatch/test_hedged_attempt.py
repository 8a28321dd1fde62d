"""Second attempts in virtual time: when one begins, whose content the client gets, and the records of both."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from providers.completion import Usage
from providers.failure import FailureKind, UpstreamError
from providers.target import Retries
from providers.unified_request import TextPrompt
from proxy.dispatch.single_attempt import Dispatcher
from proxy.hedging.hedge_rules import HedgeRules
from proxy.request_outcomes import AffinityOutcome, HedgeOutcome
from tests.proxy.kit.dispatch_rig import OK, TARGETS, Behaviour, fails, hangs, refuses, says
from tests.proxy.kit.hedge_rig import AFTER_ONE, DOLLAR, HedgeRig, Job, says_after
from tests.proxy.kit.mark_streams import CUT, Body
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

Way = Callable[[HedgeRig], str]
WAYS: list[Way] = [HedgeRig.whole, HedgeRig.streamed]

# Which attempt wins --------------------------------------------------------------------------------------------------

RACES: dict[str, tuple[dict[str, Behaviour], str, HedgeOutcome | None, float, list[tuple[str, str, bool, int]]]] = {
    "in time": ({"a": says_after(0.9, "a"), "b": OK}, "a", None, 0.9, [("a", "ok", False, 0)]),
    "the second answers first": (
        {"a": hangs(), "b": says_after(0.5, "b")},
        *("b", "won", 1.5),
        [("a", "superseded", False, 1), ("b", "ok", True, 2)],
    ),
    "the first answers first": (
        {"a": says_after(1.5, "a"), "b": says_after(0.6, "b")},
        *("a", "lost", 1.5),
        [("b", "superseded", True, 2), ("a", "ok", False, 1)],
    ),
    "the first fails while the second runs": (
        {"a": refuses("server", 500, 2.0), "b": says_after(5.0, "b")},
        *("b", "won", 6.0),
        [("a", "server", False, 1), ("b", "ok", True, 2)],
    ),
    "the second fails while the first runs": (
        {"a": says_after(4.0, "a"), "b": refuses("overloaded", 529, 1.0), "c": OK},
        *("a", "failed", 4.0),
        [("b", "overloaded", True, 2), ("a", "ok", False, 1)],
    ),
    "both fail, and the next target answers": (
        {"a": refuses("server", 500, 2.0), "b": refuses("overloaded", 529, 2.0), "c": OK},
        *("ok", "failed", 3.025),
        [("a", "server", False, 1), ("b", "overloaded", True, 2), ("c", "ok", False, 0)],
    ),
    "both fail in the other order": (
        {"a": refuses("server", 500, 3.0), "b": refuses("overloaded", 529, 1.0), "c": OK},
        *("ok", "failed", 3.025),
        [("b", "overloaded", True, 2), ("a", "server", False, 1), ("c", "ok", False, 0)],
    ),
    "the first fails before it is late": (
        {"a": refuses("server", 500, 0.5), "b": says_after(5.0, "b"), "c": OK},
        *("b", None, 5.525),
        [("a", "server", False, 0), ("b", "ok", False, 0)],
    ),
}


@looped("way", WAYS, ids=["whole", "streamed"])
@looped("race", RACES.values(), ids=RACES)
def test_the_first_content_is_handed_on(
    way: Way, race: tuple[dict[str, Behaviour], str, HedgeOutcome | None, float, list[tuple[str, str, bool, int]]]
) -> None:
    behaviours, text, outcome, seconds, attempts = race
    rig = HedgeRig({name: [behaviour] for name, behaviour in behaviours.items()})
    assert way(rig) == text
    assert (rig.record.hedge, rig.time, rig.attempts) == (outcome, seconds, attempts)
    assert (rig.record.called or "").rpartition("/")[2] == attempts[-1][0]
    assert len(rig.made[0].hedges.tasks) == 0


@looped("way", WAYS, ids=["whole", "streamed"])
def test_a_failure_for_good_ends_the_second_attempt_too(way: Way) -> None:
    rig = HedgeRig({"a": [refuses("invalid_request", 400, 2.0)], "b": [hangs()], "c": [OK]})
    assert rig.fails(lambda: way(rig)).kind is FailureKind.INVALID_REQUEST
    assert (rig.record.hedge, rig.time) == ("cancelled", 2.0)
    assert rig.attempts == [("b", "cancelled", True, 2), ("a", "invalid_request", False, 1)]


@looped("way", WAYS, ids=["whole", "streamed"])
def test_both_failures_count_as_attempts(way: Way) -> None:
    rig = HedgeRig({name: [refuses("server", 500, 2.0)] for name in ("a", "b", "c", "strict")})
    assert rig.fails(lambda: way(rig)).message == "c server"
    assert [name for name, _, _, _ in rig.attempts] == ["a", "b", "c"]


def test_the_loser_s_late_bytes_reach_nobody_and_its_body_is_not_read_on() -> None:
    late = Body(1.2, b"+late", b"+more", b"")
    rig = HedgeRig({"a": [lambda: late], "b": [says_after(0.1, "b")]})

    async def read(dispatcher: Dispatcher, job: Job) -> tuple[str, int]:
        async with await dispatcher.streamed(job) as (prepared, stream):
            await asyncio.sleep(5)
            return prepared.target.deployment, len(list(stream.first()))

    assert rig.run(read) == ("b", 1)
    assert (late.closed, late.left) == (1, 3)


def test_a_winner_that_breaks_after_its_first_content_is_not_replaced() -> None:
    rig = HedgeRig({"a": [hangs()], "b": [lambda: Body(b"+b", CUT)]})

    async def read(dispatcher: Dispatcher, job: Job) -> None:
        async with await dispatcher.streamed(job) as (_, stream):
            list(stream.first())
            await stream.wait()

    with pytest.raises(UpstreamError):
        rig.run(read)
    assert rig.attempts == [("a", "superseded", False, 1), ("b", "truncated", True, 2)]
    assert rig.order == ["a", "b"]


@looped("way", WAYS, ids=["whole", "streamed"])
def test_a_client_that_leaves_while_both_run_leaves_neither(way: Way) -> None:
    rig = HedgeRig({"a": [hangs()], "b": [hangs()]})

    async def leave(dispatcher: Dispatcher, job: Job) -> None:
        async def asked() -> None:
            if way is HedgeRig.whole:
                await dispatcher.whole(job)
            async with await dispatcher.streamed(job):
                pass

        task = asyncio.ensure_future(asked())
        await asyncio.sleep(1.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    rig.run(leave)
    assert rig.record.hedge == "cancelled"
    assert sorted(rig.attempts) == [("a", "cancelled", False, 1), ("b", "cancelled", True, 2)]
    assert len(rig.made[0].hedges.tasks) == 0


# Whether a second attempt begins -------------------------------------------------------------------------------------


def changed(**changes: object) -> Callable[[Job], Job]:
    """Return a change that gives the first deployment other settings."""

    def change(job: Job) -> Job:
        first, *others = job.plan.targets
        return replace(job, plan=replace(job.plan, targets=(replace(first, **changes), *others)))  # type: ignore[arg-type]  # of a Target

    return change


def two_prompts(job: Job) -> Job:
    request = replace(job.request, prompt=TextPrompt(("hi", "ho")))
    return replace(job, request=request)


@looped(
    "change",
    [changed(retries=Retries(3, "strict")), changed(retries=Retries(3, "off")), changed(retries=Retries(1, "safe"))],
)
def test_where_nothing_may_be_generated_twice_there_is_none(change: Callable[[Job], Job]) -> None:
    rig = HedgeRig({"a": [says_after(9.0, "a")], "b": [OK]}, change=change)
    assert (rig.streamed(), rig.order, rig.record.hedge) == ("a", ["a"], None)


@looped(
    ("behaviours", "outcome"),
    [
        ({"a": says_after(9.0, "a"), "picky": OK}, "refused_target"),
        ({"a": says_after(9.0, "a")}, None),
    ],
)
def test_without_another_deployment_that_can_honour_it_there_is_none(
    behaviours: dict[str, Behaviour], outcome: HedgeOutcome | None
) -> None:
    rig = HedgeRig({name: [each] for name, each in behaviours.items()})
    assert (rig.streamed(), rig.order, rig.record.hedge) == ("a", ["a"], outcome)


def test_a_deployment_without_a_free_slot_gets_none_and_one_after_it_does() -> None:
    narrow = HedgeRig({"a": [says_after(9.0, "a")], "narrow": [OK]})

    async def busy(dispatcher: Dispatcher, job: Job) -> str:
        held = dispatcher.deployments.queue(TARGETS["narrow"])
        assert held.take_free("other")
        try:
            async with await dispatcher.streamed(job) as (prepared, _):
                return prepared.target.deployment
        finally:
            held.release("other")

    assert (narrow.run(busy), narrow.order, narrow.record.hedge) == ("a", ["a"], "refused_busy")
    both = HedgeRig({"a": [hangs()], "narrow": [OK], "b": [OK]})
    assert (both.run(busy), both.order, both.record.hedge) == ("b", ["a", "b"], "won")


def test_a_deployment_that_was_busy_is_still_there_for_a_retry() -> None:
    rig = HedgeRig({"a": [refuses("server", 500, 3.0)], "narrow": [OK]})

    async def busy(dispatcher: Dispatcher, job: Job) -> str:
        held = dispatcher.deployments.queue(TARGETS["narrow"])
        assert held.take_free("other")
        asyncio.get_running_loop().call_at(2.0, held.release, "other")
        async with await dispatcher.streamed(job) as (prepared, _):
            return prepared.target.deployment

    assert (rig.run(busy), rig.order, rig.record.hedge) == ("narrow", ["a", "narrow"], "refused_busy")


def test_a_deployment_whose_circuit_is_open_gets_none() -> None:
    rig = HedgeRig({"a": [says_after(9.0, "a")], "b": [refuses("auth", 401)]})

    async def opened(dispatcher: Dispatcher, job: Job) -> None:
        alone = replace(
            job, plan=replace(job.plan, targets=job.plan.targets[1:]), record=replace(job.record, attempts=[])
        )
        with pytest.raises(UpstreamError):
            await dispatcher.whole(alone)
        async with await dispatcher.streamed(job):
            pass

    rig.run(opened)
    assert (rig.order, rig.record.hedge) == (["b", "a"], None)


def test_a_wait_for_a_slot_is_not_a_wait_for_content() -> None:
    rig = HedgeRig({"narrow": [says_after(0.9, "narrow")], "b": [OK]})

    async def busy(dispatcher: Dispatcher, job: Job) -> str:
        held = dispatcher.deployments.queue(TARGETS["narrow"])
        assert held.take_free("other")
        asyncio.get_running_loop().call_at(0.7, held.release, "other")
        async with await dispatcher.streamed(job) as (prepared, _):
            return prepared.target.deployment

    assert (rig.run(busy), rig.record.hedge) == ("narrow", None)
    assert rig.time == pytest.approx(1.6)


def test_a_response_that_is_not_streamed_has_begun_with_its_head() -> None:
    def begun() -> Body:
        body = Body(5.0, b"+a", b"")
        body.head = b"HTTP/1.1 200 OK\r\n"
        return body

    rig = HedgeRig({"a": [begun], "b": [OK]})
    assert (rig.whole(), rig.order, rig.record.hedge) == ("a", ["a"], None)
    rig = HedgeRig({"a": [begun], "b": [OK]})
    assert (rig.streamed(), rig.order, rig.record.hedge) == ("ok", ["a", "b"], "won")


class Spilled:
    """A placement whose first deployment is not the conversation's own."""

    number = 1

    def outcome(self, label: str) -> AffinityOutcome:
        return "spilled_load" if label.endswith("/a") else "kept"


def test_a_session_whose_deployment_is_merely_busy_has_none() -> None:
    rig = HedgeRig({"a": [says_after(9.0, "a")], "b": [OK]})
    rig.record.placed = Spilled()
    assert (rig.streamed(), rig.order, rig.record.hedge) == ("a", ["a"], None)
    rig = HedgeRig({"b": [says_after(9.0, "b")], "a": [OK]})
    rig.record.placed = Spilled()
    assert (rig.streamed(), rig.order, rig.record.hedge) == ("ok", ["b", "a"], "won")


# Bounds --------------------------------------------------------------------------------------------------------------


def many(rig: HedgeRig, count: int) -> list[HedgeOutcome | None]:
    """Return the hedge outcomes of `count` requests, one after the other."""

    async def main() -> list[HedgeOutcome | None]:
        dispatcher, found = rig.dispatcher(), list[HedgeOutcome | None]()
        for _ in range(count):
            job = rig.job()
            job = replace(job, record=replace(job.record, attempts=[], hedge=None))
            with job.deadlines:
                async with await dispatcher.streamed(job):
                    pass
            found.append(job.record.hedge)
        return found

    return run(main())


def test_a_share_of_the_requests_and_a_burst_may_have_one() -> None:
    rules = HedgeRules(times=None, seconds=1.0, share=0.25, burst=2)
    late = iter([True, True, True, *[False] * 7, True, True, True])
    rig = HedgeRig(
        {"a": [lambda: says_after(2.0 if next(late) else 0.1, "a")()], "b": [says_after(9.0, "b")], "c": [OK]},
        hedge=rules,
    )
    found = many(rig, 13)
    assert found == ["lost", "lost", "refused_share", *[None] * 7, "lost", "lost", "refused_share"]


def test_while_half_of_the_deployments_are_late_there_is_none() -> None:
    rig = HedgeRig({"a": [says_after(2.0, "a")], "b": [says_after(9.0, "b")]}, hedge=replace(AFTER_ONE, share=1.0))
    found = many(rig, 12)
    assert found[:3] == ["lost"] * 3
    assert set(found[3:]) == {"closed"}


def test_cancelled_calls_cost_no_more_than_their_hour_allows() -> None:
    rules = HedgeRules(times=None, seconds=1.0, share=1.0, usd_per_hour=3.0)
    late = iter([True, *[False] * 3] * 4)
    rig = HedgeRig(
        {"a": [lambda: says_after(2.0 if next(late) else 0.1, "a")()], "b": [says_after(9.0, "b")]},
        hedge=rules,
        price=DOLLAR,
    )
    found = many(rig, 16)
    assert [each for each in found if each] == ["lost", "lost", "lost", "refused_cap"]
    assert rig.spent == 3.0
    rig = HedgeRig({"a": [says_after(2.0, "a")], "b": [says_after(9.0, "b")]}, hedge=replace(rules, usd_per_hour=0.5))
    rig.price = DOLLAR
    assert many(rig, 1) == ["refused_cap"]
    assert rig.spent == 0.0


# Accounting ----------------------------------------------------------------------------------------------------------


def test_a_cancelled_call_is_booked_with_its_prompt_and_at_its_own_price() -> None:
    for behaviours in ({"a": [hangs()], "b": [says("b")]}, {"a": [says_after(1.5, "a")], "b": [hangs()]}):
        rig = HedgeRig(behaviours, price=DOLLAR)
        rig.streamed()
        ((usage, price),) = rig.record.unanswered
        assert (usage.completion_tokens, usage.estimated, price) == (0, True, DOLLAR)
        assert rig.spent == usage.prompt_tokens > 0


def unproven(job: Job) -> Job:
    targets = tuple(
        replace(target, max_output_tokens=40, profile=replace(target.profile, closing_ends_bill=False))
        for target in job.plan.targets
    )
    return replace(job, plan=replace(job.plan, targets=targets))


@looped("way", WAYS, ids=["whole", "streamed"])
def test_of_a_vendor_that_may_go_on_all_that_it_may_generate_is_booked(way: Way) -> None:
    rig = HedgeRig(
        {"a": [hangs()], "b": [says("b")]}, price=DOLLAR, change=unproven, hedge=replace(AFTER_ONE, usd_per_hour=99.0)
    )
    way(rig)
    ((usage, _),) = rig.record.unanswered
    assert usage == Usage(usage.prompt_tokens, 40, estimated=True)
    assert rig.spent == usage.prompt_tokens + 40


def test_a_call_that_was_not_sent_is_not_booked() -> None:
    rig = HedgeRig({"a": [says_after(1.5, "a")], "b": [fails(FailureKind.CONNECT, unsent=True)]}, price=DOLLAR)
    assert rig.streamed() == "a"
    assert (rig.record.unanswered, rig.spent, rig.record.hedge) == ((), 0.0, "failed")


# Health --------------------------------------------------------------------------------------------------------------


def test_a_loser_is_nobody_s_failure_and_its_wait_counts_for_the_learned_time() -> None:
    rig = HedgeRig({"a": [*[says_after(0.5, "a")] * 60, hangs()], "b": [OK]}, hedge=HedgeRules())
    found = many(rig, 61)
    assert found == [*[None] * 60, "won"]
    (dispatcher,) = rig.made
    breaker = dispatcher.deployments.breakers.of(TARGETS["a"])
    assert (breaker.in_flight, breaker.untroubled(1e6), rig.state()) == (0, True, {"a": 0, "b": 0})
    kept = breaker._kinds[0]
    assert kept.settled
    assert 0.5 < kept.tail < 0.75 < 1.5 * kept.tail


def test_before_fifty_responses_nothing_is_late() -> None:
    rig = HedgeRig({"a": [*[says_after(0.5, "a")] * 20, says_after(9.0, "a")], "b": [OK]}, hedge=HedgeRules())
    assert many(rig, 21) == [None] * 21
