"""From a plan to an answer, in virtual time: who is asked, and what is written down of it."""

from dataclasses import replace

import pytest

from providers.unified import Operation, TextPrompt, UnifiedRequest
from proxy.dispatch import choose
from proxy.errors import GatewayError
from proxy.routing import Plan
from proxy.snapshot import ANYONE
from tests.proxy.scripted import Scripted
from tests.proxy.tables import snapshot

ASKED = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {})

TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: k}}\n"
    "models: {v/m: {deployments: {picky: {}, picky2: {}, good: {}, better: {}}}}"
)
TARGETS = {target.deployment: replace(target, dialect=Scripted()) for target in TABLE.models["v/m"].targets}


def plan_of(*deployments: str) -> Plan:
    """A plan over these deployments."""
    return Plan("v/m", "v/m", tuple(TARGETS[name] for name in deployments), False, ())


# Who is asked --------------------------------------------------------------------------------------------------------


def test_the_first_target_is_asked() -> None:
    assert choose(plan_of("good", "better"), ANYONE, ASKED).target is TARGETS["good"]


def test_a_target_that_cannot_honour_the_request_is_passed_over() -> None:
    assert choose(plan_of("picky", "good"), ANYONE, ASKED).target is TARGETS["good"]


def test_where_no_target_can_the_first_reason_is_told() -> None:
    with pytest.raises(GatewayError) as caught:
        choose(plan_of("picky", "picky2"), ANYONE, ASKED)
    facts = caught.value.facts
    assert (facts.status, facts.code, facts.param) == (400, "unsupported_parameter", "suffix")
    assert facts.message == "'suffix' is not supported by v/m/picky."


def test_a_plan_without_targets_is_a_fault_of_ours() -> None:
    with pytest.raises(RuntimeError, match="v/m"):
        choose(plan_of(), ANYONE, ASKED)
