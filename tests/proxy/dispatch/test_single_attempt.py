"""From a plan to a response, in virtual time: the deployments that are called, the number of calls, and their cost."""

import asyncio
from collections.abc import Callable

import pytest

from providers.failure import Failure, FailureKind
from providers.unified_request import UnifiedRequest
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.retry_rules import DeploymentRules, RetryRules
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import GatewayError
from proxy.teams.retry_budget import BudgetRules
from tests.proxy.kit.dispatch_rig import OK, Behaviour, Rig, fails, hangs, outcome_of, outcomes, refuses
from tests.proxy.kit.mark_streams import CUT, Body
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

UNPAID = DeploymentRules(retries=RetryRules(budget=BudgetRules(per_request=0.0, per_second=0.0, least=0.0)))
TOLERANT = DeploymentRules(HealthRules(failures=10**9, window_least=10**9))

# Which deployment is called ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [Rig.whole, Rig.streamed])
def test_the_first_target_is_asked_and_nobody_else(way: Callable[[Rig], str]) -> None:
    rig = Rig({"a": [OK], "b": [OK]})
    assert (way(rig), rig.order, outcomes(rig)) == ("ok", ["a"], [("a", "ok")])


PASSING: dict[str, Behaviour] = {
    "refused connection": fails(FailureKind.CONNECT),
    "tls": fails(FailureKind.TLS),
    "closed": fails(FailureKind.SERVER),
    "500": refuses("server"),
    "rate limit": refuses("rate_limited 7", 429),
    "quota": refuses("quota", 429),
    "auth": refuses("auth", 401),
    "not found": refuses("not_found", 404),
    "overloaded": refuses("overloaded", 529),
    "cut": lambda: Body(b":", CUT),
    "silence": hangs(),
}


@looped("way", [Rig.whole, Rig.streamed])
@looped("behaviour", PASSING.values(), ids=PASSING)
def test_what_may_go_well_elsewhere_is_tried_elsewhere(way: Callable[[Rig], str], behaviour: Behaviour) -> None:
    rig = Rig({"a": [behaviour], "b": [OK]})
    assert (way(rig), rig.order) == ("ok", ["a", "b"])
    assert rig.record.attempts[0].outcome != "ok"
    assert rig.record.attempts[1].outcome == "ok"
    assert rig.series("fallbacks_total") == {f"v/m {rig.record.attempts[0].outcome}": 1.0}


@looped("kind", ["invalid_request", "context_length", "content_filter"])
@looped("way", [Rig.whole, Rig.streamed])
def test_a_fault_of_the_request_is_final(way: Callable[[Rig], str], kind: str) -> None:
    rig = Rig({"a": [refuses(kind, 400)], "b": [OK]})
    assert rig.fails(lambda: way(rig)).kind == kind
    assert rig.order == ["a"]


def lacks(name: str) -> Behaviour:
    return lambda: Failure(FailureKind.INVALID_REQUEST, f"Model {name} does not support tools.", 400)


@looped("way", [Rig.whole, Rig.streamed])
def test_a_target_whose_model_cannot_take_the_request_is_skipped_for_free(way: Callable[[Rig], str]) -> None:
    rig = Rig({name: [lacks(name)] for name in ("a", "b", "strict", "never")} | {"c": [OK]}, UNPAID)
    for _ in range(10):
        rig.asked.clear()
        assert (way(rig), rig.order) == ("ok", ["a", "b", "strict", "never", "c"])
    assert {outcome for _, outcome in outcomes(rig)} == {"unsupported", "ok"}


@looped(
    ("behaviours", "message"),
    [
        ({"a": lacks("a")}, "Model a does not support tools."),
        ({"a": lacks("a"), "b": lacks("b")}, "Model a does not support tools."),
        ({"a": lacks("a"), "picky": OK}, "Model a does not support tools."),
        ({"a": refuses("server"), "b": lacks("b")}, "a server"),
        ({"a": lacks("a"), "b": refuses("auth", 401)}, "b auth"),
    ],
)
def test_where_no_other_target_can_the_client_gets_the_first_reason(
    behaviours: dict[str, Behaviour], message: str
) -> None:
    rig = Rig({name: [behaviour] for name, behaviour in behaviours.items()})
    assert rig.fails(rig.whole).message == message


@pytest.mark.parametrize("kind", [FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER])
def test_a_routes_list_for_a_kind_of_failure_is_asked_instead(kind: FailureKind) -> None:
    rig = Rig({"a": [refuses(kind.value, 400)], "b": [OK], "c": [OK]})
    assert rig.whole(fallbacks={kind: ["c"]}) == "ok"
    assert rig.order == ["a", "c"]


def test_such_a_list_is_asked_once() -> None:
    refusing = refuses("context_length", 400)
    rig = Rig({"a": [refusing], "b": [refusing], "c": [refusing]})
    assert rig.fails(lambda: rig.whole(fallbacks={FailureKind.CONTEXT_LENGTH: ["b", "c"]})).kind == "context_length"
    assert rig.order == ["a", "b"]


def test_nobody_is_asked_twice_while_others_are_left_and_no_more_than_three_times_in_all() -> None:
    rig = Rig({"a": [refuses("server")], "b": [refuses("server")], "c": [refuses("server")], "strict": [OK]})
    assert rig.fails(rig.whole).message == "c server"
    assert rig.order == ["a", "b", "c"]


