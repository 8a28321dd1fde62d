"""What is known of deployments, and how long."""

from dataclasses import replace

from proxy.deployments import Deployments, Rules
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


def test_every_model_of_a_wildcard_shares_one() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    (any_model,) = TABLE.wildcards["v"].targets
    one, two = (replace(any_model, model=name, upstream_model=name) for name in ("one", "two"))
    assert deployments.bulkhead(one) is deployments.bulkhead(two)


def test_what_a_table_no_longer_has_is_forgotten() -> None:
    deployments = Deployments(Rules(), lambda: 0.0)
    places, health = deployments.bulkhead(B), deployments.healths.of(B)
    deployments.keep([A])
    assert deployments.bulkhead(B) is not places
    assert deployments.healths.of(B) is not health
