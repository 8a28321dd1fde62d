"""The state that is stored for deployments, and its lifetime."""

from dataclasses import replace

import pytest

from providers.failure import Failure, FailureKind
from providers.target import Target
from proxy.deployment_health.breaker_registry import MOST
from proxy.deployment_health.circuit_breaker import AnswerKind, State
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.concurrency_limit import ConcurrencyRules, Limited
from proxy.deployment_health.deployment_registry import Deployments
from tests.proxy.kit.tables import snapshot

TABLE = snapshot("vendors: {v: {profile: openai, api_key: k}}\nmodels: {v/m: {deployments: {a: {}, b: {}}}, v/*: {}}")
A, B = TABLE.models["v/m"].targets


@pytest.fixture
def deployments() -> Deployments:
    return Deployments(HealthRules(), ConcurrencyRules(), lambda: 0.0)


def test_a_deployment_keeps_its_places_and_its_health_over_tables(deployments: Deployments) -> None:
    places, health = deployments.queue(A), deployments.breakers.of(A)
    deployments.keep([replace(A, weight=7)])
    assert deployments.queue(A) is places
    assert deployments.breakers.of(A) is health


def test_at_another_address_it_is_another(deployments: Deployments) -> None:
    moved = replace(A, base_url="https://elsewhere.example.com")
    assert deployments.queue(A) is not deployments.queue(moved)
    assert deployments.breakers.of(A) is not deployments.breakers.of(moved)


def test_each_has_its_own(deployments: Deployments) -> None:
    assert deployments.queue(A) is not deployments.queue(B)


def test_a_free_slot_is_taken_in_the_queue_of_its_deployment(deployments: Deployments) -> None:
    narrow = replace(A, concurrent=1)
    queue = deployments.take_free(narrow, "a")
    assert queue is deployments.queue(A)
    assert deployments.take_free(narrow, "b") is None
    queue.release("a")
    assert deployments.take_free(narrow, "b") is queue


def test_every_model_of_a_row_for_any_has_its_own(deployments: Deployments) -> None:
    (any_model,) = TABLE.wildcards["v"].targets
    one, two, again = (replace(any_model, model=name, upstream_model=name) for name in ("one", "two", "one"))
    places, health = deployments.queue(one), deployments.breakers.of(one)
    assert deployments.queue(two) is not places
    assert (deployments.queue(again), deployments.breakers.of(again)) == (places, health)
    deployments.keep([any_model])
    assert (deployments.queue(again), deployments.breakers.of(again)) == (places, health)


async def test_names_that_clients_make_up_do_not_pile_up(deployments: Deployments) -> None:
    (any_model,) = TABLE.wildcards["v"].targets

    def named(name: str) -> Target:
        return replace(any_model, model=name, upstream_model=name)

    busy = deployments.queue(named("busy"))
    await busy.take("a")
    trial = deployments.breakers.of(named("busy")).begin(0.0, AnswerKind.WHOLE)
    for number in range(MOST + 10):
        deployments.queue(named(str(number)))
        deployments.breakers.of(named(str(number)))
    assert len(deployments._queues) == MOST
    assert len(deployments.breakers._known) == MOST
    assert deployments.queue(named("busy")) is busy
    trial.abandoned(1.0)
    assert deployments.breakers.of(named("busy")).in_flight == 0


def test_the_state_of_a_row_for_any_model_is_its_worst() -> None:
    deployments = Deployments(HealthRules(failures=1), ConcurrencyRules(), lambda: 0.5)
    (any_model,) = TABLE.wildcards["v"].targets
    for name, fails in (("one", True), ("two", False)):
        trial = deployments.breakers.of(replace(any_model, model=name)).begin(0.0, AnswerKind.WHOLE)
        if fails:
            trial.failed(0.0, Failure(FailureKind.SERVER, "why", 500))
        else:
            trial.succeeded(0.0)
    assert dict(deployments.breakers.states(0.0)) == {"v/*/default": State.OPEN}


def test_what_a_table_no_longer_has_is_forgotten(deployments: Deployments) -> None:
    places, health = deployments.queue(B), deployments.breakers.of(B)
    deployments.keep([A])
    assert deployments.queue(B) is not places
    assert deployments.breakers.of(B) is not health


def test_the_operators_limit_is_each_deployments_own_and_follows_the_table(deployments: Deployments) -> None:
    bound = [replace(target, concurrent=8) for target in (A, B)]
    for target in bound:
        deployments.queue(target)
    eight = Limited(8, "operator", 0, 0)
    assert dict(deployments.limited(0.0)) == {"v/m/a": eight, "v/m/b": eight}
    deployments.keep([replace(A, concurrent=3), B])
    assert dict(deployments.limited(0.0)) == {"v/m/a": Limited(3, "operator", 0, 0)}


def test_of_the_models_of_a_row_for_any_the_tightest_limit_is_told(deployments: Deployments) -> None:
    (any_model,) = TABLE.wildcards["v"].targets
    for name, under_way in (("one", 100), ("two", 50), ("three", 200), ("four", 1)):
        limit = deployments.queue(replace(any_model, model=name)).limit
        limit.lost(FailureKind.RATE_LIMITED, 0.0, 0.0, under_way)
    ((label, limited),) = deployments.limited(1.0)
    assert (label, limited.limit) == ("v/*/default", 45)
