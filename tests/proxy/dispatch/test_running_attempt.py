"""The deadlines of attempts, in virtual time, and the records of attempts."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from providers.failure import Failure, FailureKind, UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deadlines import DeadlinePassed, Phase
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.concurrency_limit import Limited
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import GatewayError
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.dispatch_rig import (
    OK,
    TABLE,
    TARGETS,
    Behaviour,
    Rig,
    fails,
    hangs,
    outcome_of,
    outcomes,
    refuses,
    says,
)
from tests.proxy.kit.mark_streams import Body
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

# Time ----------------------------------------------------------------------------------------------------------------


def test_while_there_is_another_a_target_gets_its_share_of_the_deadline() -> None:
    rig = Rig({"a": [hangs()], "b": [hangs()]})
    with pytest.raises(DeadlinePassed) as caught:
        rig.whole(total=100.0)
    assert (caught.value.phase, rig.time) == (Phase.TOTAL, 100.0)
    assert rig.asked == [("a", 0.0), ("b", 60.025)]
    assert outcomes(rig) == [("a", "timeout"), ("b", "timeout")]


def test_a_stream_that_does_not_begin_is_sought_elsewhere_after_the_first_event_limit() -> None:
    rig = Rig({"a": [hangs(b":")], "b": [OK]})
    assert (rig.streamed(), rig.asked) == ("ok", [("a", 0.0), ("b", 60.025)])


def test_what_is_left_of_the_deadline_must_be_worth_a_try_and_a_short_one_leaves_room() -> None:
    rig = Rig({"a": [refuses("server", 500, 98.5), OK]})
    assert rig.fails(lambda: rig.whole(total=100.0)).kind is FailureKind.SERVER
    assert rig.order == ["a"]
    rig = Rig({"a": [refuses("server", 500, 59.0)], "b": [OK]})
    assert rig.whole(total=100.0) == "ok"
    rig = Rig({"a": [fails(FailureKind.CONNECT)], "b": [OK]})
    assert rig.whole(total=0.5) == "ok"


def test_the_total_ends_the_wait_between_tries() -> None:
    rig = Rig({"a": [refuses("rate_limited 9", 429), OK]})
    assert rig.fails(lambda: rig.whole(total=9.2)).kind is FailureKind.RATE_LIMITED
    assert rig.time == 0.0


# Records -------------------------------------------------------------------------------------------------------------


def ejecting(failures: int = 1) -> DeploymentRules:
    """Return rules by which `failures` failures open the circuit."""
    return DeploymentRules(HealthRules(failures=failures, jitter=0.0))


def test_a_failing_deployment_is_left_alone_and_asked_first_again_when_it_is_well() -> None:
    rig = Rig({"a": [refuses("server"), OK], "b": [OK]}, ejecting())

    async def main() -> None:
        dispatcher = rig.dispatcher()
        for pause in (1.0, 5.0, 20.0, 0.0):
            assert await outcome_of(dispatcher, rig.job()) == "ok"
            await asyncio.sleep(pause)

    run(main())
    assert rig.order == ["a", "b", "b", "a", "a"]


def test_when_nobody_may_be_asked_that_is_said_at_once_with_when_to_come_again() -> None:
    rig = Rig({"a": [refuses("server")], "b": [refuses("server")]}, ejecting())

    async def main() -> GatewayError:
        dispatcher = rig.dispatcher()
        for _ in range(2):
            assert await outcome_of(dispatcher, rig.job()) == "server"
        job = rig.job()
        with pytest.raises(GatewayError) as caught, job.deadlines:
            await dispatcher.whole(job)
        assert rig.state() == {"a": 2.0, "b": 2.0}
        return caught.value

    facts = run(main()).facts
    assert (facts.status, facts.code, facts.headers) == (503, "no_healthy_deployment", {"retry-after": "1"})


def test_when_all_were_told_to_wait_the_client_is_too() -> None:
    rig = Rig({"a": [refuses("rate_limited 30", 429)]})

    async def main() -> GatewayError:
        dispatcher = rig.dispatcher()
        assert await outcome_of(dispatcher, rig.job()) == "rate_limited"
        await asyncio.sleep(4.5)
        job = rig.job()
        with pytest.raises(GatewayError) as caught, job.deadlines:
            await dispatcher.whole(job)
        return caught.value

    facts = run(main()).facts
    assert (facts.status, facts.code, facts.headers) == (429, "rate_limit_exceeded", {"retry-after": "26"})


@pytest.mark.parametrize(("impatient", "counts"), [(True, 0.0), (False, 2.0)])
def test_a_client_without_patience_says_nothing_of_a_deployment(impatient: bool, counts: float) -> None:
    rig = Rig({"a": [hangs()]}, ejecting())
    with pytest.raises(DeadlinePassed):
        rig.whole(total=20.0, hurried=impatient)
    assert (outcomes(rig), rig.state()) == ([("a", "timeout")], {"a": counts})


@looped("total", [20.0, 50.0, 599.0])
def test_nor_does_one_whose_patience_is_long_and_still_less_than_the_operator_s(total: float) -> None:
    rig = Rig({"a": [hangs()]}, ejecting())
    with pytest.raises(DeadlinePassed):
        rig.whole(total=total, hurried=True)
    assert rig.state() == {"a": 0.0}


def test_a_share_of_a_client_s_patience_turns_to_another_and_speaks_against_nobody() -> None:
    rig = Rig({"a": [hangs()], "b": [OK]}, ejecting())
    assert rig.whole(total=20.0, hurried=True) == "ok"
    assert (outcomes(rig), rig.state()["a"]) == ([("a", "timeout"), ("b", "ok")], 0.0)


@pytest.mark.parametrize("leaves", [asyncio.CancelledError, ConnectionResetError])
def test_a_client_that_leaves_ends_the_attempt_and_is_nobodys_fault(leaves: type[BaseException]) -> None:
    rig = Rig({"a": [lambda: Body(b"+a", 100.0, b"")], "b": [OK]}, ejecting())

    async def read(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> None:
        async with await dispatcher.streamed(job):
            raise leaves

    with pytest.raises(leaves):
        rig.run(read)
    assert (rig.order, outcomes(rig), rig.state()["a"]) == (["a"], [("a", "cancelled")], 0.0)


@pytest.mark.parametrize("leaves", [asyncio.CancelledError, ConnectionResetError])
def test_a_client_that_leaves_with_its_whole_answer_says_nothing_of_the_deployment(leaves: type[BaseException]) -> None:
    rig = Rig({"a": [OK]}, ejecting(2))

    async def read(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> None:
        health = dispatcher.deployments.breakers.of(TARGETS["a"])
        health.begin(0.0, AnswerKind.STREAM).failed(0.0, Failure(FailureKind.SERVER, "before"))
        try:
            async with await dispatcher.streamed(job):
                job.record.finished = 1.0
                raise leaves
        finally:
            health.begin(2.0, AnswerKind.STREAM).failed(2.0, Failure(FailureKind.SERVER, "after"))

    with pytest.raises(leaves):
        rig.run(read)
    assert (outcomes(rig), rig.state()) == ([("a", "ok")], {"a": 0.0})


def test_a_client_that_leaves_between_two_tries_ends_them() -> None:
    rig = Rig({"a": [refuses("rate_limited 5", 429), OK]})

    async def main() -> None:
        job = rig.job()

        async def work() -> None:
            with job.deadlines:
                await rig.dispatcher().whole(job)

        task = asyncio.create_task(work())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.sleep(100)

    run(main())
    assert rig.order == ["a"]


def test_a_fault_of_ours_leaves_nothing_in_flight() -> None:
    rig = Rig({"a": [OK]})

    async def read(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> None:
        async with await dispatcher.streamed(job):
            raise LookupError("ours")

    with pytest.raises(LookupError):
        rig.run(read)
    assert rig.state() == {"a": 0.0}


def test_a_deployment_without_a_free_place_is_passed_over() -> None:
    rig = Rig({"narrow": [says("slow", 50.0)], "b": [OK]})

    async def main() -> tuple[str, str]:
        dispatcher = rig.dispatcher()

        first = asyncio.create_task(outcome_of(dispatcher, rig.job()))
        await asyncio.sleep(1)
        return await outcome_of(dispatcher, rig.job()), await first

    assert run(main()) == ("ok", "slow")
    assert [outcome for _, outcome in outcomes(rig)] == ["ok", "busy", "ok"]


def crowd(rig: Rig, count: int, tenants: Sequence[str] = ("",)) -> dict[str, Limited]:
    """Return the limits after `count` non-streaming requests at once, whose teams alternate."""

    async def main() -> dict[str, Limited]:
        dispatcher = rig.dispatcher()

        async def one(number: int) -> None:
            team = replace(ANYONE, name=tenants[number % len(tenants)]) if any(tenants) else ANYONE
            await outcome_of(dispatcher, replace(rig.job(), team=team))

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(one(number))
        return dict(dispatcher.deployments.limited(dispatcher.now()))

    return run(main())


def test_a_thousand_at_once_go_to_a_deployment_that_does_not_complain() -> None:
    rig = Rig({"a": [says("ok", 5.0)]})
    assert crowd(rig, 1000) == {}
    assert rig.asked == [("a", 0.0)] * 1000


@looped(
    ("behaviour", "why"),
    [
        (refuses("rate_limited 3", 429), "rate_limited"),
        (refuses("overloaded", 529), "overloaded"),
        (refuses("overloaded 3", 503), "overloaded"),
    ],
)
def test_the_first_that_is_told_of_too_much_teaches_a_limit(behaviour: Behaviour, why: str) -> None:
    rig = Rig({"never": [behaviour]})
    assert crowd(rig, 100) == {"v/m/never": Limited(90, f"learned after {why} 0 s ago", 0, 0)}
    assert rig.series("concurrency_limit") == {"v/m/never": 90.0}


@looped("behaviour", [refuses("overloaded", 503), refuses("server", 500), refuses("quota", 429)])
def test_other_failures_teach_no_limit(behaviour: Behaviour) -> None:
    assert crowd(Rig({"never": [behaviour]}), 100) == {}


def test_timeouts_teach_a_limit_where_others_go_well_meanwhile() -> None:
    busy = Rig({"never": [*[says("ok", 30.0)] * 50, hangs()]})
    (limited,) = crowd(busy, 100).values()
    assert limited.limit == 41  # 46 were in flight at the fifth timeout in a row
    assert limited.why.startswith("learned after timeout")
    assert crowd(Rig({"never": [hangs()]}), 100) == {}


def test_what_one_team_alone_is_told_while_others_are_served_teaches_nothing() -> None:
    served = [says("ok", 1.0)]
    rig = Rig({"never": [*(each for _ in range(50) for each in (*served, refuses("overloaded", 529, 2.0)))]})
    assert crowd(rig, 100, ("well", "odd")) == {}


def test_an_attempt_is_written_down_with_its_times_status_and_words() -> None:
    rig = Rig({"a": [refuses("server", 500, 3.0)], "b": [says("ok", 4.0)]})
    rig.whole()
    first, second = rig.record.attempts
    assert (first.status, first.message, first.finished - first.started) == (500, "a server", 3.0)
    assert (first.maybe_executed, second.maybe_executed) == (True, False)
    assert (second.status, second.outcome, second.finished - second.started) == (None, "ok", 4.0)
    assert rig.record.waited == pytest.approx(rig.time)


def test_what_came_in_an_answer_s_place_is_written_down_and_not_told() -> None:
    page = Failure(FailureKind.MALFORMED, "A page.", evidence="<html>")
    rig = Rig({"a": [lambda: page]})
    assert rig.fails(rig.whole).message == "A page."
    assert [attempt.message for attempt in rig.record.attempts] == ["A page. It began: <html>"]


def test_a_new_table_forgets_what_it_does_not_have() -> None:
    rig = Rig({"a": [refuses("server")]}, ejecting())

    async def main() -> None:
        dispatcher = rig.dispatcher()
        assert await outcome_of(dispatcher, rig.job()) == "server"
        assert [dispatcher.load.turn("v/m") for _ in range(2)] == [0, 1]
        dispatcher.keep(TABLE)
        assert rig.state() == {"a": 2.0}
        assert dispatcher.load.turn("v/m") == 2
        dispatcher.keep(snapshot("vendors: {v: {profile: openai, api_key: k}}\nmodels: {v/other: {}}"))
        assert rig.state() == {}
        assert dispatcher.load.turn("v/m") == 0

    run(main())


def test_targets_of_a_plan_are_needed() -> None:
    with pytest.raises(RuntimeError, match="v/m"):
        Rig({}).whole()


def test_failures_that_the_mock_was_asked_for_say_nothing_of_it() -> None:
    rig = Rig({"a": [OK]}, ejecting())
    mock = snapshot("vendors: {mock: {}}\nmodels: {mock/error-500: {retries: {attempts: 1}}}").models["mock/error-500"]

    async def main() -> None:
        dispatcher = rig.dispatcher()
        for _ in range(3):
            job = replace(rig.job(), plan=Plan("mock/error-500", "mock/error-500", mock.targets, False, ()))
            with pytest.raises(UpstreamError) as caught, job.deadlines:
                await dispatcher.whole(job)
            assert caught.value.failure.status == 500

    run(main())