def test_who_could_not_be_reached_is_no_attempt_to_count() -> None:
    rig = Rig(
        {"a": [fails(FailureKind.CONNECT)], "b": [fails(FailureKind.CONNECT)], "c": [refuses("server")], "strict": [OK]}
    )
    assert rig.whole() == "ok"


def test_a_target_that_cannot_honour_the_request_is_passed_over() -> None:
    assert Rig({"picky": [OK], "a": [OK]}).whole() == "ok"
    rig = Rig({"a": [refuses("server")], "picky": [OK], "b": [OK]})
    assert (rig.whole(), rig.order) == ("ok", ["a", "b"])


def test_where_no_target_can_the_first_reason_is_told() -> None:
    rig = Rig({"picky": [OK]})
    with pytest.raises(GatewayError) as caught:
        rig.whole()
    assert (caught.value.facts.code, caught.value.facts.param) == ("unsupported_parameter", "suffix")
    assert rig.order == []


# The same deployment again -------------------------------------------------------------------------------------------


def test_the_only_target_is_asked_once_more_after_an_error_that_may_pass() -> None:
    rig = Rig({"a": [refuses("server"), OK]})
    assert (rig.whole(), rig.asked) == ("ok", [("a", 0.0), ("a", 0.125)])
    rig = Rig({"a": [refuses("server"), refuses("server"), OK]})
    assert rig.fails(rig.whole).kind is FailureKind.SERVER
    assert rig.order == ["a", "a"]


@looped(
    "behaviour",
    [
        fails(FailureKind.CONNECT),
        fails(FailureKind.TLS),
        lambda: Body(b":", CUT),
        refuses("auth", 401),
        refuses("quota", 429),
    ],
)
def test_the_only_target_is_not_asked_again_where_that_is_no_use(behaviour: Behaviour) -> None:
    rig = Rig({"a": [behaviour, OK]})
    rig.fails(rig.whole)
    assert rig.order == ["a"]


def test_the_wait_a_vendor_asks_for_is_kept_or_told_where_it_is_long_and_never_shortened() -> None:
    rig = Rig({"a": [refuses("rate_limited 2", 429), OK]})
    assert (rig.whole(), rig.asked) == ("ok", [("a", 0.0), ("a", 2.1)])
    assert rig.record.waited == 2.1
    rig = Rig({"a": [refuses("rate_limited 11", 429), OK]})
    assert (rig.fails(rig.whole).retry_after, rig.time) == (11.0, 0.0)


def test_after_the_others_one_that_said_when_is_waited_for() -> None:
    rig = Rig({"a": [refuses("server")], "b": [refuses("rate_limited 2", 429), OK]})
    assert (rig.whole(), rig.order) == ("ok", ["a", "b", "b"])


# Which calls may be repeated -----------------------------------------------------------------------------------------


@looped(
    ("behaviour", "repeated"),
    [
        (fails(FailureKind.CONNECT), True),
        (fails(FailureKind.SERVER, unsent=True), True),
        (refuses("overloaded", 503), True),
        (refuses("rate_limited", 429), True),
        (refuses("server", 500), False),
        (fails(FailureKind.SERVER), False),
    ],
)
def test_strictly_only_what_cannot_have_been_generated_is_repeated(behaviour: Behaviour, repeated: bool) -> None:
    rig = Rig({"strict": [behaviour], "b": [OK]})
    if repeated:
        assert rig.whole() == "ok"
    else:
        rig.fails(rig.whole)
        assert rig.order == ["strict"]


def test_off_means_that_nothing_is() -> None:
    rig = Rig({"never": [fails(FailureKind.CONNECT)], "b": [OK]})
    rig.fails(rig.whole)
    assert rig.order == ["never"]


def test_after_the_first_content_nothing_is() -> None:
    rig = Rig({"a": [lambda: Body(b"+a", CUT)], "b": [OK]})

    async def read(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> None:
        async with await dispatcher.streamed(job) as (_, stream):
            await stream.wait()

    assert rig.fails(lambda: rig.run(read)).kind is FailureKind.TRUNCATED
    assert (rig.order, outcomes(rig)) == (["a"], [("a", "truncated")])


def test_retries_are_paid_for_out_of_what_is_asked_for() -> None:
    rig = Rig({"a": [refuses("server")], "b": [refuses("server")]}, TOLERANT)

    async def main() -> None:
        dispatcher = rig.dispatcher()
        for _ in range(1000):
            assert await outcome_of(dispatcher, rig.job()) == "server"
            await asyncio.sleep(0.01)

    run(main())
    # The bound: 10 at the start, 0.2 for each request, 1 a second.
    assert 1200 <= len(rig.asked) <= 1230 + 1
    assert rig.series("retry_budget_denied_total")["v/m"] == 2000 - len(rig.asked)


def test_who_could_not_be_reached_costs_nothing_of_that() -> None:
    rig = Rig({"a": [fails(FailureKind.CONNECT)], "b": [OK]}, TOLERANT)

    async def main() -> None:
        dispatcher = rig.dispatcher()
        for _ in range(100):
            assert await outcome_of(dispatcher, rig.job()) == "ok"

    run(main())
    assert len(rig.asked) == 200
