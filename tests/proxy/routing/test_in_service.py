"""Deployments that are out of service: never called, under every policy and by every name."""

from collections import Counter
from random import Random

import pytest

from proxy.errors import GatewayError
from proxy.routing.in_service import in_service
from proxy.routing.policies import POLICIES
from proxy.routing.resolve_model import plan_for, whole_plan
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.deployment_loads import Told
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

TABLE = """
vendors:
  v: {{profile: openai, api_key: k}}
  gone: {{profile: openai, api_key: k, out_of_service: true}}
models:
  v/m:
    policy: {policy}
    deployments: {{a: {{out_of_service: true, weight: 5}}, b: {{}}, c: {{}}}}
  v/other: {{}}
  v/away: {{out_of_service: true}}
  gone/kept: {{out_of_service: false}}
  gone/*: {{}}
routes:
  over: {{policy: {policy}, targets: [{{target: gone/x, weight: 5}}, v/other, gone/kept]}}
  nested: {{targets: [over, v/m], fallbacks: {{context_window: [v/away, v/m]}}}}
  nothing: {{targets: [gone/x, v/away, v/m/a]}}
"""


@looped("policy", POLICIES)
def test_no_policy_calls_what_is_out_of_service_and_the_others_share_evenly(policy: str) -> None:
    table = snapshot(TABLE.format(policy=policy))
    load = Told(Random(5).random)
    first: Counter[str] = Counter()
    for _ in range(240):
        found = plan_for(table, ANYONE, "v/m", "openai", load)
        assert {target.deployment for target in found.targets} == {"b", "c"}
        assert [target.deployment for target in found.out_of_service] == ["a"]
        first[found.targets[0].deployment] += 1
    if policy in ("weighted", "round_robin", "least_busy"):
        assert abs(first["b"] - first["c"]) <= 40, first
    over = plan_for(table, ANYONE, "over", "openai", load)
    assert {target.name for target in over.targets} == {"v/other/default", "gone/kept/default"}


def test_fallbacks_and_nested_routes_leave_out_what_is_out_of_service() -> None:
    found = plan_for(snapshot(TABLE.format(policy="priority")), ANYONE, "nested", "openai", Told(lambda: 0.0))
    assert not any(target.out_of_service for target in found.every_target)
    assert [target.name for group in found.fallbacks.values() for target in group] == ["v/m/b", "v/m/c"]


@looped("name", ["nothing", "v/m/a", "v/away", "gone/x", "gone/x/default"])
def test_a_name_without_a_deployment_in_service_is_refused_and_still_resolves(name: str) -> None:
    table = snapshot(TABLE.format(policy="priority"))
    load = Told(lambda: 0.0)
    with pytest.raises(GatewayError) as refused:
        plan_for(table, ANYONE, name, "openai", load)
    assert (refused.value.facts.status, refused.value.facts.code) == (503, "no_healthy_deployment")
    kind = "route" if name == "nothing" else "model"
    assert refused.value.facts.message == f"Every deployment of the {kind} '{name}' is out of service."
    whole = whole_plan(table, ANYONE, name, "openai", load)
    assert whole.targets
    assert not in_service(whole.targets)
