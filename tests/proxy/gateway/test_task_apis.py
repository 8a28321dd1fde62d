"""The plans that a task may use."""

import pytest

from providers.unified_request import Task
from proxy.errors import GatewayError
from proxy.gateway.task_apis import EMBEDDINGS, RERANK, TASK_APIS, anywhere, in_one_space
from proxy.routing.deployment_load import IDLE
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

TABLE = snapshot("""
vendors: {v: {profile: openai, api_key: k}, w: {profile: openai, api_key: k}}
models:
  v/a: {deployments: {x: {}, y: {}}}
  v/b: {}
  w/a: {}
routes:
  deployments: {targets: [v/a/x, v/a/y]}
  names: {targets: [v/a, w/a]}
  models: {targets: [v/a, v/b]}
  same: {targets: [v/a, v/b, w/a], same_space: true}
  outer: {targets: [same]}
  falls: {targets: [v/a], fallbacks: {content_filter: [v/b]}}
  back: {targets: [v/a/x], fallbacks: {content_filter: [v/a/y]}}
""")


def _plan(name: str) -> Plan:
    return plan_for(TABLE, ANYONE, name, "openai", IDLE)


@looped("name", ["v/a", "v/a/x", "deployments", "same", "outer", "back"])
def test_the_deployments_of_one_model_are_one_space_and_so_is_what_the_operator_says(name: str) -> None:
    in_one_space(_plan(name))


@looped("name", ["names", "models", "falls"])
def test_models_are_not_one_space_unless_the_route_that_was_asked_for_says_so(name: str) -> None:
    with pytest.raises(GatewayError) as caught:
        in_one_space(_plan(name))
    assert caught.value.facts.param == "model"
    assert "same_space: true" in caught.value.facts.message


def test_a_ranking_is_whole_in_itself() -> None:
    anywhere(_plan("models"))
    assert (EMBEDDINGS.check, RERANK.check) == (in_one_space, anywhere)
    assert set(TASK_APIS) == {Task.EMBEDDINGS, Task.RERANK}
