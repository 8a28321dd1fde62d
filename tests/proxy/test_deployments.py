"""What is known of deployments, and how long."""

from dataclasses import replace

from providers.dialect import Target
from providers.failure import Failure, FailureKind
from proxy.concurrency_limit import Limited
from proxy.deployments import Deployments, Rules
from proxy.health import Answer, State
from proxy.health_rules import HealthRules
from proxy.healths import MOST
from tests.proxy.tables import snapshot

TABLE = snapshot("vendors: {v: {profile: openai, api_key: k}}\nmodels: {v/m: {deployments: {a: {}, b: {}}}, v/*: {}}")
A, B = TABLE.models["v/m"].targets


def test_a_deployment_keeps_its_places_and_its_health_over_tables() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    places, health = deployments.bulkhead(A), deployments.healths.of(A)
    deployments.keep([replace(A, weight=7)])
    assert deployments.bulkhead(A) is places
    assert deployments.healths.of(A) is health


def test_at_another_address_it_is_another() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    moved = replace(A, base_url="https://elsewhere.example.com")
    assert deployments.bulkhead(A) is not deployments.bulkhead(moved)
    assert deployments.healths.of(A) is not deployments.healths.of(moved)


def test_each_has_its_own() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    assert deployments.bulkhead(A) is not deployments.bulkhead(B)


def test_every_model_of_a_row_for_any_has_its_own() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    (any_model,) = TABLE.wildcards["v"].targets
    one, two, again = (replace(any_model, model=name, upstream_model=name) for name in ("one", "two", "one"))
    places, health = deployments.bulkhead(one), deployments.healths.of(one)
    assert deployments.bulkhead(two) is not places
    assert (deployments.bulkhead(again), deployments.healths.of(again)) == (places, health)
    deployments.keep([any_model])
    assert (deployments.bulkhead(again), deployments.healths.of(again)) == (places, health)


async def test_names_that_clients_make_up_do_not_pile_up() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    (any_model,) = TABLE.wildcards["v"].targets

    def named(name: str) -> Target:
        return replace(any_model, model=name, upstream_model=name)

    busy = deployments.bulkhead(named("busy"))
    await busy.take("a")
    trial = deployments.healths.of(named("busy")).begin(0.0, Answer.WHOLE)
    for number in range(MOST + 10):
        deployments.bulkhead(named(str(number)))
        deployments.healths.of(named(str(number)))
    assert len(deployments._bulkheads) == MOST
    assert len(deployments.healths._known) == MOST
    assert deployments.bulkhead(named("busy")) is busy
    trial.abandoned(1.0)
    assert deployments.healths.of(named("busy")).in_flight == 0


def test_the_state_of_a_row_for_any_model_is_its_worst() -> None:
    deployments = Deployments(Rules(HealthRules(failures=1)), lambda: 0.5)
    (any_model,) = TABLE.wildcards["v"].targets
    for name, fails in (("one", True), ("two", False)):
        trial = deployments.healths.of(replace(any_model, model=name)).begin(0.0, Answer.WHOLE)
        if fails:
            trial.failed(0.0, Failure(FailureKind.SERVER, "why", 500))
        else:
            trial.succeeded(0.0)
    assert dict(deployments.healths.states(0.0)) == {"v/*/default": State.OPEN}


def test_what_a_table_no_longer_has_is_forgotten() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    places, health = deployments.bulkhead(B), deployments.healths.of(B)
    deployments.keep([A])
    assert deployments.bulkhead(B) is not places
    assert deployments.healths.of(B) is not health


def test_the_operators_limit_is_each_deployments_own_and_follows_the_table() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    bound = [replace(target, concurrent=8) for target in (A, B)]
    for target in bound:
        deployments.bulkhead(target)
    eight = Limited(8, "operator", 0, 0)
    assert dict(deployments.limited(0.0)) == {"v/m/a": eight, "v/m/b": eight}
    deployments.keep([replace(A, concurrent=3), B])
    assert dict(deployments.limited(0.0)) == {"v/m/a": Limited(3, "operator", 0, 0)}


def test_of_the_models_of_a_row_for_any_the_tightest_limit_is_told() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    (any_model,) = TABLE.wildcards["v"].targets
    for name, under_way in (("one", 100), ("two", 50), ("three", 200), ("four", 1)):
        limit = deployments.bulkhead(replace(any_model, model=name)).limit
        limit.lost(FailureKind.RATE_LIMITED, 0.0, 0.0, under_way)
    ((label, limited),) = deployments.limited(1.0)
    assert (label, limited.limit) == ("v/*/default", 45)
