"""The deployments that are left to try, and the error if there is none."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace

import pytest

from providers.emulation.plan_calls import CallPlan
from providers.failure import Failure, FailureKind
from providers.target import Target
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.next_deployment import Candidates, prepared_for
from proxy.errors import GatewayError
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.mark_vendor import Scripted
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

ASKED = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {})
TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: k}}\n"
    "models: {v/m: {deployments: {picky: {}, picky2: {}, good: {}, better: {}}}}"
)
TARGETS = {target.deployment: replace(target, dialect=Scripted()) for target in TABLE.models["v/m"].targets}


class Group:
    """The candidates of a plan over these deployments. The circuits of the deployments in `away` are open."""

    def __init__(self, *names: str, kind: FailureKind = FailureKind.SERVER, away: tuple[str, ...] = ()) -> None:
        self.breakers = Breakers(HealthRules(failures=1, jitter=0.0), lambda: 0.5)
        for name in away:
            self.breakers.of(TARGETS[name]).begin(0.0, AnswerKind.WHOLE).failed(
                0.0, Failure(kind, "why", retry_after=20.0)
            )
        self.plan = Plan("v/m", "v/m", tuple(TARGETS[name] for name in names), False, ())
        self.candidates = Candidates(self.breakers, ANYONE.tenant, self._prepared)

    def _prepared(self, target: Target) -> CallPlan:
        return prepared_for(ASKED, target, ANYONE)

    def first(self, now: float = 0.0) -> CallPlan:
        first = self.candidates.first(self.plan, now)
        return asyncio.run(first) if isinstance(first, Coroutine) else first

    def next(self, now: float = 0.0) -> CallPlan | None:
        return asyncio.run(self.candidates.next(now))

    def order(self, now: float = 0.0) -> list[str]:
        names = [self.first(now).target.deployment]
        while (prepared := self.next(now)) is not None:
            names.append(prepared.target.deployment)
        return names

    def error(self, now: float = 0.0) -> tuple[int, str, dict[str, str]]:
        with pytest.raises(GatewayError) as caught:
            self.order(now)
        facts = caught.value.facts
        return facts.status, facts.code, dict(facts.headers)


def test_targets_come_in_the_order_of_the_plan_without_those_that_cannot_honour_the_request() -> None:
    assert Group("good", "better").order() == ["good", "better"]
    assert Group("picky", "good", "picky2", "better").order() == ["good", "better"]


def test_where_none_can_the_first_reason_is_told() -> None:
    with pytest.raises(GatewayError) as caught:
        Group("picky", "picky2").order()
    facts = caught.value.facts
    assert (facts.status, facts.code, facts.param) == (400, "unsupported_parameter", "suffix")
    assert facts.message == "'suffix' is not supported by v/m/picky."


def test_what_has_to_be_waited_for_may_refuse_the_request_as_well() -> None:
    group = Group("picky", "good")

    async def prepared(target: Target) -> CallPlan:
        await asyncio.sleep(0)
        return prepared_for(ASKED, target, ANYONE)

    group.candidates = Candidates(group.breakers, ANYONE.tenant, prepared)
    assert group.order() == ["good"]


def test_those_that_are_away_or_went_away_meanwhile_are_left_out() -> None:
    assert Group("good", "better", away=("good",)).order() == ["better"]
    group = Group("good", "better")
    group.first()
    assert group.candidates.left
    group.breakers.of(TARGETS["better"]).begin(0.0, AnswerKind.WHOLE).failed(0.0, Failure(FailureKind.SERVER, "why"))
    assert group.next() is None
    assert not group.candidates.left


def test_when_all_are_away_one_is_let_through_and_the_others_are_told_when_to_come_or_to_slow_down() -> None:
    group = Group("good", "better", away=("good", "better"))
    assert len(group.order()) == 1
    assert group.error() == (503, "no_healthy_deployment", {"retry-after": "1"})
    group = Group("good", kind=FailureKind.RATE_LIMITED, away=("good",))
    assert group.error(5.5) == (429, "rate_limit_exceeded", {"retry-after": "15"})


def test_who_is_away_is_no_fault_of_the_request_but_changes_nothing_if_it_could_not_honour_it() -> None:
    group = Group("picky", "good", kind=FailureKind.RATE_LIMITED, away=("good",))
    assert group.error()[1] == "no_healthy_deployment"
    group = Group("picky", "picky2", kind=FailureKind.RATE_LIMITED, away=("picky2",))
    assert group.error()[:2] == (400, "unsupported_parameter")


def test_other_targets_can_take_the_place_of_those_left() -> None:
    group = Group("good")
    group.first()
    group.candidates.turn_to([TARGETS["picky"], TARGETS["better"]])
    prepared = group.next()
    assert prepared is not None
    assert prepared.target.deployment == "better"


def test_a_plan_without_targets_is_a_fault_of_ours() -> None:
    with pytest.raises(RuntimeError, match="v/m"):
        Group().order()


@looped(
    ("kind", "words"),
    [
        (FailureKind.AUTH, "refused the gateway's credential"),
        (FailureKind.CONNECT, "could not be reached"),
        (FailureKind.SERVER, "failed"),
    ],
)
def test_who_finds_nobody_is_told_what_the_first_of_them_did(kind: FailureKind, words: str) -> None:
    group = Group("good", kind=kind, away=("good",))
    group.order()  # takes the one probe that is let through
    with pytest.raises(GatewayError) as caught:
        group.order()
    message = f"No deployment that could answer is healthy at the moment; the first of them {words}."
    assert caught.value.facts.message == message


def test_a_spent_account_stays_one_while_it_is_left_alone() -> None:
    group = Group("good", kind=FailureKind.QUOTA, away=("good",))
    assert group.error(100.0) == (429, "insufficient_quota", {"x-should-retry": "false"})
