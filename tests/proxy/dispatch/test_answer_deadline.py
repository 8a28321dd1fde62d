"""The deadline for the start of a non-streaming response, in virtual time: when another deployment is tried instead,
and which deployment the failure counts against.
"""

from dataclasses import replace

import pytest

from providers.failure import FailureKind
from providers.target import Retries, Target
from providers.unified_request import UnifiedRequest
from proxy.deadlines import DeadlinePassed, Phase
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.dispatch.single_attempt import Dispatcher
from proxy.routing.request_plan import Plan
from tests.proxy.kit.dispatch_rig import OK, TARGETS, Rig, hangs, outcomes, says
from tests.proxy.kit.mark_streams import Body, often
from tests.support.looped import looped

EJECTING = DeploymentRules(HealthRules(failures=1, jitter=0.0))
"""One failure opens the circuit."""


def patient(name: str, answer: float | None = None, retries: Retries | None = None) -> Target:
    """Return a deployment whose non-streaming responses must begin within `answer` seconds."""
    target = TARGETS[name]
    return replace(target, timeouts=replace(target.timeouts, answer=answer), retries=retries or target.retries)


def response_text(rig: Rig, *targets: Target, total: float = 600.0, hurried: bool = False) -> str:
    async def asked(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> str:
        plan = Plan("v/m", "v/m", targets, False, ())
        return (await dispatcher.whole(replace(job, plan=plan)))[1].choices[0].text

    return rig.run(asked, total, hurried)


def test_a_whole_answer_that_does_not_begin_is_sought_elsewhere_after_two_minutes_or_the_operator_s() -> None:
    rig = Rig({"a": [hangs()], "b": [OK]})
    assert (rig.whole(), rig.asked) == ("ok", [("a", 0.0), ("b", 120.025)])
    rig = Rig({"a": [hangs()], "b": [OK]})
    assert (response_text(rig, patient("a", 3.0), patient("b")), rig.asked) == ("ok", [("a", 0.0), ("b", 3.025)])


def test_a_whole_answer_is_waited_for_to_the_end_of_the_deadline_where_no_other_target_is_left() -> None:
    assert Rig({"a": [says("late", 599.0)]}).whole() == "late"
    rig = Rig({"a": [hangs()], "b": [says("late", 470.0)]})
    assert (rig.whole(), rig.time) == ("late", 590.025)


def test_a_single_target_fails_after_what_the_operator_says() -> None:
    rig = Rig({"a": [hangs()]})
    failure = rig.fails(lambda: response_text(rig, patient("a", 3.0)))
    assert (failure.kind, failure.message) == (FailureKind.TIMEOUT, "The upstream did not begin to respond within 3 s.")
    assert (rig.time, outcomes(rig)) == (3.0, [("a", "timeout")])


@looped("retries", [Retries(1, "safe"), Retries(3, "strict"), Retries(3, "off")], ids=["once", "strict", "off"])
def test_nobody_is_hurried_for_a_try_that_may_not_follow(retries: Retries) -> None:
    rig = Rig({"a": [says("late", 599.0)], "b": [OK]})
    assert response_text(rig, patient("a", retries=retries), patient("b")) == "late"


def test_an_answer_that_comes_in_pieces_is_not_late_while_it_comes() -> None:
    rig = Rig({"a": [lambda: Body(110.0, b"+o", *often(20, 10.0, b"k"), b"")], "b": [OK]})
    assert rig.whole().startswith("okk")
    assert (rig.order, rig.time) == (["a"], 310.0)


def test_an_answer_out_of_a_stream_is_sought_elsewhere_when_the_stream_does_not_begin() -> None:
    rig = Rig({"a": [hangs(b":")], "b": [lambda: Body(b"+ok .", b"$", b"")]})
    timeouts = replace(TARGETS["a"].timeouts, first_event=3.0, written=frozenset({"first_event"}))
    a, b = (replace(TARGETS[name], timeouts=timeouts, stream_upstream="auto") for name in ("a", "b"))
    assert (response_text(rig, a, b), rig.asked) == ("ok", [("a", 0.0), ("b", 3.025)])


@pytest.mark.parametrize("hurried", [False, True])
def test_an_answer_that_does_not_begin_speaks_against_its_deployment(hurried: bool) -> None:
    rig = Rig({"a": [hangs()], "b": [OK]}, EJECTING)
    assert response_text(rig, patient("a", 3.0), patient("b"), total=20.0, hurried=hurried) == "ok"
    assert rig.state()["a"] == 2.0


def test_a_client_who_waits_for_less_says_nothing_of_it() -> None:
    rig = Rig({"a": [hangs()]}, EJECTING)
    with pytest.raises(DeadlinePassed) as caught:
        response_text(rig, patient("a", 3.0), total=2.0, hurried=True)
    assert (caught.value.phase, rig.time, rig.state()) == (Phase.TOTAL, 2.0, {"a": 0.0})


def test_the_deadline_is_that_of_all_tries_together() -> None:
    rig = Rig({"a": [hangs()], "b": [hangs()], "c": [hangs()]})
    with pytest.raises(DeadlinePassed) as caught:
        response_text(rig, *(patient(name, 4.0) for name in "abc"), total=10.0)
    assert (caught.value.phase, rig.time, rig.order) == (Phase.TOTAL, 10.0, ["a", "b", "c"])
